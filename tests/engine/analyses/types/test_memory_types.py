"""Byte layouts: structs, unions, integers that carry floats, copied memory."""

from __future__ import annotations

import pytest
from analysed import facts_of, facts_of_c, named

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT, PTR
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.ir.types import F32, F64

MIXED = """
#include <stdlib.h>
#include <string.h>
struct item { double w; int id; float g; struct item *link; double tail[2]; };
void mixed(struct item *in, struct item *out, int *n) {
  struct item *copy = malloc(sizeof(struct item) * *n);
  memcpy(copy, in, sizeof(struct item) * *n);
  for (int i = 0; i < *n; i++) {
    copy[i].w *= copy[i].g; copy[i].id += 3; copy[i].link = copy; copy[i].tail[i & 1] = copy[i].w;
  }
  memcpy(out, copy, sizeof(struct item) * *n);
  free(copy);
}
"""


def test_struct_arrays_have_a_periodic_layout() -> None:
    facts = facts_of_c(MIXED, "mixed", {0, 1})
    for i in (0, 1):
        pattern = facts.types.region(facts.root.args[i])
        assert pattern.period == 40
        assert pattern.fields == ((0, F64), (8, INT), (12, F32), (16, PTR), (24, F64), (32, F64))


SORT = """
struct rec { double key; long id; float w; int tag; };
void sort(struct rec *r, int *n, double *out) {
  for (int i = 1; i < *n; i++)
    for (int j = i; j > 0 && r[j].key < r[j - 1].key; j--) { struct rec t = r[j]; r[j] = r[j - 1]; r[j - 1] = t; }
  *out = r[0].key * r[1].w + r[0].tag * r[2].id;
}
"""


def test_sorted_structs_and_their_copies() -> None:
    facts = facts_of_c(SORT, "sort", {0, 2})
    pattern = facts.types.region(facts.root.args[0])
    assert pattern.period == 24
    assert pattern.fields == ((0, F64), (8, INT), (16, F32), (20, INT))


COPIED = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds i64, ptr %x, i64 %i
  %bits = load i64, ptr %p
  %q = getelementptr inbounds i64, ptr %y, i64 %i
  store i64 %bits, ptr %q
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 10
  br i1 %done, label %end, label %loop
end:
  %z = load double, ptr %y
  %w = fmul double %z, %z
  store double %w, ptr %y
  ret void
}
"""


def test_integers_carry_what_memory_holds() -> None:
    facts = facts_of(COPIED, "f", {0, 1})
    bits = named(facts.root, "bits")
    assert facts.types.carries(bits) is F64
    assert facts.types.access(facts.root.args[0], 8) == ((0, F64),)
    assert facts.types.region(facts.root.args[0]).fields == ((0, F64),)
    assert facts.activity.value(bits)
    assert facts.types.carries(named(facts.root, "i")) is INT


UNION = """
#include <stdint.h>
union pun { double d; uint64_t u; };
void absolute(double *x, double *out) {
  for (int i = 0; i < 8; i++) { union pun p; p.d = x[i]; p.u &= 0x7fffffffffffffffULL; out[i] = p.d * x[i]; }
}
"""


def test_bit_tricks_on_a_union_stay_floats() -> None:
    facts = facts_of_c(UNION, "absolute", {0, 1})
    assert facts.types.region(facts.root.args[0]).uniform is F64


CLASH = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %a = load double, ptr %x
  %h = getelementptr i8, ptr %x, i64 4
  %b = load float, ptr %h
  %c = load ptr, ptr %y
  %d = load double, ptr %y
  store double %d, ptr %c
  ret void
}
"""


def test_contradictions_are_reported_as_such() -> None:
    facts = facts_of(CLASH, "f", {0, 1})
    assert any(kind is CONFLICT for _, kind in facts.types.access(facts.root.args[0], 8))
    assert any(kind is CONFLICT for _, kind in facts.types.access(facts.root.args[1], 8))


