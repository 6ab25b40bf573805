"""What copies of memory that holds several pointers bring where."""

from __future__ import annotations

import pytest
from analysed import facts_of, named

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.ir.model import Value

HEAD = """
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
!0 = !{!"root"}
!1 = !{!"omnipotent char", !0, i64 0}
!2 = !{!"any pointer", !1, i64 0}
!3 = !{!"p1 A", !2, i64 0}
!4 = !{!"p1 B", !2, i64 0}
!5 = !{!3, !3, i64 0}
!6 = !{!4, !4, i64 0}
!7 = !{!"long", !1, i64 0}
!8 = !{!7, !7, i64 0}
"""


def _to(facts: Facts, value: Value) -> set[str | None]:
    mask = facts.pointers.of(value)
    return {None if o.site is None else o.site.name for o in facts.pointers.objects if mask >> o.index & 1}


TYPED = (
    HEAD
    + """
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {
  %a = call ptr @malloc(i64 8)
  %b = call ptr @malloc(i64 8)
  %from = call ptr @malloc(i64 64)
  %to = call ptr @malloc(i64 64)
  %two = alloca [2 x ptr], align 8
  %two1 = getelementptr i8, ptr %two, i64 8
  store ptr %a, ptr %two
  store ptr %b, ptr %two1
  %many = load i64, ptr %n
  %fa = getelementptr i8, ptr %from, i64 %many
  store ptr %a, ptr %fa, !tbaa !5
  %more = mul i64 %many, 8
  %fb = getelementptr i8, ptr %from, i64 %more
  store ptr %b, ptr %fb, !tbaa !6
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 SIZE, i1 false)
  %ta = getelementptr i8, ptr %to, i64 %many
  %p = load ptr, ptr %ta, !tbaa !5
  %v = load double, ptr %x
  store double %v, ptr %p
  %w = load double, ptr %p
  store double %w, ptr %y
  ret void
}
"""
)


@pytest.mark.parametrize(("size", "found"), [("64", {"a"}), ("%many", {"a"}), ("8", {"a", "b"})])
def test_a_copy_of_several_pointers_keeps_their_types(size: str, found: set[str | None]) -> None:
    facts = facts_of(TYPED.replace("SIZE", size), "f", {0, 2})
    assert _to(facts, named(facts.root, "p")) == found, "one pointer alone may become one to another type"


TEXTS = (
    HEAD
    + """
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {
  %s = alloca [3 x i64], align 8
  %t = alloca [3 x i64], align 8
  %text = call ptr @malloc(i64 100)
  %node = call ptr @malloc(i64 16)
  %s2 = getelementptr i8, ptr %s, i64 16
  store ptr %text, ptr %s2
  %t1 = getelementptr i8, ptr %t, i64 8
  %t2 = getelementptr i8, ptr %t, i64 16
  store i64 3, ptr %t1, !tbaa !8
  store ptr %node, ptr %t2
  %many = load i64, ptr %n
  %long = icmp sgt i64 %many, 22
  %short = getelementptr i8, ptr %s, i64 1
  %data = load ptr, ptr %s2
  %p = select i1 %long, ptr %data, ptr %short
  %q = getelementptr i8, ptr %p, i64 1
  call void @llvm.memmove.p0.p0.i64(ptr %q, ptr %p, i64 %many, i1 false)
  %s1 = getelementptr i8, ptr %s, i64 8
  %length = load i64, ptr %s1
  %again = load ptr, ptr %s2
  %other = load ptr, ptr %t2
  %size = load i64, ptr %t1
  %sum = add i64 %length, %size
  %v = load double, ptr %x
  %k = sitofp i64 %sum to double
  store double %v, ptr %other
  %w = load double, ptr %other
  %z = fmul double %w, %k
  store double %z, ptr %y
  ret void
}
"""
)


def test_what_is_moved_by_a_byte_in_a_text_with_room_of_its_own_brings_no_pointer_into_its_length() -> None:
    facts = facts_of(TEXTS, "f", {0, 2})
    assert _to(facts, named(facts.root, "again")) == {"text"}
    assert _to(facts, named(facts.root, "other")) == {"node"}
    assert not facts.pointers.of(named(facts.root, "length"))
    assert not facts.pointers.of(named(facts.root, "size"))


FROM_VARIABLE = (
    HEAD
    + """
@g = internal global [3 x ptr] zeroinitializer
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {
  %a = call ptr @malloc(i64 8)
  %b = call ptr @malloc(i64 8)
  %to = call ptr @malloc(i64 24)
  %back = alloca [3 x ptr], align 8
  %last = getelementptr i8, ptr @g, i64 16
  store ptr %a, ptr @g, !tbaa !5
  store ptr %b, ptr %last, !tbaa !6
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr @g, i64 24, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %back, ptr %to, i64 24, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %back, i64 24, i1 false)
  %there = getelementptr i8, ptr %back, i64 16
  %p = load ptr, ptr %to, !tbaa !5
  %q = load ptr, ptr %there, !tbaa !6
  %r = load ptr, ptr %last, !tbaa !6
  %v = load double, ptr %x
  store double %v, ptr %p
  store double %v, ptr %q
  %w = load double, ptr %r
  store double %w, ptr %y
  ret void
}
"""
)


def test_what_is_copied_out_of_a_variable_gets_there() -> None:
    facts = facts_of(FROM_VARIABLE, "f", {0, 2})
    assert _to(facts, named(facts.root, "p")) >= {"a"}
    assert _to(facts, named(facts.root, "q")) >= {"b"}
    assert _to(facts, named(facts.root, "r")) >= {"b"}
