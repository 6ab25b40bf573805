"""Inline assembly: what `prepare` has not understood may compute anything, and is refused where that matters."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.memory.call_effects import effect_of_assembly
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir.model import InlineAsm, Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.interop.loaders import load
from irgrad.rules.errors import MissingRuleError


def _call(line: str) -> Instruction:
    fn = read(f"define void @f(double %x, ptr %p, i64 %n) {{\n  {line}\n  ret void\n}}\n").functions["f"]
    return next(instr for instr in fn.instructions() if instr.is_call and isinstance(instr.callee, InlineAsm))


@pytest.mark.parametrize(("line", "touched"), [
    ('call void asm sideeffect "mfence", "~{memory}"()', set()),
    ('%r = call double asm "addsd $0, $0", "=x,0"(double %x)', set()),
    ('call void asm sideeffect "incq ($1)", "r,r"(i64 %n, ptr %p)', {0, 1}),
])  # fmt: skip
def test_effects(line: str, touched: set[int]) -> None:
    effect = effect_of_assembly(_call(line))
    assert not effect.inactive
    assert not effect.nothing
    assert effect.writes == effect.reads == frozenset(touched)


@pytest.mark.parametrize("body", [
    'double f(double x) { double y; __asm__("mulsd %1, %0" : "=x"(y) : "x"(x), "0"(x)); return y; }',
    'double f(double x) { double y = x * x; __asm__("addsd %1, %1" : "+m"(y) : "x"(x)); return y; }',
    'double f(double x) { double y[1] = {x}; __asm__ volatile("movq $0, (%0)" : : "r"(y) : "memory"); return y[0]; }',
])  # fmt: skip
@pytest.mark.parametrize("mode", ["autodiff", "fwddiff"])
def test_active_values_in_assembly_are_refused(body: str, mode: str) -> None:
    one = ", 1.0" if mode == "fwddiff" else ""
    text = load(f"double __enzyme_{mode}(void *, ...);\n{body}\n"
                f"double r(double x) {{ return __enzyme_{mode}((void *)f, x{one}); }}").text  # fmt: skip
    with pytest.raises(MissingRuleError) as caught:
        lower(text)
    assert caught.value.what == "inline assembly that active values go through"
    assert "<string>:2:" in caught.value.where
    assert "asm" in caught.value.which
    assert "enzyme_inactive" in caught.value.fix
