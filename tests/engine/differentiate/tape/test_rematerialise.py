"""Values of the primal in the reverse sweep: found, derived from the iteration number, loaded or computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, gradient

from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir.text.reader import read
from irgrad.interop.loaders import load

X = np.linspace(0.3, 1.7, 40)
N = np.array([40])


def _without_tape(source: str, active: str, *buffers: Any) -> list[Any]:
    shadows, made = gradient(source, "f", active, *buffers)
    assert made.tape_bytes() == 0, "nothing had to be saved"
    return shadows


def test_induction_variables_are_computed_from_the_iteration() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0, k = 3; i < *n; i++, k += 7) s += x[i] * (double)(i * k) + x[*n - 1 - i] * k;
        *o = s;
    }"""
    dx, _ = _without_tape(source, "dcd", X, N, OUT)
    i = np.arange(40)
    np.testing.assert_allclose(dx, i * (3 + 7 * i) + (3 + 7 * (39 - i)), rtol=1e-15)


def test_memory_that_nobody_overwrites_is_read_again() -> None:
    source = """
    void f(double *x, int *at, double *w, long *n, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) s += w[at[i]] * x[at[i]] * x[i];
        *o = s;
    }"""
    at = np.random.default_rng(0).integers(0, 40, 40).astype(np.int32)
    w = np.cos(X)
    dx, dw, _ = _without_tape(source, "dcdcd", X, at, w, N, OUT)
    want = (w[at] * X[at]).copy()
    np.add.at(want, at, w[at] * X)
    np.testing.assert_allclose(dx, want, rtol=1e-13)
    want = np.zeros(40)
    np.add.at(want, at, X[at] * X)
    np.testing.assert_allclose(dw, want, rtol=1e-13)


def test_cheap_arithmetic_is_done_again() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) { double u = x[i] * 2 + 1, v = u * u - x[i]; s += v * v * u; }
        *o = s;
    }"""
    dx, _ = _without_tape(source, "dcd", X, N, OUT)
    u = 2 * X + 1
    v = u * u - X
    np.testing.assert_allclose(dx, 2 * v * u * (4 * u - 1) + 2 * v * v, rtol=1e-13)


def test_a_condition_on_memory_is_evaluated_again() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) { if (x[i] > 1) s += x[i] * x[i]; else s -= 3 * x[i]; }
        *o = s;
    }"""
    dx, _ = _without_tape(source, "dcd", X, N, OUT)
    np.testing.assert_allclose(dx, np.where(X > 1, 2 * X, -3), rtol=1e-15)


@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_what_is_overwritten_is_saved(count: int) -> None:
    """A recurrence through memory: every intermediate state is needed, and gone."""
    source = """
    void f(double *x, long *n, double *o) {
        for (long i = 1; i < *n; i++) x[i] = sin(x[i - 1] * x[i]);
        *o = x[*n > 0 ? *n - 1 : 0];
    }"""
    (dx, _), made = gradient(source, "f", "dcd", X, np.array([count]), OUT)
    state = X.copy()
    slopes = []
    for i in range(1, count):
        slopes.append((i, state[i - 1], X[i], np.cos(state[i - 1] * X[i])))
        state[i] = np.sin(state[i - 1] * X[i])
    want = np.zeros(40)
    want[max(count - 1, 0)] = 1
    for i, left, right, c in reversed(slopes):
        adjoint, want[i] = want[i], 0.0
        want[i - 1] += adjoint * c * right
        want[i] += adjoint * c * left
    np.testing.assert_allclose(dx, want, rtol=1e-12)
    if count == 40:
        assert made.tape_bytes() >= 39 * 8


def test_a_shadow_that_is_loaded_again_keeps_what_it_is_apart_from() -> None:
    """Else it stays in the innermost loop, behind stores of gradients that might go anywhere."""
    module = read(lower(load("""
    extern int enzyme_dup, enzyme_const;
    void __enzyme_autodiff(void *, ...);
    double f(double **x, long *n) {
        double s = 0;
        for (long i = 0; i < *n; i++)
            for (long j = 0; j < *n; j++) s += x[i][j] * x[i][j] * x[j][i];
        return s;
    }
    void g(double **x, double **dx, long *n) { __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, n); }
    """).text))
    found = 0
    for name in [name for name in module.functions if ".vjp." in name]:
        loads = [i for i in module.functions[name].instructions() if i.opcode == "load" and i.type.is_ptr]
        memory = [i for i in loads if getattr(i.operands[0], "opcode", "") != "alloca"]
        assert all("alias.scope" in i.metadata for i in memory)
        found += len(memory)
    assert found >= 4
