"""Kernels on a team of threads: the same bits on any number of them, and the derivatives of the same function."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import irgrad
from irgrad.engine.kernel.shared_loops import OneThread, shared_loops

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
void in_place(double *x, const double *w, long n, long steps) {
    for (long t = 0; t < steps; t++) {
        #pragma omp parallel for
        for (long i = 0; i < n; i++) x[i] = sin(x[i]) * w[i] + x[i] * x[i] * 0.1;
    }
}
void gather(const double *x, const long *at, double *y, long n, long m) {
    #pragma omp parallel for
    for (long i = 0; i < m; i++) { double a = x[at[2 * i]], b = x[at[2 * i + 1]]; y[i] = a * b + sin(a - b); }
}
double scratch(const double *x, long n) {
    double *t = malloc(n * sizeof *t), s = 0;
    for (long i = 0; i < n; i++) t[i] = exp(0.1 * x[i]);
    for (long i = 1; i < n - 1; i++) s += t[i - 1] * t[i] - t[i + 1] * t[i] * t[i];
    free(t);
    return s;
}
void red_black(double *x, long n) {
    for (int c = 0; c < 4; c++)
        #pragma omp parallel for
        for (long i = 1 + (c & 1); i < n - 1; i += 2) x[i] = 0.3 * (x[i - 1] + x[i + 1]) + sin(x[i]);
}
float single(const float *x, const float *w, long n, long m) {
    float s = 0;
    #pragma omp parallel for reduction(+:s)
    for (long i = 0; i < n; i++) {
        float h = 0;
        for (long j = 0; j < m; j++) h += x[i * m + j] * w[j];
        s += tanhf(h);
    }
    return s;
}
void product(const double *a, const double *b, double *c, long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double s = 0;
            for (long k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
            c[i * n + j] = s;
        }
}
static double iterate(double a, const double *w, long m) {
    double *keep = malloc(m * sizeof *keep), s = 0;
    for (long j = 0; j < m; j++) { a = sin(a + w[j]); keep[j] = a * a; }
    for (long j = 0; j < m; j++) s += keep[j] * a;
    free(keep);
    return s;
}
void of_calls(const double *x, const double *w, double *y, long n, long m) {
    #pragma omp parallel for
    for (long i = 0; i < n; i++) y[i] = iterate(x[i], w, m);
}
double two_sums(const double *x, const double *w, long n) {
    double a = 1, b = 2;
    #pragma omp parallel for reduction(+:a,b)
    for (long i = 0; i < n; i++) { if (x[i] > 0) a += x[i] * w[0]; else b += x[i] * x[i] * w[1]; }
    return a * b;
}
"""
RNG = np.random.default_rng(1)
N = 301
VALUES = RNG.normal(size=(3, N))
ROWS = RNG.normal(size=(N, 20)).astype("f4")
AT = RNG.integers(0, 50, (N, 2))
CASES: dict[str, tuple[str, tuple[Any, ...], int]] = {
    "in_place": ("void(inout f64[n] x, f64[n] w, i64 n, i64 steps)", (VALUES[0], VALUES[1], 5), 2),
    "gather": ("void(f64[n] x, i64[m,2] at, out f64[m] y, i64 n, i64 m)", (VALUES[0, :50], AT), 2),
    "scratch": ("f64(f64[n] x, i64 n)", (VALUES[0],), 4),
    "red_black": ("void(inout f64[n] x, i64 n)", (VALUES[0],), 1),
    "single": ("f32(f32[n,m] x, f32[m] w, i64 n, i64 m)", (ROWS, np.ones(20, "f4")), 2),
    "product": ("void(f64[n,n] a, f64[n,n] b, out f64[n,n] c, i64 n)", tuple(VALUES[:2, :100].reshape(2, 10, 10)), 2),
    "of_calls": ("void(f64[n] x, f64[m] w, out f64[n] y, i64 n, i64 m)", (VALUES[0], VALUES[1, :7]), 2),
    "two_sums": ("f64(f64[n] x, f64[k] w, i64 n)".replace("[k]", "[2]"), (VALUES[0], VALUES[1, :2]), 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def lib() -> Any:
    return irgrad.load(SOURCE, flags=["-fopenmp"])


def _results(f: Any, args: tuple[Any, ...]) -> list[Any]:
    """Values, gradients for cotangents, tangents."""
    floats = [n for n, a in enumerate(args) if np.asarray(a).dtype.kind == "f"]
    given = f(*args)
    outs = given if isinstance(given, tuple) else (given,)
    bars = [np.cos(np.arange(np.size(o))).reshape(np.shape(o)).astype(np.asarray(o).dtype) for o in outs]
    _, pullback = irgrad.vjp(f, *args)
    gradients = pullback(tuple(bars) if len(bars) > 1 else bars[0])
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    tangents = {n: np.full_like(args[n], 0.5) for n in floats}
    _, pushed = irgrad.jvp(f, tuple(args), [tangents[n] if n in floats else None for n in range(len(args))])
    pushed = pushed if isinstance(pushed, tuple) else (pushed,)
    kept = [np.asarray(g) for g in gradients if g is not None]
    dot = sum(float(np.vdot(b, p)) for b, p in zip(bars, pushed, strict=True))
    dual = sum(float(np.vdot(g, tangents[n])) for g, n in zip(kept, floats, strict=True))
    assert dot == pytest.approx(dual, rel=2e-5 if kept[0].dtype == np.float32 else 1e-10)
    return [*map(np.asarray, outs), *kept, *map(np.asarray, pushed)]


@pytest.mark.parametrize("name", CASES)
def test_same_bits_on_any_number_of_threads(lib: Any, name: str) -> None:
    signature, args, _ = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = {t: _results(lib.kernel(name, signature, threads=t), tuple(args)) for t in (1, 2, 3, 16, "auto")}
    plain = _results(lib.kernel(name, signature), tuple(args))
    for found in results.values():
        for a, b, c in zip(found, results[1], plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=2e-5 if a.dtype == np.float32 else 1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_loops_that_are_shared(lib: Any, name: str) -> None:
    signature, _, count = CASES[name]
    program = lib.kernel(name, signature, threads=2).primal
    active = [n for n, slot in enumerate(program.slots) if slot.differentiable]
    text = program.vjp(active).ir
    assert text.count("\ndefine internal ptr @irgrad.team.") - text.count(".fold(ptr %context, i64 %p)") >= count
    assert shared_loops(program).shared


def test_a_reverse_sweep_on_one_thread_is_told(lib: Any) -> None:
    signature, _, _ = CASES["red_black"]
    report = irgrad.explain(lib.kernel("red_black", signature, threads=2), lanes=False)
    assert "threads: shared by a team: <string>:" in str(report) and "uses other places in another way" in str(report)


def test_a_warning_where_no_loop_is_shared() -> None:
    body = "double s = 1; for (long i = 0; i < n; i++) s = s * x[i] + 1; return s;"
    lib = irgrad.load(f"double f(const double *x, long n) {{ {body} }}")
    f = lib.kernel("f", "f64(f64[n] x, i64 n)", threads=2)
    with pytest.warns(OneThread, match=r"`f` runs on one thread, whatever `threads` says: <string>:1:\d+: each iter"):
        f(np.ones(3))


def test_many_callers_at_once(lib: Any) -> None:
    """One has the team, the others run their chunks by themselves."""
    signature, args, _ = CASES["gather"]
    f = lib.kernel("gather", signature, threads=4)
    wanted, wrong = f(*args), []

    def call() -> None:
        for _ in range(50):
            if not np.array_equal(f(*args), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_under_jax(lib: Any) -> None:
    signature, args, _ = CASES["gather"]
    f, plain = (lib.kernel("gather", signature, threads=t) for t in (2, None))
    x, at = args

    def loss(kernel: Any) -> Any:
        return jax.jit(jax.grad(lambda v: (kernel(v, at) ** 2).sum()))

    with jax.enable_x64(True):
        np.testing.assert_allclose(loss(f)(x), loss(plain)(x), rtol=1e-12)
        batch = np.stack([x, x + 0.1, x - 0.1])
        np.testing.assert_allclose(jax.vmap(loss(f))(batch), jax.vmap(loss(plain))(batch), rtol=1e-12)
