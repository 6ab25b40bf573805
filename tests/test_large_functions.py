"""Functions of many instructions: no recursion limit, work and memory linear. The long run takes 10^5 instructions."""

from __future__ import annotations

import resource
from collections.abc import Callable

import pytest
from counting_work import growth, peak_bytes

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.reader import read
from irgrad.engine.transforms.derive import derive


def _straight(count: int) -> str:
    sine = "call double @llvm.sin.f64(double {p})"
    ops = ("fadd double {p}, {q}", "fmul double {p}, 0.5", sine, "fmul double {p}, {q}")
    lines = ["declare double @llvm.sin.f64(double)", "define void @f(ptr noalias %x, ptr noalias %y) {"]
    lines.append("%v0 = load double, ptr %x")
    for i in range(1, count):
        lines.append(f"%v{i} = " + ops[i % 4].format(p=f"%v{i - 1}", q=f"%v{max(0, i - 7)}"))
    return "\n".join([*lines, f"store double %v{count - 1}, ptr %y", "ret void", "}", ""])


def _branches(count: int) -> str:
    lines = ["define void @f(ptr noalias %x, ptr noalias %y) {", "%w = load double, ptr %x", "br label %h0"]
    value = "%w"
    for k in range(count // 7):
        lines += [f"h{k}:", f"%q{k} = fcmp ogt double {value}, 0.3", f"br i1 %q{k}, label %a{k}, label %h{k}.end"]
        lines += [f"a{k}:", f"%u{k} = fmul double {value}, 0.9", f"br label %h{k}.end", f"h{k}.end:"]
        before = f"h{k}"
        lines += [f"%p{k} = phi double [%u{k}, %a{k}], [{value}, %{before}]", f"br label %h{k + 1}"]
        value = f"%p{k}"
    return "\n".join([*lines, f"h{count // 7}:", f"store double {value}, ptr %y", "ret void", "}", ""])


def _deriving(make: Callable[[int], str], count: int) -> Callable[[], object]:
    text = make(count)

    def work() -> None:
        module = read(text, roots=["f"])
        derive(module, "f", "reverse", ["dup", "dup"])
        assert "define" in to_text(module)

    return work


@pytest.mark.parametrize("make", [_straight, _branches])
def test_work_and_memory_are_linear(make: Callable[[int], str]) -> None:
    assert growth(lambda count: _deriving(make, count), 500, 5_000) < 1.2
    assert peak_bytes(_deriving(make, 5_000)) < 1.2 * 10 * peak_bytes(_deriving(make, 500))


@pytest.mark.slow
@pytest.mark.parametrize("make", [_straight, _branches])
def test_hundred_thousand_instructions(make: Callable[[int], str]) -> None:
    _deriving(make, 100_000)()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20  # KiB
