"""Offsets of pointers object by object: linked structures, counters beside pointers, growing arrays, copies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from analysed import all_of, facts_of, facts_of_c, named

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.held_pointers import HeldPointers, Read
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.analyses.memory.pointer_offsets import PointerSpots
from irgrad.engine.analyses.memory.spots import Place, Spots
from irgrad.engine.analyses.memory.strided_sets import TOP, ZERO, Offsets, contains
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction

RING = """
#include <stdlib.h>
struct link { struct link *next, *prev; };
struct node { struct link at; double value; };
struct ring { long count; struct link end; };
void f(double *x, double *out) {
  struct ring r; r.count = 0; r.end.next = r.end.prev = &r.end;
  for (int i = 0; i < 4; i++) {
    struct node *n = malloc(sizeof *n);
    n->value = x[i];
    n->at.prev = r.end.prev; n->at.next = &r.end;
    r.end.prev->next = &n->at; r.end.prev = &n->at;
    r.count += 1;
  }
  double s = 0;
  for (struct link *l = r.end.next; l != &r.end; l = l->next) s += ((struct node *)l)->value * r.count;
  *out = s;
}
"""


def _heap(facts: Facts) -> Object:
    (found,) = [o for o in facts.pointers.objects if o.kind == "heap"]
    return found


def test_links_to_nodes_and_to_the_header_are_kept_apart() -> None:
    facts = facts_of_c(RING, "f", {0, 1})
    heap = _heap(facts)
    assert facts.layout(heap) == ((0, ty.PTR), (8, ty.PTR), (16, ty.F64))
    walks = [i for i in all_of(facts, "load") if i.type.is_fp and facts.pointers.of(i.operands[0]) >> heap.index & 1]
    assert walks
    for load in walks:
        assert facts.types.ranges.places(load.operands[0])[heap.index] == Offsets(16)


def test_a_counter_beside_pointers_moves_none_of_them() -> None:
    facts = facts_of_c(RING, "f", {0, 1})
    (ring,) = [o for o in facts.pointers.objects if o.kind == "alloca" and o.size == 24]
    for load in all_of(facts, "load"):
        if load.type.is_ptr:
            for places in facts.types.ranges.places(load).values():
                assert places.exact
    assert all(where.exact for where, *_ in facts.types.record(ring.index).evidence)


GROWS = """
#include <stdlib.h>
struct list { double *begin, *end; };
void f(double *x, long *n, double *out) {
  struct list l = {0, 0};
  for (long i = 0; i < *n; i++) {
    long used = l.end - l.begin;
    double *fresh = malloc((used + 1) * sizeof(double));
    for (long k = 0; k < used; k++) fresh[k] = l.begin[k];
    fresh[used] = x[i];
    l.begin = fresh; l.end = fresh + used + 1;
  }
  double s = 0; for (double *p = l.begin; p < l.end; p++) s += *p;
  *out = s;
}
"""


def test_an_array_that_starts_from_null_grows_by_whole_elements() -> None:
    facts = facts_of_c(GROWS, "f", {0, 2})
    layout = facts.layout(_heap(facts))
    assert str(layout) == "[0: double] every 8 bytes"


MOVED = """
define void @f(ptr %x, ptr %out) {
  %a = alloca [2 x ptr]
  %b = alloca [3 x ptr]
  %h = call ptr @malloc(i64 32)
  %h8 = getelementptr i8, ptr %h, i64 8
  %a8 = getelementptr i8, ptr %a, i64 8
  store ptr %h, ptr %a
  store ptr %h8, ptr %a8
  %b8 = getelementptr i8, ptr %b, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %b8, ptr %a, i64 16, i1 false)
  %b16 = getelementptr i8, ptr %b, i64 16
  %p = load ptr, ptr %b16
  %q = load ptr, ptr %b8
  %v = load double, ptr %x
  store double %v, ptr %p
  store double %v, ptr %q
  ret void
}
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def test_copies_carry_what_memory_holds_to_its_new_place() -> None:
    facts = facts_of(MOVED, "f", {0, 1})
    heap = _heap(facts).index
    places = {i.name: facts.types.ranges.places(i) for i in all_of(facts, "load") if i.type.is_ptr}
    assert places == {"p": {heap: Offsets(8)}, "q": {heap: ZERO}}


