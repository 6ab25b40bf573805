"""Blocks from which a function never returns, and the exits of loops from which it may."""

from __future__ import annotations

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.control.never_returning import live_exits, never_returning
from irgrad.engine.ir.text.reader import read

CHECKS = """declare void @abort()
define void @f(i1 %a, i1 %b, i1 %c) {
entry:
  br label %loop
loop:
  br i1 %a, label %bad, label %more
more:
  br i1 %b, label %early, label %latch
latch:
  br i1 %c, label %out, label %loop
bad:
  br label %stop
stop:
  call void @abort()
  unreachable
early:
  br i1 %c, label %stop, label %out
out:
  ret void
}
"""


def test_an_exit_that_only_stops_is_none_by_which_a_loop_ends() -> None:
    fn = read(CHECKS).functions["f"]
    assert {b.name for b in never_returning(fn)} == {"bad", "stop"}
    loop = Loops(Cfg(fn)).top[0]
    assert {b.name for b in loop.exits} == {"bad", "early", "out"}
    assert {b.name for b in live_exits(fn, loop)} == {"early", "out"}
