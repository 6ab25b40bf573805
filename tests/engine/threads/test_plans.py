"""How a team can share a loop: what its iterations do together decides, and nothing is carried out yet."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.iterations import OWN_PLACES
from irgrad.engine.parallel.sections import BEGIN, END
from irgrad.engine.threads.plans import Plan, plan_of

LOOP = """
define void @f(ptr noalias "irgrad-float" %x, ptr noalias "irgrad-float" %y, i64 %n) {
entry:
  %h = alloca [8 x double], align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds double, ptr %x, i64 %i
  %a = load double, ptr %from, align 8
  BODY
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, COUNT
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  %r = load double, ptr %h, align 8
  store double %r, ptr %y, align 8
  ret void
}
!0 = distinct !{!0SAID}
!1 = !{!"irgrad.loop.worksharing"}
!2 = !{!"irgrad.loop.sections"}
"""
OWN = "%to = getelementptr inbounds double, ptr %y, i64 %i\n  store double %a, ptr %to, align 8"
ONE = "store double %a, ptr %y, align 8"
ADDED = """%k = and i64 %i, 7
  %at = getelementptr inbounds double, ptr %h, i64 %k
  %old = atomicrmw fadd ptr %at, double %a monotonic, align 8"""
SECTION = f"""%root = call double @llvm.sqrt.f64(double %a)
  {BEGIN}
  %best = load double, ptr %h, align 8
  %less = fcmp olt double %best, %root
  %new = select i1 %less, double %root, double %best
  store double %new, ptr %h, align 8
  {END}"""


def _plan(body: str, said: str = "", count: str = "%n", *, promised: bool = False) -> tuple[Plan, bool]:
    """The plan of the loop, and whether the function is as it was."""
    text = LOOP.replace("BODY", body).replace("SAID", said).replace("COUNT", count)
    module = read(text + "declare double @llvm.sqrt.f64(double)\n", ["f"])
    fn, before = module.functions["f"], to_text(module)
    return plan_of(module, fn, get(Loops, fn).top[0], promised=promised), to_text(module) == before


def test_independent_iterations_are_shared_and_their_arrays_told() -> None:
    plan, same = _plan(OWN)
    assert same and plan == Plan(worksharing=False, said=plan.said)
    assert len(plan.said) == 2 and all(OWN_PLACES in said for said in plan.said.values())


@pytest.mark.parametrize(("body", "count", "why"), [
    (ONE, "%n", "iterations may meet in memory"),
    (OWN, "10", "it runs 10 times at most"),
])  # fmt: skip
def test_why_one_thread_runs_a_loop(body: str, count: str, why: str) -> None:
    plan, same = _plan(body, count=count)
    assert same and why in plan.why and not plan.said


def test_the_source_promises_more_than_can_be_found() -> None:
    assert not _plan(ONE, ", !1", promised=True)[0].why
    assert "nothing says" in _plan(OWN, promised=True)[0].why  # programs share what is promised only


def test_updates_of_an_array_go_to_copies() -> None:
    plan, same = _plan(ADDED, ", !1")
    assert same and not plan.why and plan.parts is None
    assert [row.opcode for updates in plan.updates for row in updates.rows] == ["atomicrmw"]


def test_sections_stay_in_order() -> None:
    plan, _ = _plan(SECTION, ", !1, !2")
    assert not plan.why and plan.worksharing and not plan.updates
    assert plan.parts is not None and {"store", "load"} <= {i.opcode for i in plan.parts.ordered}
    assert [value.opcode for value in plan.parts.kept] == ["call"]


WRITTEN = {
    "product": ("""