def test_nothing_is_guessed() -> None:
    text = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %bits = load i64, ptr %x
  store i64 %bits, ptr %y
  ret void
}
"""
    facts = facts_of(text, "f", {0, 1})
    assert facts.types.access(facts.root.args[0], 8) == ()
    assert facts.types.carries(named(facts.root, "bits")) is None


HEADER = """
#include <stdlib.h>
struct vec { int n; int pad; double data[]; };
void header(double *x, int *n, double *out) {
  struct vec *v = malloc(8 + 8 * *n);
  v->n = *n;
  for (int i = 0; i < v->n; i++) v->data[i] = x[i] * 2;
  double s = 0;
  for (int i = 0; i < v->n; i++) s += v->data[i];
  *out = s * v->n; free(v);
}
"""


def test_a_header_before_an_array_keeps_its_type() -> None:
    facts = facts_of_c(HEADER, "header", {0, 2})
    heap = next(o for o in facts.pointers.objects if o.kind == "heap")
    malloc = heap.site
    assert malloc is not None
    assert facts.types.access(malloc, 16) in (((0, INT), (8, F64)), ((8, F64),))


def test_an_index_without_bounds_gives_way_to_what_is_known_at_a_place() -> None:
    """Pointers somewhere in a record, a double and a count at known places of it; the copy knows the same."""
    text = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias %x, ptr noalias %i, ptr noalias %y) {
entry:
  %a = alloca [5 x i64]
  %b = alloca [5 x i64]
  %n = load i32, ptr %i
  %k = and i32 %n, 3
  %w = zext i32 %k to i64
  %at = getelementptr ptr, ptr %a, i64 %w
  store ptr %x, ptr %at
  %d = getelementptr i8, ptr %a, i64 16
  %v = load double, ptr %x
  store double %v, ptr %d
  %c = getelementptr i8, ptr %a, i64 24
  store i32 %n, ptr %c, !tbaa !0
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 40, i1 false)
  %e = getelementptr i8, ptr %b, i64 16
  %r = load double, ptr %e
  store double %r, ptr %y
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"int", !2, i64 0}
!2 = !{!"omnipotent char", !3, i64 0}
!3 = !{!"Simple C/C++ TBAA"}
"""
    facts = facts_of(text, "f", {0, 2})
    for name in ("a", "b"):
        layout = dict(facts.types.access(named(facts.root, name), 40))
        assert layout[16] is F64
        assert layout[24] is INT
        assert layout[0] is PTR


NEIGHBOURS = """
struct matrix { double *data; long rows; };
struct several { struct matrix a; long at; struct matrix b, c, d; };
__attribute__((noinline)) void set(struct matrix *m, double *data, long rows) {
  if (m->rows != rows) m->rows = rows;
  m->data = data;
}
void neighbours(struct several *s, double *x, long *n) {
  set(&s->a, x, *n); set(&s->b, x + 1, *n - 3); set(&s->c, x + 2, *n - 4); set(&s->d, x, 1);
}
"""


def test_the_number_beside_a_pointer_is_no_pointer() -> None:
    """Where one function serves several structs, the places of each are known."""
    facts = facts_of_c(NEIGHBOURS, "neighbours", {1})
    setter = facts.pointers.module.functions["set"]
    (rows,) = [i for i in setter.instructions() if i.opcode == "load"]
    assert [kind for _, kind in facts.types.access(rows.operands[0], 8)] == [INT]
    assert facts.types.carries(rows) is INT


MEMBER = """
define void @f(ptr %x, ptr %k) {
  %a = alloca [3 x double], align 8
  %d = load double, ptr %x, align 8, !tbaa !0
  store double %d, ptr %a, align 8, !tbaa !0
  %at = load i64, ptr %k, align 8
  %p = getelementptr i8, ptr %a, i64 %at
  %vtable = load ptr, ptr %p, align 8, !tbaa !3
  %none = icmp eq ptr %vtable, null
  call void @llvm.assume(i1 %none)
  ret void
}
declare void @llvm.assume(i1)
!0 = !{!1, !1, i64 0}
!1 = !{!"double", !2, i64 0}
!2 = !{!"Simple C++ TBAA"}
!3 = !{!4, !4, i64 0}
!4 = !{!"vtable pointer", !2, i64 0}
"""


def test_a_table_of_virtual_functions_that_may_be_anywhere_says_nothing() -> None:
    """A call through a pointer to a member looks for one where the object begins, an offset that is not known."""
    facts = facts_of(MEMBER, "f", {0})
    assert facts.types.access(named(facts.root, "a"), 24) == ((0, F64), (8, F64), (16, F64))
    other = facts_of(MEMBER.replace('"vtable pointer"', '"any pointer"'), "f", {0})
    assert any(kind in (PTR, CONFLICT) for _, kind in other.types.access(named(other.root, "a"), 24))


ALTERNATING = """
#include <stdlib.h>
struct rec { double key; void *a; int id; float w; void *b; };
void alternate(double *x, int *n, double *out) {
  struct rec *r = malloc(sizeof *r * *n);
  for (int i = 0; i < *n; i++) { r[i].key = x[i]; r[i].a = r; r[i].b = x; r[i].id = i; r[i].w = (float)x[i]; }
  for (int i = 0; i < *n; i++) out[i] = ((struct rec *)r[i].a)->key * *(double *)r[i].b + r[i].w * r[i].id;
  free(r);
}
"""


