"""Programs as users write them: workspace queries, 64-bit integers, some arguments constant, Jacobians."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blas_cases import library

import irgrad
from irgrad.engine import grad, jacfwd, jacrev

QUERY = """
#include <stdlib.h>
void dgeqrf_(const int *, const int *, double *, const int *, double *, double *, const int *, int *);
void dsyev_(const char *, const char *, const int *, double *, const int *, double *, double *, const int *, int *);
double logdet(int n, double *a) {
  double size, total = 1;
  int info, lwork = -1;
  double *tau = malloc(n * sizeof *tau);
  dgeqrf_(&n, &n, a, &n, tau, &size, &lwork, &info);
  lwork = (int)size;
  double *work = malloc(lwork * sizeof *work);
  dgeqrf_(&n, &n, a, &n, tau, work, &lwork, &info);
  for (int i = 0; i < n; i++) total *= a[i + i * n] * (n % 2 ? 1 : -1);
  free(work);
  free(tau);
  return total * total;
}
double spread(int n, double *a) {
  double size, w[16];
  int info, lwork = -1;
  dsyev_("N", "L", &n, a, &n, w, &size, &lwork, &info);
  lwork = (int)size;
  double *work = malloc(lwork * sizeof *work);
  dsyev_("N", "L", &n, a, &n, w, work, &lwork, &info);
  free(work);
  return w[n - 1] - w[0];
}
"""
WIDE = """
void cblas_dgemv(int, int, long, long, double, const double *, long, const double *, long, double, double *, long);
void GEMV(int, int, long, long, double, const double *, long, const double *, long, double, double *, long);
void product(long m, long n, const double *a, const double *x, double *y) {
  GEMV(101, 111, m, n, 1.0, a, n, x, 1, 0.0, y, 1);
}
"""


def test_workspace_queries() -> None:
    lib = irgrad.load(QUERY, link=[library()])
    rng = np.random.default_rng(1)
    a = rng.normal(size=(4, 4))
    logdet = lib.kernel("logdet", "f64(i32 n, inout f64[n,n] a)")
    _, pull = irgrad.engine.vjp(logdet, a)
    found = next(g for g in pull((1.0, np.zeros((4, 4)))) if g is not None)
    np.testing.assert_allclose(found, 2 * np.linalg.det(a) ** 2 * np.linalg.inv(a).T, rtol=1e-10)
    spread = lib.kernel("spread", "f64(i32 n, inout f64[n,n] a)")
    a = a + a.T
    _, pull = irgrad.engine.vjp(spread, a)
    found = next(g for g in pull((1.0, np.zeros((4, 4)))) if g is not None)
    z = np.linalg.eigh(a)[1]
    full = np.outer(z[:, -1], z[:, -1]) - np.outer(z[:, 0], z[:, 0])
    want = 2 * np.triu(full, 1) + np.diag(np.diag(full))  # the lower triangle of columns
    np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("argnums", [0, 1])
def test_integers_of_64_bits_and_jacobians(argnums: int) -> None:
    wide = next(Path(np.__file__).parent.parent.glob("numpy.libs/libscipy_openblas64_*.so"), None)
    if wide is None:
        pytest.skip("this NumPy brings no OpenBLAS along")
    lib = irgrad.load(WIDE, define={"GEMV": "scipy_cblas_dgemv64_"}, link=[wide])
    product: Any = lib.kernel("product", "void(i64 m, i64 n, f64[m,n] a, f64[n] x, out f64[m] y)")
    rng = np.random.default_rng(2)
    a, x = rng.normal(size=(3, 2)), rng.normal(size=2)
    want = a if argnums else np.einsum("ij,k->ijk", np.eye(3), x)
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(product, argnums=argnums)(a, x), want, rtol=1e-12)


def test_products_with_constants() -> None:
    lib = irgrad.load("double cblas_ddot(int, const double *, int, const double *, int);\n"
                      "double dot(int n, const double *x, const double *y) { return cblas_ddot(n, x, 1, y, 1); }",
                      link=[library()])  # fmt: skip
    dot = lib.kernel("dot", "f64(i32 n, f64[n] x, f64[n] y)")
    x, y = np.arange(3.0), np.array([2.0, 5.0, 7.0])
    np.testing.assert_allclose(grad(dot, argnums=0)(x, y), y)
    np.testing.assert_allclose(grad(dot, argnums=1)(x, y), x)


def test_what_is_shown() -> None:
    shown = irgrad.rules.show("cblas_dgemm")
    assert "`cblas_dgemm` of BLAS or LAPACK: forward and reverse, at irgrad/rules/blas/level3.py" in shown
    assert "no rule" in irgrad.rules.show("dgemm_with_a_twist_")
