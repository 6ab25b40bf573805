"""Accesses of shadows are apart from those of the primal: loads leave loops, and one derivative may read another's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from analysed import facts_of_c
from handwritten.made import HEADER, asked

from irgrad.engine.differentiate.shared.alias_scopes import primal_scope, shadow_scope
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.interop.cli import main

TWICE = """#include <math.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
struct all { double *at; int n, step; };
static double f(const struct all *v) {
    double s = 0;
    for (int i = 0; i < v->n; i++) s += v->at[i * v->step] * v->at[i * v->step] * 0.5 + sin(v->at[i * v->step]);
    return s;
}
static void slopes(struct all *x, struct all *dx) {
    for (int i = 0; i < x->n; i++) dx->at[i] = 0;
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx);
}
int main(void) {
    enum { N = 67 };
    double a[N], b[N], c[N], want[N];
    for (int i = 0; i < N; i++) want[i] = a[i] = i * 0.01 - 0.3, b[i] = c[i] = 9;
    struct all x = {a, N, 1}, dx = {b, N, 1}, ddx = {c, N, 1};
    for (int k = 0; k < 4; k++) {  /* what one derivative wrote the next one reads, at once and a turn later */
        slopes(&x, &dx);
        slopes(&dx, &ddx);
        struct all next = ddx;
        ddx = x, x = next;
        for (int i = 0; i < 2 * N; i++) want[i % N] += cos(want[i % N]);
    }
    double worst = 0;
    for (int i = 0; i < N; i++) worst = fmax(worst, fabs(x.at[i] - want[i]) / fabs(want[i]));
    return !(worst < 1e-13);
}
"""
INVARIANT = """#include <string.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
struct grid { int rows, cols; double *at; };
static double at(const struct grid *g, int i, int j) {
    int columns;
    memcpy(&columns, &g->cols, sizeof columns);  /* no type to tell it from the doubles by */
    return g->at[i * columns + j];
}
static double f(const struct grid *g) {
    double s = 0;
    for (int i = 0; i < g->rows; i++)
        for (int j = 0; j < i; j++) s += 1 / (at(g, i, 0) - at(g, j, 1));
    return s;
}
double gradient(struct grid *g, struct grid *dg) { __enzyme_autodiff((void *)f, enzyme_dup, g, dg); return 0; }
"""


def _unit(*, loose: bool = False) -> Unit:
    facts = facts_of_c(f"{HEADER} void f(double *x, double *o) {{ o[0] = x[0] * x[1]; }}", "f", {0, 1})
    request = asked("f", "reverse", ["dup", "dup"], runtime_activity=loose)
    return Unit(facts.module, facts.root, facts, request)


def test_both_memories_share_one_scope_with_a_domain_of_its_own() -> None:
    unit = _unit()
    before = dict(unit.module.metadata)
    load = next(i for i in unit.root.instructions() if i.opcode == "load")
    (listed,) = primal_scope(unit, load).values()
    assert shadow_scope(unit, ty.F64) == {"noalias": listed}
    scope = unit.module.metadata[listed].strip("!{}")
    assert re.fullmatch(r"distinct !\{!" + scope + r", !\d+\}", unit.module.metadata[f"!{scope}"])
    assert len(unit.module.metadata) == len(before) + 3 and before.items() <= unit.module.metadata.items()


def test_pointers_and_run_time_activity_promise_nothing() -> None:
    unit = _unit(loose=True)
    load = next(i for i in unit.root.instructions() if i.opcode == "load")
    assert primal_scope(unit, load) == shadow_scope(unit, ty.F64) == {}
    assert shadow_scope(_unit(), ty.PTR) == shadow_scope(_unit(), ty.I64) == {}
    assert primal_scope(_unit(), load.block.terminator) == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_one_derivative_reads_what_another_wrote(level: str, tmp_path: Path) -> None:
    (tmp_path / "twice.c").write_text(TWICE)
    assert main(["run", level, str(tmp_path / "twice.c")]) == 0


def test_an_invariant_load_leaves_loops_that_add_to_shadows(tmp_path: Path) -> None:
    (tmp_path / "grid.c").write_text(INVARIANT)
    assert main(["cc", "-O2", "-S", "-emit-llvm", str(tmp_path / "grid.c"), "-o", str(tmp_path / "grid.ll")]) == 0
    body = re.search(r"^define [^\n]*@gradient\(.*?^}", (tmp_path / "grid.ll").read_text(), re.M | re.S)
    assert body is not None
    assert body[0].count(" load i32") == 2  # rows and columns, once
