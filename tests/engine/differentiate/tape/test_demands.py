"""What saving asks for: addresses and extents of arrays, links of records."""

from __future__ import annotations

from collections.abc import Hashable

from handwritten.planned import planned

from irgrad.engine.ir.model import Instruction

CHAIN = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < %s; i++) s = sin(s * x[1]) + x[2] / (s * s + 1);
    *o = s;
}"""


def _kinds(saved: dict[Hashable, object]) -> set[object]:
    return {key[0] if isinstance(key, tuple) else "value" for key in saved}


def test_an_array_asks_for_its_address() -> None:
    plan = planned(CHAIN % "*n", "dcd")
    values = [key for key in plan.saved if isinstance(key, Instruction)] + list(plan.demands.shared)
    assert values
    arrays = [key for key, saved in plan.saved.items() if saved.loops]
    assert {("array", key) for key in arrays} <= plan.saved.keys()
    for key in arrays:
        assert plan.saved["array", key].level is None
        assert plan.saved["array", key].why == key


def test_counts_that_are_overwritten_are_saved() -> None:
    kept = planned(CHAIN.replace("*o = s;", "*o = s; *n = 0;").replace("%s", "*n"), "dcd", width=1)
    assert _kinds(kept.saved) <= {"value", "array", "cells", "dim"}
    source = """
    NOINLINE double g(double *x, long *n) {
        double s = x[0];
        for (long i = 0; i < *n; i++) s = sin(s * x[1]) + x[2] / (s * s + 1);
        *n = 0;
        return s;
    }
    void f(double *x, long *n, double *o) { *o = g(x, n); }"""
    assert "dim" in _kinds(planned(source, "dcd", callee="g").saved)


def test_a_loop_without_a_count_keeps_records() -> None:
    plan = planned(CHAIN % "*n && s * s < 100", "dcd")
    assert "record" in _kinds(plan.saved)
    (loop,) = plan.facts.loops.all
    inside = [saved for saved in plan.saved.values() if saved.level is loop]
    assert inside
    assert not any(saved.loops for saved in inside)
    assert plan.saved["record", loop].level is None
    assert ("count", loop) in plan.saved


def test_neighbours_share_an_array() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 1; i < *n - 1; i++) s += sin(x[i - 1] * x[i] * x[i + 1]);
        *o = s;
        for (long i = 0; i < *n; i++) x[i] = 0;
    }"""
    plan = planned(source, "dcd")
    groups = [key for key in plan.saved if isinstance(key, tuple) and key[0] == "cells"]
    assert len(groups) == 1
    assert plan.saved[groups[0]].span == 2
    assert len(plan.demands.shared) >= 2


def test_steps_on_the_rows_of_an_array_are_found() -> None:
    source = """
    void f(double *x, long *n, long *steps, double *o) {
        long m = *n, last = *steps;
        double *u = malloc(m * 8), *v = malloc(m * 8);
        for (long i = 0; i < m; i++) { u[i] = x[i]; v[i] = 1 - x[i] * x[i]; }
        for (long t = 0; t < last; t++) {
            for (long i = 1; i < m - 1; i++) v[i] = u[i] * (1 - 0.3 * (u[i + 1] - u[i - 1]));
            double *old = u; u = v; v = old;
        }
        *o = u[2] * v[1];
        free(u); free(v);
    }"""
    plan = planned(source, "dccd")
    (group,) = plan.demands.levels
    assert ("mask", group) in plan.saved
