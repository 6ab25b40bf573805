"""Conditions, and calls with literal flags."""

from __future__ import annotations

import numpy as np
import pytest
from blas_cases import library

import irgrad
from irgrad.engine import vjp
from irgrad.rules import layer, rule
from irgrad.rules.blas.calls import no, xor

SOURCE = """
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *);
void product(int n, const double *a, const double *b, double *c) {
  cblas_dgemm(102, 112, 111, n, n, n, 2.0, a, n, b, n, 0.0, c, n);
}
void solve(int n, const double *a, double *b) {
  const double one = 1.0;
  dtrsm_("L", "L", "N", "N", &n, &n, &one, a, &n, b, &n);
}
"""
RENAMED = """
void scipy_cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                       int);
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy) { return n * x[0] * y[1]; }
void twice(int n, const double *a, double *c) {
  scipy_cblas_dgemm(101, 111, 111, n, n, n, 1.0, a, n, a, n, 0.0, c, n);
}
double own(int n, const double *x) { return cblas_ddot(n, x, 1, x, 1); }
"""


def test_conditions() -> None:
    assert no(True) is False
    assert [xor(a, b) for a in (False, True) for b in (False, True)] == [False, True, True, False]


def test_literal_flags() -> None:
    lib = irgrad.load(SOURCE, link=[library()])
    rng = np.random.default_rng(1)
    a, b, seed = rng.normal(size=(3, 4, 4))
    product = lib.kernel("product", "void(i32 n, f64[n,n] a, f64[n,n] b, out f64[n,n] c)")
    _, pull = vjp(product, a, b)  # column-major: c^T = 2 a b^T in rows
    da, db = pull(seed)
    np.testing.assert_allclose(da, 2 * seed.T @ b, rtol=1e-12)
    np.testing.assert_allclose(db, 2 * seed @ a, rtol=1e-12)


def test_renamed_symbols_and_own_bodies() -> None:
    lib = irgrad.load(RENAMED, link=[library()])
    rng = np.random.default_rng(2)
    a, seed = rng.normal(size=(2, 3, 3))
    twice = lib.kernel("twice", "void(i32 n, f64[n,n] a, out f64[n,n] c)")
    _, pull = vjp(twice, a)
    np.testing.assert_allclose(pull(seed)[0], seed @ a.T + a.T @ seed, rtol=1e-12)
    own = lib.kernel("own", "f64(i32 n, f64[n] x)")  # the module has a body: that is what is differentiated
    _, pull = vjp(own, np.array([2.0, 3.0]))
    np.testing.assert_allclose(pull(1.0)[0], [6.0, 4.0])


def test_rules_of_a_user_come_first() -> None:
    lib = irgrad.load(SOURCE, link=[library()])
    product = lib.kernel("product", "void(i32 n, f64[n,n] a, f64[n,n] b, out f64[n,n] c)")
    a = np.eye(2)
    with layer():

        @rule("cblas_dgemm", mode="reverse")
        def _(ctx, order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):  # type: ignore[no-untyped-def]
            a.d[0] += 7.0

        _, pull = vjp(product, a, a)
        assert pull(a)[0][0, 0] == 7.0
    _, pull = vjp(product, a, a)
    assert pull(a)[0][0, 0] == 2.0


@pytest.mark.parametrize("n", [3])
def test_letters(n: int) -> None:
    lib = irgrad.load(SOURCE, link=[library()])
    rng = np.random.default_rng(3)
    a = np.tril(0.3 * rng.normal(size=(n, n))) + 2 * np.eye(n)
    b, seed = rng.normal(size=(2, n, n))
    solve = lib.kernel("solve", "void(i32 n, f64[n,n] a, inout f64[n,n] b)")
    out, pull = vjp(solve, a.T.copy(), b.T.copy())  # rows are columns
    x = np.linalg.solve(a, b)
    np.testing.assert_allclose(out.T, x, rtol=1e-12)
    da, db = pull(seed.T.copy())
    want = np.linalg.solve(a.T, seed)
    np.testing.assert_allclose(db.T, want, rtol=1e-12)
    np.testing.assert_allclose(da.T, np.tril(-want @ x.T), rtol=1e-11, atol=1e-12)
