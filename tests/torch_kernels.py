"""Kernels that the tests of the PyTorch bridge share, and the same functions written with torch as their oracle."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import irgrad

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch; .ci/doors runs these tests")

SOURCE = r"""
#include <math.h>
void chain(double a, const double *x, double *y, double *z, long n) {   /* y = sin(a x) z; z = z^2 x */
    for (long i = 0; i < n; i++) { y[i] = sin(a * x[i]) * z[i]; z[i] = z[i] * z[i] * x[i]; }
}
double energy(const double *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) { double d = pos[3*i+k] - pos[3*j+k]; r += d * d; }
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
float wave(const float *x, float shift, int n, float *y) {              /* y = cos(x + shift); returns sum x^3 / 3 */
    float s = 0;
    for (int i = 0; i < n; i++) { y[i] = cosf(x[i] + shift); s += x[i] * x[i] * x[i] / 3; }
    return s;
}
int solve(const double *a, const double *b, double *x, long n) {
    for (long i = 0; i < n; i++) { if (a[i] == 0) return 1; x[i] = b[i] / a[i]; }
    return 0;
}
double gather(const double *x, const int *index, int n, int m) {
    double s = 0;
    for (int i = 0; i < m; i++) s += x[index[i]] * x[index[i]];
    return s;
}
double power(double x, int k) { double r = 1; for (int i = 0; i < k; i++) r *= x; return r; }
long positive(const double *x, long n, double *twice) {                 /* an integer and an array */
    long c = 0;
    for (long i = 0; i < n; i++) { c += x[i] > 0; twice[i] = 2 * x[i] * x[i]; }
    return c;
}
struct body { double pos[3]; double mass; int kind; };
double inertia(const struct body *bodies, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) sum += bodies[i].mass * bodies[i].pos[k] * bodies[i].pos[k];
    return sum;
}
"""

SIGNATURES = {
    "chain": "void(f64 a, f64[n] x, out f64[n] y, inout f64[n] z, i64 n)",
    "energy": "f64(f64[n,3] pos, f64[n] mass, i64 n)",
    "wave": "f32(f32[n] x, f32 shift, i32 n, out f32[n] y)",
    "gather": "f64(f64[n] x, i32[m] index, i32 n, i32 m)",
    "power": None,
    "positive": "i64(f64[n] x, i64 n, out f64[n] twice)",
    "inertia": "struct body { f64[3] pos; f64 mass; i32 kind; }; f64(body[n] bodies, i64 n)",
}


@cache
def library() -> irgrad.Library:
    return irgrad.load(SOURCE)


@cache
def kernel(name: str) -> Any:
    if name == "solve":
        text = "i32(f64[n] a, f64[n] b, out f64[n] x, i64 n)"
        return library().kernel("solve", text, errors={1: "the matrix is singular"})
    return library().kernel(name, SIGNATURES[name])


def _chain(a: Any, x: Any, z: Any) -> Any:
    return torch.sin(a * x) * z, z * z * x


def _energy(pos: Any, mass: Any) -> Any:
    apart = pos[:, None] - pos[None]
    pairs = mass[:, None] * mass[None] / torch.sqrt((apart**2).sum(-1) + 0.01)
    return -torch.tril(pairs, -1).sum()


def _wave(x: Any, shift: Any) -> Any:
    return (x**3).sum() / 3, torch.cos(x + shift)


ORACLES = {"chain": _chain, "energy": _energy, "wave": _wave}


def arguments(name: str, seed: int = 0, n: int = 4) -> tuple[Any, ...]:
    """Random arguments."""
    make = torch.Generator().manual_seed(seed)

    def normal(*shape: int, dtype: Any = torch.float64) -> Any:
        return torch.randn(shape, generator=make, dtype=dtype)

    if name == "chain":
        return normal(), normal(n), normal(n)
    if name == "energy":
        return normal(n, 3), normal(n).abs() + 0.5
    return normal(n, dtype=torch.float32), normal(dtype=torch.float32)


def leaves(values: Any) -> list[Any]:
    """The tensors in nested tuples."""
    return [values] if isinstance(values, torch.Tensor) else [x for row in values for x in leaves(row)]


def same(got: Any, wanted: Any) -> None:
    """Compare nested tuples of tensors, to what their dtype allows."""
    rows, others = leaves(got), leaves(wanted)
    assert len(rows) == len(others)
    for x, y in zip(rows, others, strict=True):
        tight = x.dtype == torch.float64
        torch.testing.assert_close(x, y, rtol=1e-9 if tight else 2e-4, atol=1e-10 if tight else 1e-4)
