"""The sweep that copies a function: nothing but copies where nothing is active, shadows of the same type elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import make

import irgrad
from irgrad.engine import jacfwd
from irgrad.engine.ir.model import Function, Instruction

MIXED = """
typedef struct { double v; long k; float *p; } Row;
void f(double *x, float *y, long *n, double *o) {
    Row rows[4];
    for (int i = 0; i < 4; i++) { rows[i].v = x[i]; rows[i].k = i * *n; rows[i].p = y + i; }
    double s = 0;
    for (int i = 0; i < 4; i++) { Row *r = rows + (i * *n & 3); s += r->v * *r->p * (double)r->k; }
    *o = s;
}"""


def _kept(fn: Function) -> list[tuple[str, str]]:
    """Opcodes and types in any order (of the phis), without the marks of lifetimes (a sweep may need memory longer) and
    of alias scopes."""
    names = ("llvm.lifetime.", "llvm.experimental.noalias.")
    marks = [i for i in fn.instructions() if i.is_call and (i.callee_name or "").startswith(names)]
    return sorted((i.opcode, str(i.type)) for i in fn.instructions() if i not in marks)


def test_without_active_arguments_it_is_a_copy() -> None:
    made = make(MIXED, "f", "forward", ["const"] * 4)
    assert _kept(made.function) == _kept(made.module.functions["f"])


def test_shadows_have_the_type_of_what_they_shadow() -> None:
    made = make(MIXED, "f", "forward", ["dup", "dup", "const", "dup"])
    original = made.module.functions["f"]
    integers = [i for i in made.function.instructions() if i.type.is_int]
    assert len(integers) == len([i for i in original.instructions() if i.type.is_int]), "integers have no shadow"
    rng = np.random.default_rng(0)
    x, vx = rng.uniform(-1, 1, (2, 4))
    y, vy = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
    for n in (1, 3):
        o, to = np.zeros(1), np.zeros(1)
        made(x, vx, y, vy, np.array([n]), o, to)
        at = np.arange(4) * n & 3
        k = at * n
        np.testing.assert_allclose(o[0], (x[at] * y[at] * k).sum(), rtol=1e-12)
        np.testing.assert_allclose(to[0], (vx[at] * y[at] * k + x[at] * vy[at] * k).sum(), rtol=1e-12)


def test_blocks_and_debug_locations_are_kept() -> None:
    made = make(MIXED, "f", "forward", ["dup", "dup", "const", "dup"], "-g")
    original = made.module.functions["f"]
    assert len(made.function.blocks) == len(original.blocks)

    def places(fn_instructions: list[Instruction]) -> set[object]:
        return {i.metadata.get("dbg") for i in fn_instructions if i.opcode in ("load", "store")}

    assert places(list(original.instructions())) <= places(list(made.function.instructions()))


def test_an_inactive_float_has_a_zero_tangent() -> None:
    source = "void f(double *x, double *w, double *o) { *o = (x[0] > 0 ? x[0] : w[0]) * w[1]; }"
    made = make(source, "f", "forward", ["dup", "const", "dup"])
    w = np.array([5.0, 3.0])
    for x, want in ((2.0, 3.0), (-2.0, 0.0)):
        o, to = np.zeros(1), np.full(1, np.nan)
        made(np.array([x]), np.ones(1), w, o, to)
        assert to[0] == want


def test_overwritten_with_a_constant() -> None:
    """The tangent of a place is cleared where an inactive value, even an integer zero, is stored."""
    source = """
    void f(double *x, double *w, double *o) {
        for (int i = 0; i < 3; i++) { o[i] = x[i] * x[i]; }
        if (w[0] > 0) { o[1] = w[0]; long zero = 0; memcpy(o + 2, &zero, 8); }
    }"""
    made = make(source, "f", "forward", ["dup", "const", "dup"])
    for w, want in ((1.0, [2, 0, 0]), (-1.0, [2, 4, 6])):
        o, to = np.zeros(3), np.zeros(3)
        made(np.array([1.0, 2, 3]), np.ones(3), np.array([w]), o, to)
        assert to.tolist() == want


PIECES = """
#include <stdlib.h>
__attribute__((noinline)) static void *get(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
__attribute__((noinline)) static void move(int *a, const int *b, long n) { for (long i = 0; i < n; i++) a[i] = b[i]; }
double moved(double *x, long n) {
  double *w = get(8 * n), *v = get(8 * n), s = 0;
  int *k = get(4 * n), *l = get(4 * n);
  for (long i = 0; i < n; i++) { w[i] = x[i] * x[i]; k[i] = i + 1; }
  move((int *)v, (int *)w, 2 * n);
  move(l, k, n);
  for (long i = 0; i < n; i++) s += v[i] * l[i];
  free(w); free(v); free(k); free(l);
  return s;
}
"""


@pytest.mark.parametrize("flags", [["-O0"], ["-O2", "-fno-strict-aliasing"], ["-O2"]], ids="_".join)
@pytest.mark.parametrize("count", [3, 9])
def test_tangents_move_with_the_halves_of_floats(flags: list[str], count: int) -> None:
    """Memory of one allocation holds doubles and integers; which of them are moved, only the caller knows."""
    kernel = irgrad.load(PIECES, language="c", flags=flags).kernel("moved", "f64(f64[n] x, i64 n)")
    x = np.linspace(-1, 2, count)
    for width in (1, 2):
        np.testing.assert_allclose(jacfwd(kernel, width=width)(x), 2 * x * np.arange(1, count + 1), rtol=1e-14)
