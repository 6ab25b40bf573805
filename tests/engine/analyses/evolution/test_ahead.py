"""What an iteration computes anew, always the same, before the loop."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.ahead import Ahead
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read

TEXT = """
define i64 @f(i64 %n, i64 %m, i64 %times) {
entry:
  br label %loop
loop:
  %t = phi i64 [ 0, %entry ], [ %t.next, %latch ]
  %twice = mul i64 %m, 2
  %some = icmp ugt i64 %n, 1
  br i1 %some, label %inner, label %behind
inner:
  %i = phi i64 [ 3, %loop ], [ %i.next, %inner ]
  %left = phi i64 [ %n, %loop ], [ %left.next, %inner ]
  %i.next = add i64 %i, 5
  %left.next = sub i64 %left, 1
  %more = icmp ne i64 %left.next, 0
  br i1 %more, label %inner, label %ended
ended:
  %last = phi i64 [ %i.next, %inner ]
  br label %behind
behind:
  %start = phi i64 [ %twice, %loop ], [ %last, %ended ]
  %moved = add i64 %start, %t
  %odd = and i64 %t, 1
  %is = icmp eq i64 %odd, 0
  br i1 %is, label %one, label %latch
one:
  br label %latch
latch:
  %which = phi i64 [ %start, %one ], [ %twice, %behind ]
  %t.next = add i64 %t, 1
  %go = icmp ult i64 %t.next, %times
  br i1 %go, label %loop, label %out
out:
  ret i64 %start
}
"""


def test_what_is_known() -> None:
    module = read(TEXT)
    fn = module.functions["f"]
    ahead = Ahead(fn, get(Loops, fn).top[0])
    known = {i.name for i in fn.instructions() if i.name and ahead.before(i)}
    assert known == {"twice", "some", "last", "start"}


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_it_is_what_the_loop_computes(n: int) -> None:
    module = read(TEXT)
    fn = module.functions["f"]
    ahead = Ahead(fn, get(Loops, fn).top[0])
    start = next(i for i in fn.instructions() if i.name == "start")
    early = ahead.writer(Builder(fn.entry, len(fn.entry.instructions) - 1)).number(("value", start))
    out = next(block for block in fn.blocks if block.name == "out")
    out.instructions.pop()
    at = Builder(out)
    at.ret(at.sub(early, start, ()))
    unit = compile_module(to_text(module), ["f"])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(unit.address("f"))
    assert run(n, 4, 5) == 0
