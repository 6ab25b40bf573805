"""Values of a loop that are computed before it."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.preheader import before, can_leave

TEXT = """define void @f(i64 %n, i64 %m, ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = add nsw i64 %n, %m
  %twice = mul nsw i64 %sum, 2
  %part = sdiv i64 %n, %m
  %held = load i64, ptr %p
  %moving = add i64 %i, %n
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %out, label %loop
out:
  ret void
}
"""


def _named(name: str) -> tuple[Loops, Instruction]:
    fn = read(TEXT).functions["f"]
    return Loops(Cfg(fn)), next(instr for instr in fn.instructions() if instr.name == name)


@pytest.mark.parametrize(
    ("name", "leaves"),
    [("sum", True), ("twice", True), ("part", False), ("held", False), ("moving", False), ("i", False)],
)
def test_what_can_leave(name: str, leaves: bool) -> None:
    loops, value = _named(name)
    assert can_leave(value, loops.top[0]) is leaves


@pytest.mark.parametrize("runs", [True, False])
def test_promises_are_kept_where_they_hold(runs: bool) -> None:
    loops, value = _named("twice")
    (loop,) = loops.top
    assert loop.preheader is not None
    place = Builder(loop.preheader, 0)
    made: dict[Value, Value] = {}
    new = before(value, loop, place, made, runs=runs)
    assert before(value, loop, place, made, runs=runs) is new
    assert [i.opcode for i in loop.preheader.instructions] == ["add", "mul", "br"]
    assert isinstance(new, Instruction) and new.flags == (("nsw",) if runs else ())
