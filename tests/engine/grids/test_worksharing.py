"""Worksharing loops of OpenMP: which are marked, and which a thread keeps to itself."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.independent import worksharing_loops
from irgrad.engine.grids.worksharing import mark_worksharing
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module

TEXT = """
declare void @__kmpc_for_static_init_8(ptr, i32, i32, ptr, ptr, ptr, ptr, i64, i64)
define void @f(ptr %is, ptr %low, ptr %upper, ptr %step) {
entry:
  call void @__kmpc_for_static_init_8(ptr null, i32 0, i32 34, ptr %is, ptr %low, ptr %upper, ptr %step, i64 1, i64 1)
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %top = load i64, ptr %upper, align 8
  %c = icmp sle i64 %i, %top
  br i1 %c, label %body, label %done
body:
  br label %inner
inner:
  %k = phi i64 [ 0, %body ], [ %l, %inner ]
  WORK
  %l = add i64 %k, 1
  %d = icmp eq i64 %l, 9
  br i1 %d, label %next, label %inner
next:
  %j = add i64 %i, 1
  br label %head, !llvm.loop !0
done:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.mustprogress"}
"""


def test_the_loop_of_the_upper_bound_is_marked() -> None:
    made = mark_worksharing(TEXT.replace("WORK", ""))
    assert worksharing_loops(made) == ["!0"] and made.count("!llvm.loop ") == 1
    assert verify_module(read(made)) == []
    bare = mark_worksharing(TEXT.replace("WORK", "").replace(", !llvm.loop !0", ""))
    assert len(worksharing_loops(bare)) == 1 and "br label %head, !llvm.loop " in bare


@pytest.mark.parametrize("work", ["fence seq_cst", "call void @__kmpc_barrier(ptr null, i32 0)", "call void @waits()"])
def test_loops_in_which_threads_meet_are_not(work: str) -> None:
    more = ("declare void @__kmpc_barrier(ptr, i32)\ndefine void @waits() {\n"
            "  call void @__kmpc_barrier(ptr null, i32 0)\n  ret void\n}\n")  # fmt: skip
    text = more + TEXT.replace("WORK", work)
    assert mark_worksharing(text).partition("irgrad.loop")[1] == "" and worksharing_loops(text) == []


def test_other_modules_stay_as_they_are() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert mark_worksharing(text) is text