def test_members_of_one_kind_at_equal_distances_are_no_shorter_period() -> None:
    facts = facts_of_c(ALTERNATING, "alternate", {0, 2})
    (heap,) = [obj for obj in facts.pointers.objects if obj.kind == "heap"]
    pattern = facts.layout(heap)
    assert pattern.period == 32
    assert pattern.fields == ((0, F64), (8, PTR), (16, INT), (20, F32), (24, PTR))


BITS = """
#include <stdint.h>
#include <string.h>
void bits(double *x, long *n, double *out) {
  uint64_t w[8], counts[8];
  for (long i = 0; i < *n; i++) {
    double d = x[i] * x[i];
    memcpy(&w[i], &d, 8);
    counts[i] = i;
  }
  w[6] = counts[6] = 3;
  w[6] ^= counts[5];
  counts[6] ^= counts[5];
  w[1] ^= w[2];
  *out = 0;
  for (long i = 0; i < *n; i++) {
    double d;
    memcpy(&d, &w[i], 8);
    *out += d * w[6] * counts[6];
  }
}
"""


def test_what_is_computed_with_is_an_integer_where_no_bytes_are_written() -> None:
    """Elsewhere it is the bits of the floats that an index without bounds may have put there."""
    facts = facts_of_c(BITS, "bits", {0, 2})
    words, counts = (o for o in facts.pointers.objects if o.kind == "alloca" and o.size == 64)
    kinds = dict(facts.types.record(words.index).layout(Offsets(0), 64))
    assert all(kinds[at] is F64 for at in range(0, 64, 8))
    assert dict(facts.types.record(counts.index).layout(Offsets(48), 8))[0] is INT


STACK = """
typedef struct { double items[16]; long top, seed; } stack;
void push_and_pop(double *x, stack *s, double *out) {
  s->top = 0;
  s->items[s->top] = *x;
  s->top += 1;
  s->seed = 5;
  *out = s->items[s->top - 1] + s->seed;
}
"""


def test_subscripts_are_integers_whatever_an_index_may_reach() -> None:
    """Without the types of the source: only what says where in memory something is certainly is no float there."""
    flags = ("-fno-strict-aliasing", "-O0", "-Xclang", "-disable-O0-optnone")
    facts = facts_of_c(STACK, "push_and_pop", {0, 1, 2}, *flags)
    heap = facts.pointers.object_of[facts.root.args[1]]
    kinds = dict(facts.types.record(heap.index).layout(Offsets(0), 144))
    assert kinds[128] is INT and kinds[136] is F64


QUEUE = """
declare ptr @malloc(i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %n) {
entry:
  %queue = call ptr @malloc(i64 400)
  %size = load i64, ptr %n
  %d = load double, ptr %x
  %last = getelementptr i8, ptr %queue, i64 320
  store double %d, ptr %last
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %second = getelementptr i8, ptr %queue, i64 8
  call void @llvm.memmove.p0.p0.i64(ptr %queue, ptr %second, i64 %size, i1 false)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 40
  br i1 %more, label %loop, label %done
done:
  %bits = load i64, ptr %queue
  store i64 %bits, ptr %y
  ret void
}
"""


def test_a_copy_within_its_memory_hands_on_to_every_distance() -> None:
    """Forty turns bring the number from the end of the queue to its front: no number of rounds is enough to follow."""
    facts = facts_of(QUEUE, "f", {0, 1})
    assert facts.types.carries(named(facts.root, "bits")) is F64
    assert facts.types.access(facts.root.args[1], 8) == ((0, F64),)


AT_BYTES = """
declare ptr @malloc(i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias %x, i64 %k, i64 %n) {
  %h = call ptr @malloc(i64 %n)
  %a = load double, ptr %x, align 8
  %at = getelementptr double, ptr %h, i64 %k
  store double %a, ptr %at, align 8
  %p = getelementptr i8, ptr %h, i64 %k
  call void @llvm.memmove.p0.p0.i64(ptr SAID %h, ptr SAID %p, i64 %n, i1 false)
  ret void
}
"""


@pytest.mark.parametrize(("said", "whole"), [("align 8", True), ("", False)])
def test_copies_are_where_they_are_said_to_be_aligned(said: str, whole: bool) -> None:
    facts = facts_of(AT_BYTES.replace("SAID", said), "f", {0})
    pointer = next(i for i in facts.root.instructions() if i.name == "p")
    assert (facts.types.region(pointer, align=8 if whole else 1).fields == ((0, F64),)) is whole
