"""Loads of what was read already go, unless something between may write it."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.repeated_loads import may_repeat, merge_loads

TEXT = """declare void @other()
declare double @llvm.sqrt.f64(double)
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %n) {
  %x = load double, ptr %a
  BETWEEN
  %y = load double, ptr %a
  %z = fadd double %x, %y
  store double %z, ptr %b
  ret void
}
"""


def _loads(fn: Function) -> int:
    return sum(i.opcode == "load" for i in fn.instructions())


@pytest.mark.parametrize(
    ("between", "left"),
    [
        ("store double %x, ptr %b", 1),
        ("store double 1.0, ptr %a", 1),
        ("%s = call double @llvm.sqrt.f64(double %x)", 1),
        ("call void @other()", 2),
        ("fence seq_cst", 2),
        ("%v = load atomic i64, ptr %n acquire, align 8", 2),
        ("store volatile double %x, ptr %b", 2),
        ("%p = getelementptr double, ptr %a, i64 1\n  store double %x, ptr %p", 2),
    ],
)
def test_what_stands_between_decides(between: str, left: int) -> None:
    module = read(TEXT.replace("BETWEEN", between))
    fn = module.functions["f"]
    assert may_repeat(fn)
    before = _loads(fn)
    assert len(merge_loads(points_to(module, fn), fn)) == 2 - left
    assert before - _loads(fn) == 2 - left


@pytest.mark.parametrize(
    ("between", "left"),
    [
        ("", 0),
        ("store double 3.0, ptr %b", 0),
        ("store double 3.0, ptr %a", 0),
        ("call void @other()", 1),
        ("store i64 3, ptr %a", 1),
    ],
)
def test_what_was_stored_is_known(between: str, left: int) -> None:
    text = TEXT.replace("%x = load double, ptr %a", "%x = fadd double 1.0, 2.0\n  store double %x, ptr %a")
    module = read(text.replace("BETWEEN", between))
    fn = module.functions["f"]
    assert may_repeat(fn)
    merge_loads(points_to(module, fn), fn)
    assert _loads(fn) == left
    total = next(i for i in fn.instructions() if i.opcode == "fadd" and i.name == "z")
    assert len({id(operand) for operand in total.operands}) == (1 if between in ("", "store double 3.0, ptr %b") else 2)


def test_another_type_is_another_load() -> None:
    module = read(TEXT.replace("BETWEEN", "").replace("%y = load double", "%i = load i64").replace("%x, %y", "%x, %x"))
    assert not may_repeat(module.functions["f"])
