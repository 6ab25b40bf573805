"""How far accesses reach and when blocks run, asked in front of a function."""

from __future__ import annotations

import operator

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.affine import constant_value
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.enzyme.early_values import EarlyValues, UnknownError
from irgrad.engine.enzyme.reach import Reach
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Value
from irgrad.engine.ir.text.reader import read

TEXT = """
define void @f(i64 %a, i64 %b, ptr %p) {
entry:
  %low = icmp slt i64 %a, 3
  br i1 %low, label %left, label %right
left:
  br label %both
right:
  %equal = icmp eq i64 %b, 7
  br i1 %equal, label %both, label %out
both:
  %m = load i64, ptr %p
  %asked = icmp sgt i64 %m, 0
  br i1 %asked, label %inside, label %out
inside:
  br label %out
out:
  ret void
}
"""


COMPARED = {"slt": operator.lt, "sge": operator.ge, "eq": operator.eq, "ne": operator.ne}
JOINED = {"and": operator.and_, "or": operator.or_}


def _runs(name: str, *numbers: int) -> bool:
    """Whether the condition under which a block runs holds for two numbers."""
    fn = read(TEXT, roots=["f"]).functions["f"]
    reach = Reach(fn, Induction(fn), get(Loops, fn))
    block = next(b for b in fn.blocks if b.name == name)
    before = Block("before")
    found = reach.runs(EarlyValues(Builder(before), fn.args, frozenset({0, 1})), block, [], {})
    known: dict[Value, int] = dict(zip(fn.args, numbers, strict=False))
    for instr in before.instructions:
        one, two = (known[o] if o in known else int(str(constant_value(o))) for o in instr.operands)
        known[instr] = int((COMPARED[instr.pred] if instr.pred else JOINED[instr.opcode])(one, two))
    return found is None or bool(known[found])


@pytest.mark.parametrize(("a", "b"), [(1, 7), (1, 0), (3, 7), (3, 0)])
def test_when_a_block_runs(a: int, b: int) -> None:
    """Always, by one branch, or by one of several ways."""
    found = {name: _runs(name, a, b) for name in ("entry", "out", "left", "right", "both")}
    assert found == {"entry": True, "out": True, "left": a < 3, "right": a >= 3, "both": a < 3 or b == 7}


def test_a_condition_that_is_not_known_before_is_none() -> None:
    with pytest.raises(UnknownError):
        _runs("inside", 1, 7)
