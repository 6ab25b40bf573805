"""Blocks from which a function does not return."""

from __future__ import annotations

import textwrap

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.control.never_returning import never_returning
from irgrad.engine.codegen.llvm import binding
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.dead_ends import copied_ends, dead_ends, ends_of, own_dead_ends, way_out

CHECKED = """
declare void @fail(i64) noreturn
declare void @log(double)
define double @f(ptr %x, i64 %n) {
entry:
  %none = icmp slt i64 %n, 1
  br i1 %none, label %bad, label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %more, %next ]
  %s = phi double [ 0.0, %entry ], [ %t, %next ]
  %p = getelementptr double, ptr %x, i64 %k
  %v = load double, ptr %p
  %low = fcmp olt double %v, 0.0
  br i1 %low, label %bad, label %next
next:
  %t = fadd double %s, %v
  %more = add i64 %k, 1
  %end = icmp eq i64 %more, %n
  br i1 %end, label %done, label %turn
done:
  ret double %t
bad:
  %why = phi i64 [ -1, %entry ], [ %k, %turn ]
  %low.end = icmp slt i64 %why, 0
  br i1 %low.end, label %tell, label %stop
tell:
  call void @log(double 1.0)
  br label %stop
stop:
  call void @fail(i64 %why)
  unreachable
}
"""


def _module(text: str) -> Module:
    return read(textwrap.dedent(text), roots=["f"])


def test_each_way_has_its_own() -> None:
    module = _module(CHECKED)
    fn = module.functions["f"]
    loop = get(Loops, fn).top[0]
    assert {b.name for b in never_returning(fn)} == {"bad", "tell", "stop"}
    assert way_out(fn, loop) is None and not dead_ends(fn, loop)  # the blocks are those of the check before, too
    assert own_dead_ends(fn)
    binding().parse_assembly(to_text(module)).verify()
    loop = get(Loops, fn).top[0]
    own = dead_ends(fn, loop)
    assert [b.name for b in own].count("bad") == 1 and len(own) >= 3
    left = way_out(fn, loop)
    assert left is not None and left.name == "done"
    assert not own_dead_ends(fn)


def test_what_may_go_on_is_none() -> None:
    module = _module(CHECKED.replace("  call void @fail(i64 %why)\n  unreachable", "  ret double 0.0"))
    fn = module.functions["f"]
    loop = get(Loops, fn).top[0]
    assert not never_returning(fn) and way_out(fn, loop) is None and not own_dead_ends(fn)


def test_a_loop_without_end_is_none() -> None:
    module = _module(CHECKED.replace("  call void @fail(i64 %why)\n  unreachable", "  br label %tell"))
    assert not never_returning(module.functions["f"])


ENDS = """declare void @abort()
declare void @free(ptr)
define i64 @f(i64 %n, ptr %p) {
entry:
  %some = icmp sgt i64 %n, 5
  br i1 %some, label %bad, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %a = icmp eq i64 %i, %n
  br i1 %a, label %bad, label %latch
latch:
  %next = add i64 %i, 1
  %c = icmp eq i64 %next, 9
  br i1 %c, label %out, label %loop
bad:
  %why = phi i64 [ 1, %entry ], [ %i, %loop ]
  call void @free(ptr %p)
  br label %stop
stop:
  store i64 %why, ptr %p
  call void @abort()
  unreachable
out:
  ret i64 %n
}
"""


def test_copies_of_ends_are_the_loops_own_and_free_nothing() -> None:
    fn = read(ENDS).functions["f"]
    loop = get(Loops, fn).top[0]
    part = ends_of(fn, loop)
    assert [b.name for b in part] == ["bad", "stop"]
    copies = copied_ends(loop, part)
    assert loop.header.successors[0] is copies[0] and copies[0].successors == [copies[1]]
    (why,) = copies[0].phis
    assert [b.name for b in why.blocks] == ["loop"] and copies[1].instructions[0].operands[0] is why
    assert [b.name for b in part[0].phis[0].blocks] == ["entry"]
    assert not any(i.is_call and i.callee_name == "free" for b in copies for i in b.instructions)
