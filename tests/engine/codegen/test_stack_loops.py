"""Loops over small arrays of the stack are marked to be written out; others are not."""

from __future__ import annotations

import re

from irgrad.engine.codegen import nvptx
from irgrad.engine.codegen.stack_loops import write_out_loops
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read

SUMS = """
define ptx_kernel void @k(ptr %x, i64 %n) {
  %a = alloca [16 x double]
  br label %turn
turn:
  %i = phi i64 [ 0, %0 ], [ %more, %turn ]
  %p = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %p
  %q = getelementptr double, ptr %a, i64 %i
  store double %v, ptr %q
  %more = add i64 %i, 1
  %go = icmp ult i64 %more, 16
  br i1 %go, label %turn, label %down
down:
  %j = phi i64 [ 15, %turn ], [ %less, %down ]
  %r = getelementptr double, ptr %a, i64 %j
  %w = load double, ptr %r
  %u = fmul double %w, %w
  %o = getelementptr double, ptr %x, i64 %j
  store double %u, ptr %o
  %less = add i64 %j, -1
  %on = icmp sgt i64 %j, 0
  br i1 %on, label %down, label %done
done:
  ret void
}
"""


def _marked(text: str) -> int:
    module = read(text)
    write_out_loops(module)
    return len(re.findall(r"br i1 [^\n]*!llvm\.loop", to_text(module)))


def test_loops_over_a_small_array_of_the_stack() -> None:
    assert _marked(SUMS) == 2
    assert _marked(SUMS.replace("%more, 16", "%more, %n")) == 1  # how often is not known
    assert _marked(SUMS.replace("[16 x double]", "[160 x double]")) == 0
    assert _marked(SUMS.replace("alloca [16 x double]", "getelementptr i8, ptr %x, i64 8")) == 0
    assert _marked(SUMS.replace("ptr %a, i64 %i", "ptr %a, i64 3")) == 1  # the subscript is the same in all turns


def test_their_elements_are_registers() -> None:
    assert "local" not in nvptx.ptx(SUMS, ["k"], "sm_80")
    assert "ld.local" in nvptx.ptx(SUMS.replace("%more, 16", "%more, %n"), ["k"], "sm_80")
