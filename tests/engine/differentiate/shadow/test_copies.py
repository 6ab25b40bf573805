"""What a memcpy moves: floats, pointers, bytes; by period where memory is an array of one kind."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import facts_of_c
from handwritten.made import HEADER, OUT, gradient

import irgrad
from irgrad.engine.differentiate.shadow.copies import clear_shadow, layout_of_copy
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstZero, Function, Instruction
from irgrad.rules.errors import Unsupported


def _copy(source: str, dup: set[int]) -> tuple[Unit, Instruction]:
    facts = facts_of_c(HEADER + source, "f", dup)
    for instr in facts.root.instructions():
        if instr.is_call and isinstance(instr.callee, Function) and (instr.callee.name or "").startswith("llvm.mem"):
            return Unit(facts.module, facts.root, facts, Request("f", "vjp")), instr
    raise AssertionError("the program has no copy")


def test_a_copy_of_unknown_length_has_the_period_of_its_elements() -> None:
    source = """
    typedef struct { double a; long k; float b; } Row;
    void f(Row *x, Row *y, long *n, double *o) {
        memcpy(y, x, *n * sizeof(Row));
        double s = 0;
        for (long i = 0; i < *n; i++) s += y[i].a * y[i].k + y[i].b;
        *o = s;
    }"""
    unit, instr = _copy(source, {0, 1, 3})
    period, fields = layout_of_copy(unit, instr, (0, 1, 2))
    assert period == 24
    floats = {(offset, kind) for offset, kind in fields if isinstance(kind, ty.FloatType)}
    assert floats == {(0, ty.F64), (16, ty.F32)}


def test_a_short_copy_is_listed_by_bytes() -> None:
    source = """
    typedef struct { float a; float *p; double b; } Row;
    Row keep;
    void f(Row *x, double *o) { memcpy(&keep, x, sizeof(Row)); *o = keep.a * keep.p[0] + keep.b; }"""
    unit, instr = _copy(source, {0, 1})
    period, fields = layout_of_copy(unit, instr, (0, 1, 2))
    assert period == 24
    kinds = dict(fields)
    assert (kinds[0], kinds[8], kinds[16]) == (ty.F32, ty.PTR, ty.F64)


def test_bytes_that_are_a_float_here_and_a_pointer_there_are_refused() -> None:
    source = """
    typedef union { double v; double *p; } Cell;
    void f(Cell *x, Cell *y, long *n, double *o) {
        memmove(y, x, *n * sizeof(Cell));
        *o = *n > 3 ? y[0].v * 2 : *y[0].p;
    }"""
    unit, instr = _copy(source, {0, 1, 3})
    with pytest.raises(Unsupported, match=r"the bytes that are moved here are used as(.|\n)*in +@f(.|\n)*to fix"):
        layout_of_copy(unit, instr, (0, 1, 2))


def test_a_fill_of_such_bytes_clears_whatever_they_were() -> None:
    source = """
    typedef union { double v; double *p; } Cell;
    void f(double *x, long *n, double *o) {
        Cell c[2]; c[0].v = x[0] * x[1]; double s = c[0].v * x[0];
        c[0].p = x + 1; s += *c[0].p;
        memset(c, 0, *n * sizeof(Cell));
        *o = s + (c[0].p ? 1 : c[0].v) * x[1] + c[1].v;
    }"""
    x = np.array([1.5, -2.0])
    (dx, _), _made = gradient(source, "f", "dcd", x, np.array([2]), OUT)
    np.testing.assert_allclose(dx, [2 * x[0] * x[1], x[0] ** 2 + 1], rtol=1e-14)


@pytest.mark.parametrize("shift", [2, -2])
def test_overlapping_moves_have_the_right_adjoint(shift: int) -> None:
    """x[4+s:9+s] = x[4:9] by memmove, then a weighted sum."""
    source = f"""
    void f(double *x, long *n, double *w, double *o) {{
        memmove(x + 4 + ({shift}), x + 4, *n * sizeof(double));
        double s = 0;
        for (int i = 0; i < 12; i++) s += w[i] * x[i];
        *o = s;
    }}"""
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-1, 1, (2, 12))
    (dx, _), _made = gradient(source, "f", "dccd", x, np.array([5]), w, OUT)
    want = w.copy()
    want[4 + shift : 9 + shift] = 0
    want[4:9] += w[4 + shift : 9 + shift]
    np.testing.assert_allclose(dx, want, rtol=1e-15)


EITHER = r"""
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) void *get(void **slots, int k) { return slots[k]; }
double f(const double *x, int n, int k) {
  void *slots[2];
  slots[k & 1] = malloc(n * sizeof(real));
  slots[~k & 1] = malloc(n * sizeof(whole));
  real *v = get(slots, k & 1), *w = malloc(n * sizeof(real));
  whole *c = get(slots, ~k & 1);
  c[0] = 0;
  for (int i = 1; i < n; i++) c[i] = i * 7 % n;
  for (int i = 0; i < n; i++) v[i] = x[i] * x[i];
  memcpy(w, v, n * sizeof(real));
  double r = 0;
  for (int i = 0; i < n; i++) r += w[i] * x[c[i]];
  free(v); free(w); free(c);
  return r;
}
"""


@pytest.mark.parametrize(("real", "whole"), [("double", "int"), ("long double", "long")])
@pytest.mark.parametrize("k", [0, 1])
def test_one_pointer_means_floats_or_integers(k: int, real: str, whole: str) -> None:
    """The pointer to the floats may also mean the integers, of which the first is seen at an exact place."""
    kernel = irgrad.load(EITHER, define={"real": real, "whole": whole}).kernel("f", "f64(f64[n] x, i32 n, i32 k)")
    x = np.array([0.5, -1.5, 2.0, 0.25, 3.0])
    c = np.arange(5) * 7 % 5
    want = 2 * x * x[c]
    np.add.at(want, c, x**2)
    np.testing.assert_allclose(irgrad.engine.grad(kernel)(x, k), want, rtol=1e-14)
    forward = [irgrad.engine.jvp(kernel, (x, k), (e, None))[1] for e in np.eye(5)]
    np.testing.assert_allclose(forward, want, rtol=1e-14)


def test_memory_is_cleared_as_elements_lie() -> None:
    """Where a program aligned its pointer by hand, its shadow lies otherwise: aligned stores of vectors ended the
    process."""
    block = Block("b")
    for type_, align, want in ((ty.vector(4, ty.F64), 32, 8), (ty.vector(8, ty.F32), 32, 4), (ty.F64, 4, 4)):
        clear_shadow(Builder(block), type_, ConstZero(ty.PTR), align)
        assert block.instructions[-1].align == want