CAST = """
@_ZTV1A = constant [3 x ptr] zeroinitializer
@_ZTV1B = constant [3 x ptr] zeroinitializer
@_ZTI1A = external constant ptr
define void @f(ptr noalias %x, ptr noalias %out) {
  %o = call ptr @malloc(i64 40)
  store ptr @_ZTV1A, ptr %o
  %m = getelementptr i8, ptr %o, i64 8
  %d = load double, ptr %x
  store double %d, ptr %m
  %b = getelementptr i8, ptr %o, i64 24
  store ptr @_ZTV1B, ptr %b
  %q = call ptr @__dynamic_cast(ptr %b, ptr @_ZTI1A, ptr @_ZTI1A, i64 -1)
  %qi = ptrtoint ptr %q to i64
  %bi = ptrtoint ptr %b to i64
  %by = sub i64 %qi, %bi
  %p = getelementptr i8, ptr %b, i64 %by
  %r = call ptr @__dynamic_cast(ptr %x, ptr @_ZTI1A, ptr @_ZTI1A, i64 -1)
  %pm = getelementptr i8, ptr %p, i64 8
  %v = load double, ptr %pm
  store double %v, ptr %out
  ret void
}
declare ptr @malloc(i64)
declare ptr @__dynamic_cast(ptr, ptr, ptr, i64)
"""


def test_a_dynamic_cast_leads_to_where_a_class_begins() -> None:
    facts = facts_of(CAST, "f", {0, 1})
    heap, ranges = _heap(facts).index, facts.types.ranges
    assert ranges.places(named(facts.root, "q")) == ranges.places(named(facts.root, "p"))
    assert ranges.places(named(facts.root, "p"))[heap].expand() == (0, 24)
    assert ranges.places(named(facts.root, "r")) == {facts.pointers.object_of[facts.root.args[0]].index: TOP}


def _relayed(links: int) -> str:
    """Loads from a table, beside a pointer that comes back through a chain of functions against their order: it takes
    a sweep for each."""
    chain = [f"define internal ptr @g{k}(ptr %p) {{\n  %q = call ptr @g{k + 1}(ptr %p)\n"
             f"  %r = getelementptr i8, ptr %q, i64 8\n  ret ptr %r\n}}" for k in range(links)]  # fmt: skip
    loads = "".join(f"  %v{k} = load ptr, ptr %t\n" for k in range(10))
    return "\n".join([*chain, f"define internal ptr @g{links}(ptr %p) {{\n  ret ptr %p\n}}",
                      "define void @f(ptr %x, ptr %y) {\n  %t = alloca ptr\n  store ptr %x, ptr %t\n" + loads +
                      "  %q = call ptr @g0(ptr %x)\n  %s = load double, ptr %q\n  store double %s, ptr %y\n"
                      "  ret void\n}"])  # fmt: skip


def test_memory_is_looked_up_once_for_a_load_of_what_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    sweeps: list[str] = []
    original, load = PointerSpots._look_up, PointerSpots._load

    def look_up(self: PointerSpots, instr: Instruction, at: int, size: int, read: Read | None = None) -> Spots | None:
        looked.append(instr.name)
        return original(self, instr, at, size, read)

    def again(self: PointerSpots, instr: Instruction) -> Spots | None:
        sweeps.append(instr.name)
        return load(self, instr)

    monkeypatch.setattr(PointerSpots, "_look_up", look_up)
    monkeypatch.setattr(PointerSpots, "_load", again)
    few, many = [], []
    for links, counts in ((3, few), (12, many)):
        looked.clear(), sweeps.clear()
        facts = facts_of(_relayed(links), "f", {0, 1})
        counts += [len(looked), len(sweeps)]
        (last,) = [i for i in all_of(facts, "load") if i.name == "s"]
        assert [*facts.types.ranges.places(last.operands[0]).values()] == [Offsets(8 * links)]
    assert many == few


