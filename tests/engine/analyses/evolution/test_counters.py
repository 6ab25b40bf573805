"""Counters that go on by themselves, and loops of which the counters do not."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.counters import advance, following, only_counters
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.ir.text.reader import read

TEXT = """
define void @f(ptr %x, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %back ]
  %k = phi i32 [ 5, %entry ], [ %k1, %back ]
  %last = phi i64 [ 9, %entry ], [ %i, %back ]
  %twice = shl i64 %i, 1
  %p = getelementptr i64, ptr %x, i64 %i
  %v = load i64, ptr %p, align 8
  br label %back
back:
  %narrow = trunc i64 %twice to i32
  %k1 = add i32 %k, %narrow
  %i1 = add i64 %i, %step
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def _loop(text: str) -> Loop:
    fn = read(text, roots=["f"]).functions["f"]
    (loop,) = Loops(Cfg(fn)).all
    return loop


def test_the_next_values() -> None:
    """Computed again from given values of the phis, in the order of what needs what."""
    loop = _loop(TEXT)
    assert only_counters(loop)
    assert loop.latch is not None
    block = Block()
    given = [ConstInt(ty.I64, 3), ConstInt(ty.I32, 7), ConstInt(ty.I64, 1)]
    table: dict[Value, Value] = dict(zip(loop.header.phis, given, strict=True))
    advance(Builder(block), loop, following(loop, loop.latch), table)
    assert [i.opcode for i in block.instructions].count("add") == 2
    assert {i.opcode for i in block.instructions} == {"add", "shl", "trunc"}
    new = [table.get(v, v) for v in following(loop, loop.latch)]
    step = loop.header.function.args[2]  # type: ignore[union-attr]
    assert isinstance(new[0], Instruction)
    assert new[0].operands == [given[0], step]
    assert new[2] is given[0], "what one phi hands to another"
    inside = set(loop.blocks)
    assert not any(isinstance(o, Instruction) and o.block in inside for i in block.instructions for o in i.operands)


@pytest.mark.parametrize(
    ("old", "new"),
    [("add i64 %i, %step", "add i64 %i, %v"), ("icmp slt i64 %i1, %n", "icmp slt i64 %v, %n"),
     ("add i32 %k, %narrow", "sdiv i32 %k, %narrow")],
)  # fmt: skip
def test_what_does_not_go_on_by_itself(old: str, new: str) -> None:
    """Loads, and what may trap."""
    assert not only_counters(_loop(TEXT.replace(old, new)))