double product(const double *restrict a, const double *restrict b, double *restrict c, SIZE n) {
    for (SIZE i = 0; i < n; i++) {
        for (SIZE j = 0; j < n; j++) c[i * n + j] = 0;
        for (SIZE k = 0; k < n; k++)
            for (SIZE j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
    return c[1];
}""", "f64(f64[n,n] a, f64[n,n] b, out f64[n,n] c, KIND n)", (7, 7), 2),
    "blocks": ("""
double blocks(const double *restrict a, const double *restrict b, double *restrict c, SIZE n) {
    for (SIZE s = 0; s < n; s += 4)
        for (SIZE i = s; i < (s + 4 < n ? s + 4 : n); i++)
            for (SIZE j = 0; j < n; j++) c[i * n + j] = a[i * n + j] * b[j * n + i];
    return c[1];
}""", "f64(f64[n,n] a, f64[n,n] b, out f64[n,n] c, KIND n)", (7, 7), 2),
    "both": ("""
double both(const double *restrict a, const double *restrict b, double *restrict c, SIZE n) {
    for (SIZE s = 0; s < n; s += 4)
        for (SIZE t = 0; t < n; t += 4)
            for (SIZE i = s; i < s + 4 && i < n; i++)
                for (SIZE j = t; j < t + 4 && j < n; j++) {
                    c[i * n + j] = 0;
                    for (SIZE k = 0; k < n; k++) c[i * n + j] += a[i * n + k] * b[k * n + j];
                }
    return c[1];
}""", "f64(f64[n,n] a, f64[n,n] b, out f64[n,n] c, KIND n)", (7, 7), 2),
    "triangle": ("""
double triangle(const double *restrict a, double *restrict c, SIZE n) {
    for (SIZE i = 0; i < n; i++)
        for (SIZE j = i + 1; j < n; j++) c[i * n + j] = a[i * n + j] * a[j * n + i];
    return c[1];
}""", "f64(f64[n,n] a, inout f64[n,n] c, KIND n)", (7, 7), 1),
    "cube": ("""
double cube(const double *restrict a, double *restrict c, SIZE n) {
    for (SIZE i = 1; i < n - 1; i++)
        for (SIZE j = 1; j < n - 1; j++)
            for (SIZE k = 1; k < n - 1; k++)
                c[(i * n + j) * n + k] = a[((i - 1) * n + j) * n + k] * a[(i * n + j) * n + k + 1];
    return c[(n + 1) * n + 1];
}""", "f64(f64[n,n,n] a, inout f64[n,n,n] c, KIND n)", (5, 5, 5), 1),
    "flat": ("""
double flat(const double *restrict a, double *restrict c, SIZE n) {
    for (SIZE p = 0; p < n * n; p++) {
        SIZE i = p / n, j = p % n;
        c[i * n + j] = a[i * n + j] * a[j * n + i];
    }
    return c[1];
}""", "f64(f64[n,n] a, out f64[n,n] c, KIND n)", (7, 7), 1),
}  # fmt: skip
"""Functions whose outermost loop a team can share, with a signature, the shape of arrays and how many are read."""


TYPES = {"long": "i64", "int": "i32", "unsigned long": "u64"}
WRAP = {"cube", "blocks", "both", "flat"}  # without a sign: products, and a counter that goes by fours
CASES = [(name, size) for name in WRITTEN for size in TYPES if not (name in WRAP and size == "unsigned long")]


@pytest.mark.parametrize(("name", "size"), CASES)
def test_rows_that_bounds_keep_apart_are_shared_from_the_outermost_loop_on(name: str, size: str) -> None:
    """Squares, blocks that end at the least of two numbers, triangles, three dimensions with one size."""
    source, signature, shape, read = WRITTEN[name]
    library = ig.load(source.replace("SIZE", size))
    text, values = signature.replace("KIND", TYPES[size]), np.random.default_rng(3).random((4, *shape))
    kernel = library.kernel(name, text, threads=2)
    said = [line for line in str(ig.explain(kernel)).splitlines() if "threads:" in line]
    assert not [line for line in said if "one runs" in line]
    assert any("shared by a team" in line and "no loop" not in line for line in said)
    arguments = values[: read + ("inout" in signature)]
    plain = ig.grad(library.kernel(name, text), of="return")(*arguments)
    np.testing.assert_array_equal(ig.grad(kernel, of="return")(*arguments), plain)
