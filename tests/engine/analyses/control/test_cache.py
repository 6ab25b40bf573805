"""Analyses are made once for the same control flow, and anew for another; nobody says so."""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators, PostDominators
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.text.reader import read

TEXT = """
define void @f(i1 %c, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %j = add i64 %i, 1
  %on = icmp ult i64 %j, %n
  br i1 %on, label %loop, label %end
end:
  ret void
}
"""


def _function() -> Function:
    return read(TEXT).functions["f"]


def test_made_once_of_one_another() -> None:
    fn = _function()
    loops = get(Loops, fn)
    assert get(Loops, fn) is loops and loops.cfg is get(Cfg, fn) and loops.dom is get(Dominators, fn)
    assert get(PostDominators, fn).cfg is get(Cfg, fn)
    assert get(Loops, _function()) is not loops


def test_instructions_change_nothing() -> None:
    fn = _function()
    cfg = get(Cfg, fn)
    del fn.blocks[1].instructions[2].operands[1:]
    fn.blocks[1].instructions.insert(1, fn.blocks[1].instructions[1])
    assert get(Cfg, fn) is cfg


def test_an_edge_that_changed_is_noticed() -> None:
    fn = _function()
    assert len(get(Loops, fn).all) == 1
    fn.blocks[1].terminator.blocks[0] = fn.blocks[2]  # in place, in the terminator
    assert not get(Loops, fn).all and get(Cfg, fn).preds(fn.blocks[1]) == [fn.blocks[0]]


def test_a_block_that_went_is_noticed() -> None:
    fn = _function()
    before = get(Dominators, fn)
    fn.blocks[0].terminator.blocks[0] = fn.blocks[2]
    del fn.blocks[1]
    assert get(Dominators, fn) is not before and len(get(Cfg, fn).rpo) == 2
