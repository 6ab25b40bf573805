"""Accesses of shadows are apart from those of the primal: loads leave loops, and one derivative may read another's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from analysed import facts_of_c
from handwritten.made import HEADER, asked, make

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.differentiate.shared.alias_scopes import primal_scope, shadow_scope, tape_scope
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, MetadataValue
from irgrad.engine.ir.text.reader import read
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


DENSE = """#include <vector>
extern int enzyme_dup, enzyme_const;
template <typename... A> void __enzyme_autodiff(void *, A...);
static double f(const double *w, int n) {
    std::vector<double> x(n), out(n);
    for (int i = 0; i < n; i++) x[i] = w[i] * i;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) out[j] += w[j * n + i] * x[i];
    double s = 0;
    for (int j = 0; j < n; j++) s += out[j] * out[j];
    return s;
}
void gradient(double *w, double *dw, int n) { __enzyme_autodiff((void *)f, enzyme_dup, w, dw, enzyme_const, n); }
"""
DECLARED = "llvm.experimental.noalias.scope.decl"


TWO = f"{HEADER} void f(double *x, double **r, double *o) {{ r[0][1] = x[0]; o[0] = x[0] * *r[1]; }}"


def _unit(*, loose: bool = False) -> Unit:
    facts = facts_of_c(TWO, "f", {0, 1, 2})
    request = asked("f", "reverse", ["dup"] * 3, runtime_activity=loose)
    return Unit(facts.module, facts.root, facts, request)


def _accesses(unit: Unit, opcode: str, type_: ty.Type) -> list[Instruction]:
    """Loads of the root, or stores, of values of a type."""
    found = [i for i in unit.root.instructions() if i.opcode == opcode]
    return [i for i in found if (i.operands[0] if opcode == "store" else i).type is type_]


def _apart(unit: Unit, one: dict[str, str], other: dict[str, str]) -> bool:
    """What LLVM makes of two accesses: the scopes of one are all among those that the other is apart from."""

    def scopes(name: str) -> set[str]:
        return set(re.findall(r"!\d+", unit.module.metadata[name])) if name else set()

    def told(a: dict[str, str], b: dict[str, str]) -> bool:
        return bool(scopes(a["alias.scope"])) and scopes(a["alias.scope"]) <= scopes(b["noalias"])

    return told(one, other) or told(other, one)


def test_objects_their_shadows_and_arrays_of_the_tape_are_apart() -> None:
    unit = _unit()
    load, (through, store) = _accesses(unit, "load", ty.F64)[0], _accesses(unit, "store", ty.F64)
    x, row, o = (primal_scope(unit, i) for i in (load, through, store))
    dx, drow, do = (shadow_scope(unit, i, ty.F64) for i in (load, through, store))
    one, two = tape_scope(unit, unit.root, "one"), tape_scope(unit, unit.root, "two")
    every = [x, row, o, dx, drow, do, one, two]
    for i, a in enumerate(every):
        for b in every[:i]:
            assert _apart(unit, a, b)
        assert not _apart(unit, a, a)
    assert tape_scope(unit, unit.root, "one") == one
    for name in (x["alias.scope"], dx["alias.scope"], one["alias.scope"]):
        scope = unit.module.metadata[name].strip("!{}")
        domain = unit.module.metadata[f"!{scope}"].rpartition("!")[2].strip("}")
        assert unit.module.metadata[f"!{domain}"] == f"distinct !{{!{domain}}}"


def test_a_shadow_pointer_may_be_in_the_memory_of_the_primal() -> None:
    unit = _unit()
    pointer, store = _accesses(unit, "load", ty.PTR)[0], _accesses(unit, "store", ty.F64)[1]
    found = shadow_scope(unit, pointer, ty.PTR)
    assert not _apart(unit, found, primal_scope(unit, pointer))
    assert not _apart(unit, found, shadow_scope(unit, pointer, ty.F64))
    assert _apart(unit, found, shadow_scope(unit, store, ty.F64))


def test_run_time_activity_promises_nothing() -> None:
    unit = _unit(loose=True)
    load = _accesses(unit, "load", ty.F64)[0]
    assert primal_scope(unit, load) == shadow_scope(unit, load, ty.F64) == tape_scope(unit, unit.root, "one") == {}
    assert primal_scope(_unit(), load.block.terminator) == {}  # type: ignore[union-attr]


def test_arguments_that_may_overlap_share_scopes() -> None:
    text = """
define void @f(ptr "irgrad-overlaps" %x, ptr "irgrad-overlaps" %y, ptr %o) {
  %a = load double, ptr %x
  store double %a, ptr %y
  store double %a, ptr %o
  ret void
}
"""
    module = read(text, roots=["f"])
    facts = Facts(module, module.functions["f"], {0, 1, 2})
    unit = Unit(module, facts.root, facts, asked("f", "reverse", ["dup"] * 3))
    load, (y, o) = _accesses(unit, "load", ty.F64)[0], _accesses(unit, "store", ty.F64)
    assert not _apart(unit, primal_scope(unit, load), primal_scope(unit, y))
    assert not _apart(unit, shadow_scope(unit, load, ty.F64), shadow_scope(unit, y, ty.F64))
    assert _apart(unit, primal_scope(unit, load), shadow_scope(unit, y, ty.F64))
    assert _apart(unit, primal_scope(unit, load), primal_scope(unit, o))


def test_derivatives_declare_their_scopes() -> None:
    made = make("void f(double *x, double *o) { o[0] = x[0] * x[1]; }", "f", "reverse", ["dup", "dup"])
    used = {i.metadata["alias.scope"] for i in made.function.instructions() if "alias.scope" in i.metadata}
    said = [text for c in made.calls(DECLARED) for o in c.args if isinstance(o, MetadataValue) for text in [o.text]]
    assert used and used <= set(said) and len(said) == len(set(said))


def test_memory_of_its_own_is_not_compared_when_loops_become_vectors(tmp_path: Path) -> None:
    (tmp_path / "dense.cpp").write_text(DENSE)
    made = tmp_path / "dense.ll"
    assert main(["cc", "-O3", "-S", "-emit-llvm", str(tmp_path / "dense.cpp"), "-o", str(made)]) == 0
    text = made.read_text()
    assert "fmul <" in text or "fmuladd.v" in text
    assert "vector.memcheck" not in text


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
