"""Inline assembly: what hides a value, what is a fence, and what may compute anything."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.assembly import effect_of_assembly, passed_through
from irgrad.engine.ir.model import InlineAsm, Instruction
from irgrad.engine.ir.reader import read
from irgrad.engine.notation.lower import lower
from irgrad.interop.loaders import load
from irgrad.rules.errors import MissingRuleError


def _call(line: str) -> Instruction:
    fn = read(f"define void @f(double %x, ptr %p, i64 %n) {{\n  {line}\n  ret void\n}}\n").functions["f"]
    return next(instr for instr in fn.instructions() if instr.is_call and isinstance(instr.callee, InlineAsm))


@pytest.mark.parametrize(("line", "inactive", "touched", "passed"), [
    ('%r = call double asm sideeffect "", "=x,0,~{dirflag}"(double %x)', True, set(), 0),
    ('%r = call double asm sideeffect "", "=*m,=x,*m,1"(ptr elementtype(double) %p, ptr elementtype(double) %p, double %x)',
     True, set(), 2),
    ('call void asm sideeffect "", "r,~{memory}"(ptr %p)', True, set(), None),
    ('call void asm sideeffect "mfence", "~{memory}"()', False, set(), None),
    ('%r = call double asm "addsd $0, $0", "=x,0"(double %x)', False, set(), None),
    ('call void asm sideeffect "incq ($1)", "r,r"(i64 %n, ptr %p)', False, {0, 1}, None),
    ('%r = call double asm "", "=x"()', False, set(), None),  # whatever the register held
])  # fmt: skip
def test_effects(line: str, inactive: bool, touched: set[int], passed: int | None) -> None:
    call = _call(line)
    effect = effect_of_assembly(call)
    assert effect.inactive is inactive
    assert effect.writes == effect.reads == frozenset(touched)
    assert passed_through(call) is (call.args[passed] if passed is not None else None)


@pytest.mark.parametrize("body", [
    'double f(double x) { double y; __asm__("mulsd %1, %0" : "=x"(y) : "x"(x), "0"(x)); return y; }',
    'double f(double x) { double y = x * x; __asm__("addsd %1, %1" : "+m"(y) : "x"(x)); return y; }',
    'double f(double x) { double y[2] = {x, x}; __asm__ volatile("movq $0, (%0)" : : "r"(y) : "memory"); return y[0]; }',
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
