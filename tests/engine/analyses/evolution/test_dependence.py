"""Dependence against brute force: random nests whose every access is listed, iteration by iteration."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import pytest
from nests import analysed


def test_a_step_of_the_whole_address_space_is_none() -> None:
    nest = Nest(1, [(("a", (0, 1, 0)), ("b", (0, 1, 0)))])
    text = nest.source().replace("%w0.i = mul nsw i64 %i, 1", "%w0.i = shl i64 %i, 61").replace(
        "%w0.c = add nsw i64 %w0.i, 0", "%w0.c = add i64 %w0.i, 0").replace(
        "%w0 = getelementptr inbounds", "%w0 = getelementptr")  # fmt: skip
    dependence, (loop,) = analysed(text)
    assert [relation.carried for _, _, relation in dependence.pairs(loop)] == [True]


PROMISED = """
define void @f(ptr noalias %x, ptr noalias %at, ptr noalias %n) {
entry:
  %count = load i64, ptr %n
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %ap = getelementptr inbounds i64, ptr %at, i64 %i
  %a = load i64, ptr %ap, !llvm.access.group !1
  %p = getelementptr inbounds double, ptr %x, i64 %a
  store double 1.0, ptr %p GROUP
  %next = add nuw nsw i64 %i, 1
  %more = icmp eq i64 %next, %count
  br i1 %more, label %done, label %loop, !llvm.loop !2
done:
  ret void
}
!1 = distinct !{}
!2 = distinct !{!2, !3}
!3 = !{!"llvm.loop.parallel_accesses", !1}
"""


@pytest.mark.parametrize(("group", "carried"), [("", [True]), (", !llvm.access.group !1", [])])
def test_a_promise_is_taken_for_granted(group: str, carried: list[bool]) -> None:
    """Of accesses by unknown subscripts nothing is known but that."""
    dependence, (loop,) = analysed(PROMISED.replace("GROUP", group))
    assert [relation.carried for _, _, relation in dependence.pairs(loop)] == carried


# -- random nests ------------------------------------------------------------------------------------------------------

SIZES = (5, 4)


@dataclass
class Nest:
    """Up to two loops around statements `x[p] = y[q] ...`, each subscript (c, coefficient of i, of j) or through ix."""

    depth: int
    statements: list[tuple[tuple[str, tuple[int, int, int]], ...]] = field(default_factory=list)

    def source(self) -> str:
        """The nest in LLVM IR, as it stands: clang would move accesses."""
        lines = ["declare double @llvm.fabs.f64(double)",
                 "define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %n, ptr noalias %ix) {",
                 "entry:", "  %count = load i64, ptr %n", "  br label %li", "li:",
                 f"  %i = phi i64 [ 0, %entry ], [ %i1, %{'li' if self.depth == 1 else 'out'} ]"]  # fmt: skip
        if self.depth == 2:
            lines += ["  br label %lj", "lj:", "  %j = phi i64 [ 0, %li ], [ %j1, %lj ]"]
        for number, (target, *reads) in enumerate(self.statements):
            values = []
            for position, access in enumerate(reads):
                lines += _address(f"r{number}_{position}", *access)
                lines.append(f"  %v{number}_{position} = load double, ptr %r{number}_{position}")
                values.append(f"%v{number}_{position}")
            lines.append(f"  %s{number} = fadd double {values[0]}, {values[-1]}")
            lines += [*_address(f"w{number}", *target), f"  store double %s{number}, ptr %w{number}"]
        if self.depth == 2:
            lines += ["  %j1 = add nuw nsw i64 %j, 1", f"  %ej = icmp eq i64 %j1, {SIZES[1]}",
                      "  br i1 %ej, label %out, label %lj", "out:"]  # fmt: skip
        lines += ["  %i1 = add nuw nsw i64 %i, 1", "  %ei = icmp eq i64 %i1, %count",
                  "  br i1 %ei, label %end, label %li", "end:", "  ret void", "}"]  # fmt: skip
        return "\n".join(lines) + "\n"

    def distances(self, level: int, ix: list[int]) -> set[int]:
        """Distances of iterations of one loop that touch the same element, one of them writing."""
        ranges = [range(size) for size in SIZES[: self.depth]]
        touched: dict[tuple[object, ...], list[tuple[int, bool]]] = {}
        for point in itertools.product(*ranges):
            i, j = (*point, 0)[:2]
            for target, *reads in self.statements:
                touches = [(target, True), *((read, False) for read in reads)]
                for (name, (const, by_i, by_j)), writes in touches:
                    at = (by_i - 98) * ix[i] + const + by_j * j if by_i > 98 else const + by_i * i + by_j * j
                    key = (name, at, *point[:level])
                    touched.setdefault(key, []).append((point[level], writes))
        return {abs(p - q) for rows in touched.values() for (p, w), (q, v) in itertools.combinations(rows, 2) if w or v}


def _address(to: str, name: str, subscript: tuple[int, int, int]) -> list[str]:
    const, by_i, by_j = subscript
    if by_i > 98:
        return [f"  %{to}.at = getelementptr i64, ptr %ix, i64 %i", f"  %{to}.held = load i64, ptr %{to}.at",
                f"  %{to}.many = mul nsw i64 %{to}.held, {by_i - 98}",
                f"  %{to}.j = mul nsw i64 {'%j' if by_j else 0}, {by_j}",
                f"  %{to}.more = add nsw i64 %{to}.many, {const}", f"  %{to}.sum = add nsw i64 %{to}.more, %{to}.j",
                f"  %{to} = getelementptr inbounds double, ptr %{name}, i64 %{to}.sum"]  # fmt: skip
    lines = [f"  %{to}.i = mul nsw i64 %i, {by_i}", f"  %{to}.c = add nsw i64 %{to}.i, {const}"]
    if by_j:
        lines += [f"  %{to}.j = mul nsw i64 %j, {by_j}", f"  %{to}.s = add nsw i64 %{to}.c, %{to}.j"]
    return [*lines, f"  %{to} = getelementptr inbounds double, ptr %{name}, i64 %{to}.{'s' if by_j else 'c'}"]


def random_nest(rng: random.Random) -> Nest:
    nest = Nest(rng.choice((1, 2)))

    def access() -> tuple[str, tuple[int, int, int]]:
        by_i = rng.choice((0, 1, 1, 2, 4, 8, 6, -1, 99, 101, 104))
        by_j = rng.choice((0, 1, 1, 2, -1, 6)) if nest.depth == 2 else 0
        return rng.choice("abc"), (rng.randint(0, 9) + 40 * (by_i < 0 or by_j < 0), by_i, by_j)

    for _ in range(rng.choice((1, 2))):
        nest.statements.append((access(), *(access() for _ in range(rng.choice((1, 2))))))
    return nest


@pytest.mark.parametrize("seed", range(12))
def test_random_nests_are_never_called_independent_when_they_are_not(seed: int) -> None:
    rng = random.Random(seed)
    carried = free = 0
    for _ in range(60):
        nest = random_nest(rng)
        ix = [rng.randrange(6) for _ in range(SIZES[0])]
        dependence, loops = analysed(nest.source())
        for level, loop in enumerate(loops):
            real = nest.distances(level, ix) - {0}
            relations = [relation for _, _, relation in dependence.pairs(loop)]
            for distance in real:
                found = any(r.low <= d <= r.high for r in relations for d in (distance, -distance))
                assert found, nest.source()
            carried += bool(real)
            free += not relations
    assert carried and free


FIELDS = """
define void @f(ptr noalias %x, ptr noalias %at, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %kp = getelementptr inbounds i64, ptr %at, i64 %i
  %k = load i64, ptr %kp
  %p = getelementptr INBOUNDS [SIZE x i8], ptr %x, i64 %k
  %q = getelementptr INBOUNDS i8, ptr %p, i64 8
  %r = getelementptr INBOUNDS [SIZE x i8], ptr %x, i64 %i
  %a = load double, ptr %q
  store double %a, ptr %r
  %next = add nuw nsw i64 %i, 1
  %more = icmp eq i64 %next, %n
  br i1 %more, label %done, label %loop
done:
  ret void
}
"""


STRUCTS = [(16, "inbounds", True), (24, "inbounds", True), (12, "inbounds", False), (32, "", True), (24, "", False)]


@pytest.mark.parametrize(("size", "inbounds", "apart"), STRUCTS)
def test_two_fields_of_structs_never_meet(size: int, inbounds: str, apart: bool) -> None:
    """Whichever structs they are of; if addresses may wrap around, where the size divides all that there are."""
    text = FIELDS.replace("SIZE", str(size)).replace("INBOUNDS", inbounds)
    dependence, (loop,) = analysed(text)
    load, store = [a for a in dependence.accesses(loop) if a.size == 8][1:]
    assert dependence.relation(loop, load, store).never == apart


def test_the_length_of_a_row_may_be_computed_in_the_loop() -> None:
    """y[4 m i + j], j < 4 m, where each iteration computes 4 m anew."""
    dependence, loops = analysed("""
define void @f(ptr noalias %y, i64 %n, i64 %m) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %length = shl nsw i64 %m, 2
  %enters = icmp slt i64 0, %length
  br i1 %enters, label %row.preheader, label %latch
row.preheader:
  br label %row
row:
  %j = phi i64 [ 0, %row.preheader ], [ %more, %row ]
  %begin = mul nsw i64 %i, %length
  %q = getelementptr inbounds double, ptr %y, i64 %begin
  %p = getelementptr inbounds double, ptr %q, i64 %j
  store double 1.0, ptr %p
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, %length
  br i1 %again, label %row, label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %on = icmp slt i64 %next, %n
  br i1 %on, label %loop, label %done
done:
  ret void
}
""")
    outer = min(loops, key=lambda loop: loop.depth)
    assert not [relation for _, _, relation in dependence.pairs(outer)]
