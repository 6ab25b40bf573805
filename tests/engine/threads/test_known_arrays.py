"""Arrays that change places between steps, of which a reverse sweep finds out where they are and how long: the same
bits on any number of threads; one thread where it cannot, which is said."""

from __future__ import annotations

import ctypes
import warnings

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.threads.known_arrays import ARRAY, ARRAYS_TEXT, NOWHERE
from irgrad.rules.errors import OneThread

STEP = """
#include <math.h>
#include <stdlib.h>
#define STEP(u, v, n)                                                                                    \\
    _Pragma("omp parallel for") for (long i = 0; i < n; i++)                                             \\
        v[i] = u[i] + 0.1 * sin(u[(i + n - 1) % n] * u[i]) + 0.2 * u[(i + 1) % n];
#define END(u) double s = 0; for (long i = 0; i < n; i++) s += u[i] * u[i]; return s;
"""
PROGRAMS = {
    "on the heap": """
double f(const double *x, long n, long steps) {
    double *u = malloc(8 * n), *v = malloc(16 * n);
    for (long i = 0; i < n; i++) u[i] = x[i];
    for (long t = 0; t < steps; t++) { STEP(u, v, n) double *w = u; u = v; v = w; }
    END(u)
}""",
    "anew in each step": """
double f(const double *x, long n, long steps) {
    double *u = malloc(8 * n);
    for (long i = 0; i < n; i++) u[i] = x[i];
    for (long t = 0; t < steps; t++) { double *v = malloc(8 * (n + t)); STEP(u, v, n) free(u); u = v; }
    END(u)
}""",
    "in the middle of one": """
double f(const double *x, long n, long steps) {
    double *whole = malloc(8 * 3 * n), *u = whole + n / 2, *v = whole + 2 * n;
    for (long i = 0; i < n; i++) u[i] = x[i];
    for (long t = 0; t < steps; t++) { STEP(u, v, n) double *w = u; u = v; v = w; }
    END(u)
}""",
    "of an array of pointers": """
double f(const double *x, long n, long steps) {
    double *rows[3];
    for (int r = 0; r < 3; r++) rows[r] = calloc(n, 8);
    for (long i = 0; i < n; i++) rows[0][i] = x[i];
    for (long t = 0; t < steps; t++) { double *u = rows[t % 3], *v = rows[(t + 1) % 3]; STEP(u, v, n) }
    double *last = rows[steps % 3];
    END(last)
}""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_on_any_number_of_threads(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    lib = ig.load(STEP + PROGRAMS[name], flags=["-fopenmp"])
    signature, x = "f64(f64[n] x, i64 n, i64 steps)", 0.5 + np.random.default_rng(4).random(41)
    plain = lib.kernel("f", signature)
    assert ig.check(plain, x, steps=6).ok
    gradients = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        for threads in (1, 2, 4, 16):
            f = lib.kernel("f", signature, threads=threads)
            gradients.append(ig.grad(f)(x, steps=6))
            np.testing.assert_array_equal(gradients[0], gradients[-1])
    np.testing.assert_allclose(gradients[0], ig.grad(plain)(x, steps=6), rtol=1e-11)
    np.testing.assert_array_equal(ig.grad(f)(x, steps=0), 2 * x)
    assert "reverse sweep" not in str(ig.explain(f, lanes=False))
    assert "one thread runs" not in capfd.readouterr().err


ELSEWHERE = """
typedef struct { double *u, *v; } Both;
__attribute__((noinline)) void make(Both *b, long n) { b->u = malloc(8 * n); b->v = malloc(8 * n); }
double f(const double *x, long n, long steps) {
    Both b, c;
    make(&b, n);
    make(&c, 2 * n);
    for (long i = 0; i < n; i++) b.u[i] = x[i];
    for (long t = 0; t < steps; t++) {
        double *u = b.u, *v = b.v;
        STEP(u, v, n)
        b.u = c.u; b.v = c.v; c.u = v; c.v = u;
        double *w = b.u; b.u = c.u; c.u = w;
    }
    END(b.u)
}"""


def test_arrays_from_elsewhere_are_right(capfd: pytest.CaptureFixture[str]) -> None:
    """Whether they are found or not."""
    lib = ig.load(STEP + ELSEWHERE, flags=["-fopenmp"])
    signature, x = "f64(f64[n] x, i64 n, i64 steps)", 0.5 + np.random.default_rng(4).random(41)
    plain = ig.grad(lib.kernel("f", signature))(x, steps=5)
    found = [ig.grad(lib.kernel("f", signature, threads=threads))(x, steps=5) for threads in (1, 2, 4)]
    for one in found:
        np.testing.assert_array_equal(one, found[0])
    np.testing.assert_allclose(found[0], plain, rtol=1e-11)
    rows = str(ig.explain(lib.kernel("f", signature, threads=2), lanes=False))
    assert "not known" in rows or "address it reads" in rows or "one thread runs" in capfd.readouterr().err


def test_the_list() -> None:
    """What it says of addresses in arrays, beside them, and null; from wherever the last one was found."""
    unit = compile_module(ARRAYS_TEXT.replace("internal ", ""), [ARRAY])
    ask = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(unit.address(ARRAY))
    arrays = {4096: 800, 8192: 16, 16384: 0}
    nodes: list[ctypes.Array[ctypes.c_int64]] = []
    for begin, size in arrays.items():
        before = ctypes.addressof(nodes[-1]) if nodes else 0
        nodes.append((ctypes.c_int64 * 3)(before, begin, size))
    held = (ctypes.c_int64 * 2)(ctypes.addressof(nodes[-1]), 0)
    for address, begin, size in [
        (4096, 4096, 800), (8199, 8192, 16), (4895, 4096, 800), (4896, 4896, NOWHERE), (4095, 4095, NOWHERE),
        (16384, 16384, NOWHERE), (0, 0, 0), (8192, 8192, 16),
    ]:  # fmt: skip
        low = ctypes.c_int64(-1)
        assert (ask(ctypes.addressof(held), address, ctypes.addressof(low)), low.value) == (size, begin)
