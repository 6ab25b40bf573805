"""Memory that is only copied on has the cells of what it is copied from, and to."""

from __future__ import annotations

import pytest
from analysed import facts_of, named

THROUGH = """
define void @f(ptr noalias %x, ptr noalias %out) {
  %from = alloca [32 x i8], align 8
  %middle = alloca [24 x i8], align 8
  %to = alloca [40 x i8], align 8
  %from8 = getelementptr i8, ptr %from, i64 8
  store ptr %x, ptr %from8, align 8
  %from16 = getelementptr i8, ptr %from, i64 16
  store i64 7, ptr %from16, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %middle, ptr %from8, i64 LENGTH, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %middle, i64 24, i1 false)
  %p = load ptr, ptr %to, align 8
  %to8 = getelementptr i8, ptr %to, i64 8
  %n = load i64, ptr %to8, align 8
  %q = getelementptr double, ptr %p, i64 %n
  %v = load double, ptr %q, align 8
  store double %v, ptr %out, align 8
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@pytest.mark.parametrize("length", ["16", "24"])
def test_a_struct_on_its_way_through_a_temporary(length: str) -> None:
    facts = facts_of(THROUGH.replace("LENGTH", length), "f", {0, 1})
    points = facts.pointers
    assert points.of(named(facts.root, "p")) == points.of(facts.root.args[0])
    assert not points.of(named(facts.root, "n"))


OFTEN = """
define void @f(ptr noalias %x, ptr noalias %out) {
  %a = alloca [16 x i8], align 8
  %b = alloca [1024 x i8], align 8
  store ptr %x, ptr %a, align 8
  %a8 = getelementptr i8, ptr %a, i64 8
  store i64 7, ptr %a8, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %to = getelementptr i8, ptr %b, i64 %i
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %a, i64 16, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %b, ptr %to, i64 16, i1 false)
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %end
end:
  %p = load ptr, ptr %b, align 8
  %v = load double, ptr %p, align 8
  store double %v, ptr %out, align 8
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def test_places_that_are_not_known_tell_nothing() -> None:
    facts = facts_of(OFTEN, "f", {0, 1})
    points = facts.pointers
    assert points.of(named(facts.root, "p")) & points.of(facts.root.args[0])
