"""Values of a loop that are computed before it."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.preheader import before, can_leave, numbers_leave

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


def test_what_is_made_of_floats_that_stay_stays_as_well() -> None:
    fn = read("""define void @f(double %x, i64 %n, ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %part = fmul double %x, 3.0
  %less = fcmp olt double %part, 1.0
  %two = mul i64 %n, 2
  store double %part, ptr %p
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %two
  br i1 %end, label %out, label %loop
out:
  ret void
}
""").functions["f"]
    loops = Loops(Cfg(fn))
    numbers_leave(loops.top[0], loops)
    where = {instr.name: instr.block.name for instr in fn.instructions() if instr.name and instr.block}
    assert where["two"] == "entry"
    assert (where["part"], where["less"]) == ("loop", "loop")


BRANCH = """#include <math.h>
static __attribute__((noinline)) void g(const double *x, double *w, long n) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j <= i; j++) w[i] = x[n-1-i] > 0.3 * x[i] ? sin(x[n-1-i]) : 0.7 * cos(0.3 * x[i]);
}
double f(const double *x, long n) {
  double w[64], s = 0;
  for (int twice = 0; twice < 2; twice++) {
    g(x, w, n);
    for (long i = 0; i < n; i++) s += w[i] * 0.5;
  }
  return s;
}
"""


@pytest.mark.parametrize("inlined", [False, True])
def test_a_branch_on_floats_in_an_inner_loop(inlined: bool) -> None:
    source = BRANCH.replace("__attribute__((noinline))", "") if inlined else BRANCH
    kernel = irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.linspace(-0.5, 1, 20)
    differences = [(kernel(x + 1e-6 * e) - kernel(x - 1e-6 * e)) / 2e-6 for e in np.eye(20)]
    np.testing.assert_allclose(irgrad.grad(kernel, wrt="x")(x), differences, atol=1e-7)