WIDE = """
declare ptr @malloc(i64)
define void @f(ptr %x) {
  %h = call ptr @malloc(i64 64)
  %inner = getelementptr i8, ptr %h, i64 24
  %from = alloca [16 x i8]
  %second = getelementptr i8, ptr %from, i64 8
  store ptr %inner, ptr %from
  store ptr %h, ptr %second
  %to = alloca [16 x i8]
  %there = getelementptr i8, ptr %to, i64 8
  COPY
  %a = load ptr, ptr %to
  %b = load ptr, ptr %there
  %v = load double, ptr %x
  store double %v, ptr %a
  store double %v, ptr %b
  %w = load double, ptr %h
  store double %w, ptr %x
  ret void
}
"""


@pytest.mark.parametrize(("copy", "first", "second"), [
    ("%v2 = load <2 x ptr>, ptr %from\n  store <2 x ptr> %v2, ptr %to", 24, 0),
    ("%v2 = load <2 x i64>, ptr %from\n  store <2 x i64> %v2, ptr %to", 24, 0),
    ("%v2 = load i128, ptr %from\n  store i128 %v2, ptr %to", 24, 0),
    ("%v2 = load <16 x i8>, ptr %from\n  store <16 x i8> %v2, ptr %to", 24, 0),
    ("%v2 = load <2 x ptr>, ptr %from\n  %s = shufflevector <2 x ptr> %v2, <2 x ptr> poison, <2 x i32> <i32 1, i32 0>\n"
     "  store <2 x ptr> %s, ptr %to", 0, 24),
    ("%v1 = insertelement <2 x ptr> poison, ptr %h, i32 0\n  %v2 = insertelement <2 x ptr> %v1, ptr %inner, i32 1\n"
     "  store <2 x ptr> %v2, ptr %to", 0, 24),
    ("%v2 = load i128, ptr %from\n  %s = bitcast i128 %v2 to <4 x i32>\n  store <4 x i32> %s, ptr %to", 24, 0),
])  # fmt: skip
def test_parts_of_wide_values_stay_in_their_places(copy: str, first: int, second: int) -> None:
    facts = facts_of(WIDE.replace("COPY", copy), "f", {0})
    places = [facts.types.ranges.places(named(facts.root, name))[_heap(facts).index] for name in "ab"]
    assert places == [Offsets(first), Offsets(second)]


def test_a_pointer_both_ways_from_many_keeps_its_place_in_each() -> None:
    source = """
#include <stdlib.h>
typedef struct { double *first, *second; } pair;
void f(double *x, long n) {
  double *h = malloc(80);
  pair *p = malloc(n * sizeof(pair)), *end = p + n;
  for (pair *q = end; q != p;) { --q; q->first = h + 3; q->second = h; }
  for (long i = 0; i < n; i++) { p[i].first[0] = x[i]; p[i].second[0] = x[i] * 2; }
  x[0] = h[0] + h[3];
}"""
    facts = facts_of_c(source, "f", {0})
    heap = next(o for o in facts.pointers.objects if o.kind == "heap" and o.size == 80)
    stores = [i for i in all_of(facts, "store") if i.operands[0].type.is_fp and i.operands[1] is not facts.root.args[0]]
    assert {facts.types.ranges.places(i.operands[1])[heap.index] for i in stores} == {Offsets(24), Offsets(0)}


