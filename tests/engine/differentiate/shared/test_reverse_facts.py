"""Facts about a function before its reverse derivative: levels, nests, merges, shadows."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.planned import facts_of, find

import irgrad
from irgrad import engine

NEST = """
void f(double *x, long *n, long *m, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        for (long j = 0; j < *m; j++) s = sin(s * x[1]);
    *o = s;
}"""
TRIANGLE = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        for (long j = 0; j < i; j++) s = sin(s * x[1]);
    *o = s;
}"""
SEARCH = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n && s < 3; i++) s = s * s + x[i];
    *o = s;
}"""


def test_a_nest_is_counted_from_its_outermost_loop() -> None:
    facts = facts_of(NEST, "dccd")
    outer, inner = facts.loops.all
    assert facts.top(inner) is outer
    assert facts.chain(inner) == [outer, inner]


def test_an_inner_loop_that_depends_on_the_outer_one_is_its_own_nest() -> None:
    facts = facts_of(TRIANGLE, "dcd")
    inner = facts.loops.all[-1]
    assert inner.depth == 2
    assert facts.chain(inner) == [inner]


def test_a_loop_that_is_left_early_is_not_counted() -> None:
    facts = facts_of(SEARCH, "dcd")
    assert facts.loops.all
    assert all(facts.top(loop) is None for loop in facts.loops.all)


def test_values_outside_of_loops_are_there_in_one_function_only() -> None:
    source = "NOINLINE double g(double *x) { return sin(x[0]) * x[1]; }\nvoid f(double *x, double *o) { *o = g(x); }"
    whole = facts_of("void f(double *x, double *o) { *o = sin(x[0]) * x[1]; }", "dd")
    assert whole.direct(find(whole, "llvm.sin"))
    callee = facts_of(source, "dd", callee="g")
    assert not callee.direct(find(callee, "llvm.sin"))


def test_a_branch_decides_where_control_came_from() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[1];
        for (long i = 0; i < *n; i++) { if (x[i] > 1) { x[i] = sin(s); s *= x[i]; } else s = s * s * s; }
        *o = s;
    }"""
    facts = facts_of(source, "dcd")
    headers = {loop.header for loop in facts.loops.all}
    merges = [b for b in facts.cfg.rpo if len(facts.cfg.preds(b)) == 2 and b not in headers]
    inside = [b for b in merges if facts.loops.of(b) is not None]
    assert inside
    for block in inside:
        branch = facts.branch_of(block, facts.cfg.preds(block))
        assert branch is not None
        assert branch[0] is find(facts, "fcmp")


def test_shadows_are_of_pointers_to_active_memory() -> None:
    source = """
    void f(double *x, double *y, long *n, double *o) {
        double t[40];
        for (long i = 0; i < *n; i++) t[(i * i) % 40] = x[i] * y[i];
        *o = t[*n] * t[3];
    }"""
    facts = facts_of(source, "dccd")
    local = find(facts, "alloca")
    assert facts.own_memory == [local]
    assert facts.has_shadow(local)
    moved = [i for b in facts.cfg.rpo for i in b.instructions if i.opcode == "getelementptr"]
    bases = {i.operands[0] for i in moved if facts.has_shadow(i)}
    assert {facts.fn.args[0], local} <= bases
    assert facts.fn.args[1] in {i.operands[0] for i in moved} - bases
    assert not facts.has_shadow(find(facts, "fmul"))


def test_blocks_that_never_return_have_no_reverse() -> None:
    facts = facts_of("void f(double *x, double *o) { if (x[0] < 0) abort(); *o = x[0] * x[0]; }", "dd")
    dead = [b for b in facts.cfg.rpo if b.terminator.opcode == "unreachable"]
    assert dead
    assert not facts.live & set(dead)
    assert facts.exit in facts.live


LOOKED_UP = """
#include <math.h>
static long find(const double *grid, long n, double e) {
    for (long g = 0; g < n; g++) if (grid[g] > e) return g;
    return n - 1;
}
double f(const double *x, const double *grid, const double *table, long n, long points) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        long low = %s;
        s += sin(x[i]) * table[low] + x[i] * table[low + 1] * s;
    }
    return s;
}"""
BISECTED = """0, high = points;
        while (high - low > 1) { long m = (low + high) / 2; if (grid[m] > x[i]) high = m; else low = m; }"""


@pytest.mark.parametrize("search", ["find(grid, points, x[i])", BISECTED])
def test_a_loop_whose_reverse_does_nothing_is_passed_by(search: str) -> None:
    """Neither its iterations are kept nor which way it was left; an index is kept in place of the address it leads to:
    two numbers an iteration."""
    signature = "f64(f64[n] x, f64[points] grid, f64[points] table, i64 n, i64 points)"
    kernel = irgrad.load(LOOKED_UP % search.removesuffix(";")).kernel("f", signature)
    told = str(engine.explain(kernel, "grad", wrt=("x", "table")))
    assert "tape of a call: 16*n bytes" in told and "iterations of loop" not in told
    rng = np.random.default_rng(3)
    grid = np.sort(rng.uniform(0, 1, 20))
    args = rng.uniform(0.1, 0.6, 7), grid, rng.normal(size=21)[:20], 7, 19
    found = engine.grad(kernel, wrt=("x", "table"))(*args[:3])
    for n, gradient in ((0, found[0]), (2, found[1])):
        for k in range(len(gradient)):
            ends = []
            for h in (1e-6, -1e-6):
                moved = [np.array(a) if isinstance(a, np.ndarray) else a for a in args[:3]]
                moved[n][k] += h
                ends.append(kernel(*moved))
            assert np.isclose((ends[0] - ends[1]) / 2e-6, gradient[k], rtol=1e-6, atol=1e-8)
