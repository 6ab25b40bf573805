"""Which values a derivative depends on, against what the functions are."""

from __future__ import annotations

import pytest

import irgrad
from irgrad.engine.kernel.linearity import values_read

SOURCE = """
#include <math.h>
void product(const double *a, const double *x, double *y, long n) {
  for (long i = 0; i < n; i++) { y[i] = 0; for (long j = 0; j < n; j++) y[i] += a[i * n + j] * x[j]; }
}
void affine(const double *x, double b, double *y, long n) { for (long i = 0; i < n; i++) y[i] = 2 * x[i] + sin(b); }
void bent(const double *x, double *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] > 0 ? 2 * x[i] : 3 * x[i]; }
double weighted(double x, double b) { return x * exp(b); }
"""
SIGNATURES = {
    "product": "void(f64[n,n] a, f64[n] x, out f64[n] y, i64 n)",
    "affine": "void(f64[n] x, f64 b, out f64[n] y, i64 n)",
    "bent": "void(f64[n] x, out f64[n] y, i64 n)",
    "weighted": "f64(f64 x, f64 b)",
}
LIBRARY = irgrad.load(SOURCE)


@pytest.mark.parametrize(("name", "arguments", "read"), [
    ("product", (1,), ()), ("product", (0,), ()), ("product", (0, 1), (0, 1)), ("affine", (0,), ()),
    ("affine", (1,), (1,)), ("bent", (0,), (0,)), ("weighted", (0,), ()), ("weighted", (1,), (1,)),
])  # fmt: skip
def test_values_read(name: str, arguments: tuple[int, ...], read: tuple[int, ...]) -> None:
    kernel = LIBRARY.kernel(name, SIGNATURES[name])
    for _ in range(2):  # found, and remembered
        assert values_read(kernel.primal, arguments, kernel.output_positions) == frozenset(read)