UNKNOWN_INDEX = """
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr %x, i64 %i) {
  %h = call ptr @malloc(i64 64)
  %t = alloca [64 x i8], align 8
  %u = alloca [64 x i8], align 8
  %at = getelementptr i8, ptr %t, i64 %i
  %inner = getelementptr i8, ptr %h, i64 16
  store ptr %inner, ptr %at, align ALIGN
  %odd = getelementptr i8, ptr %u, i64 3
  call void @llvm.memcpy.p0.p0.i64(ptr %odd, ptr %t, i64 40, i1 false)
  %there = getelementptr i8, ptr %t, i64 FIRST
  %copied = getelementptr i8, ptr %u, i64 SECOND
  %a = load ptr, ptr %there, align 1
  %b = load ptr, ptr %copied, align 1
  %v = load double, ptr %a
  %w = load double, ptr %b
  store double %v, ptr %x
  store double %w, ptr %x
  ret void
}
"""


@pytest.mark.parametrize(("align", "first", "second"), [(1, 9, 8), (8, 8, 11)])
def test_pointers_lie_at_multiples_of_the_alignment_of_their_accesses(align: int, first: int, second: int) -> None:
    words = {"ALIGN": align, "FIRST": first, "SECOND": second}
    text = UNKNOWN_INDEX
    for word, number in words.items():
        text = text.replace(word, str(number))
    facts = facts_of(text, "f", {0})
    spots = facts.types.ranges.spots
    at, copied = (
        [where for (where, _), _ in spots.held.stored(facts.pointers.object_of[named(facts.root, name)].index)]
        for name in "tu"
    )
    assert {where.stride for where in at} == {align}
    # among bytes it may be anywhere; from known places it gets to others that are
    assert set(copied) == {TOP} if align == 1 else {where.start % 8 for where in copied} == {3}
    heap = _heap(facts).index
    for name in "ab":  # both find what may be there
        assert facts.types.ranges.places(named(facts.root, name))[heap] == Offsets(16)


def test_a_load_and_a_copy_look_only_at_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(links: int) -> str:
        """Links that are stored one after the other in an array, against the order of the blocks, which a loop reads
        and copies."""
        rows = [
            f"b{k}:\n  %r{k} = load ptr, ptr %c{k}\n  %m{k} = getelementptr i8, ptr %r{k}, i64 8\n"
            f"  store ptr %m{k}, ptr %c{k + 1}\n  br label %{f'b{k - 1}' if k else 'end'}\n"
            for k in range(links)
        ]
        cells = [f"  %c{k} = getelementptr ptr, ptr %t, i64 {k}\n" for k in range(links + 1)]
        return (
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndefine void @f(ptr %x, i64 %i) {\n"
            f"  %t = alloca [{links + 1} x ptr]\n  %u = alloca [{links + 1} x ptr]\n"
            + "".join(cells)
            + f"  store ptr %x, ptr %c0\n  br label %b{links - 1}\n"
            + "".join(rows[::-1])
            + f"end:\n  call void @llvm.memcpy.p0.p0.i64(ptr %u, ptr %t, i64 {8 * links + 8}, i1 false)\n"
            "  %a = getelementptr ptr, ptr %u, i64 %i\n  %s = load ptr, ptr %a\n  %v = load double, ptr %s\n"
            "  store double %v, ptr %x\n  ret void\n}\n"
        )

    given: list[int] = []
    stored = HeldPointers.stored

    def counted(self: HeldPointers, region: int, read: Read | None = None) -> Iterator[tuple[Place, Spots]]:
        rows = list(stored(self, region, read))
        given.append(len(rows))
        return iter(rows)

    monkeypatch.setattr(HeldPointers, "stored", counted)
    for links in (6, 24):
        facts = facts_of(program(links), "f", {0, 1})
        given.clear()
        ranges = Ranges(facts.pointers)
        (last,) = [i for i in all_of(facts, "load") if i.name == "s"]
        (where,) = ranges.places(last).values()
        assert contains(where, Offsets(0, ((8, links),)))
        assert links**2 / 2 < sum(given) < 3 * links**2  # each link is new to each load once
