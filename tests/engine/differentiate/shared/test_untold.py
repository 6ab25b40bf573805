"""Calls that may be approximated are those whose values the caller is not told."""

from __future__ import annotations

from analysed import facts_of_c
from handwritten.made import HEADER, asked

from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.shared.untold import approximate_calls, free_sums
from irgrad.engine.ir.model import Instruction

SOURCE = """
NOINLINE static double helper(double v) { return sin(v); }
void f(double *x, double *o) {
    double s = 0;
    for (int i = 0; i < 100; i++) s += log(x[i]);
    o[0] = exp(x[0]);
    x[1] = tan(s) + helper(x[2]);
}
"""


def _unit(discard: tuple[int, ...], strict: bool = False) -> Unit:
    facts = facts_of_c(HEADER + SOURCE, "f", {0, 1})
    request = asked("f", "reverse", ["dup", "dup"], strict_fp=strict, discard=discard)
    return Unit(facts.module, facts.root, facts, request)


def _calls(unit: Unit) -> dict[str, Instruction]:
    return {(i.callee_name or "").removeprefix("llvm.").split(".")[0]: i
            for fn in unit.pointers.functions for i in fn.instructions() if i.is_call and i.type.is_fp}  # fmt: skip


def _free(unit: Unit) -> set[str]:
    approximate_calls(unit)
    return {name for name, call in _calls(unit).items() if "afn" in call.flags}


def test_what_nobody_is_told_may_be_approximated() -> None:
    assert _free(_unit(())) == set()
    assert _free(_unit((1,))) == {"exp"}  # the memory of the other argument is read again
    unit = _unit(())
    assert not free_sums(unit, unit.root)


def test_strict_arithmetic_keeps_every_function() -> None:
    assert _free(_unit((0, 1), strict=True)) == set()
    assert {"exp", "tan", "sin", "log"} <= _free(_unit((0, 1)))


def test_sums_are_free_where_functions_are() -> None:
    unit = _unit((0, 1))
    assert len(free_sums(unit, unit.root)) == 1
    unit = _unit((0, 1), strict=True)
    assert not free_sums(unit, unit.root)
