"""Kernels that the tests of `explain` are about: loops with recurrences, straight code, stencils, calls, branches."""

from __future__ import annotations

from functools import cache

import numpy as np

from irgrad.engine.kernel.kernel import Kernel
from irgrad.interop.loaders import load

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
double nested(const double *x, const double *w, long n, long m) {
    double total = 0;
    for (long i = 0; i < n; i++) {
        double s = x[i];
        for (long j = 0; j < m; j++)
            s = sin(s * w[j]) + 0.5 * s;
        total += s * s;
    }
    return total;
}
double triangle(const double *x, long n) {
    double total = 0;
    for (long i = 0; i < n; i++) {
        double s = x[i];
        for (long j = 0; j < i; j++)
            s = sin(s * x[j]);
        total += s;
    }
    return total;
}
double root(const double *x, long n) {
    double s = x[0];
    int k = 0;
    while (fabs(s * s - x[1]) > 1e-9) {
        s = 0.5 * (s + x[1] / s);
        if (++k > 1000) break;
    }
    return s;
}
void stencil(const double *u, double *v, long n, long m) {
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < m - 1; j++)
            v[i * m + j] = u[i * m + j] * u[i * m + j - 1] + u[(i - 1) * m + j] * u[(i + 1) * m + j];
}
void heat(double *u, double *v, long n, long steps) {
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * u[i] * (u[i - 1] - 2 * u[i] + u[i + 1]);
        for (long i = 1; i < n - 1; i++) u[i] = v[i];
    }
}
double straight(double a, double b) {
    double c = a * b;
    return sin(c) * exp(a) / (1 + b * b);
}
double sometimes(const double *x, long n, int often) {
    double s = x[0];
    if (often)
        for (long i = 0; i < n; i++) s = sin(s * x[i]);
    return s;
}
double every_third(const double *x, long n) {
    double s = x[0];
    for (long i = 0; i < n; i += 3) s = sin(s * x[i]);
    return s;
}
double pairs(const double *x, long n) {
    double s = 0;
    for (const double *p = x; p != x + n; p++) s = cos(s * *p);
    return s;
}
float singles(const float *x, int n) {
    float s = x[0];
    for (int i = 0; i < n; i++) s = sinf(s) * x[i];
    return s;
}
double mine(double a, double s) { return sin(a * s); }
double ruled(const double *x, long n) {
    double s = 0.5;
    for (long i = 0; i < n; i++) s = mine(x[i], s);
    return s;
}
__attribute__((noinline)) double inner(const double *x, double s, long n) {
    for (long i = 0; i < n; i++) s = sin(s * x[0]) + exp(s);
    return s;
}
double outer(const double *x, long n) {
    double t = 0;
    for (long k = 1; k < n; k++) t += inner(x, t, k);
    return t;
}
double swapped(const double *x, long n, long steps) {
    double *u = malloc(n * 8), *v = malloc(n * 8), s = 0;
    for (long i = 0; i < n; i++) { u[i] = x[i]; v[i] = 1 - x[i] * x[i]; }
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++) v[i] = u[i] * (1 - 0.3 * (u[i + 1] - u[i - 1]));
        double *old = u; u = v; v = old;
    }
    for (long i = 0; i < n; i++) s += u[i] * u[i];
    free(u); free(v);
    return s;
}
"""
SIGNATURES = {
    "nested": "f64(f64[n] x, f64[m] w, i64 n, i64 m)",
    "triangle": "f64(f64[n] x, i64 n)",
    "root": "f64(f64[n] x, i64 n)",
    "stencil": "void(f64[n,m] u, out f64[n,m] v, i64 n, i64 m)",
    "heat": "void(inout f64[n] u, inout f64[n] v, i64 n, i64 steps)",
    "straight": "f64(f64 a, f64 b)",
    "sometimes": "f64(f64[n] x, i64 n, i32 often)",
    "every_third": "f64(f64[n] x, i64 n)",
    "pairs": "f64(f64[n] x, i64 n)",
    "singles": "f32(f32[n] x, i32 n)",
    "ruled": "f64(f64[n] x, i64 n)",
    "outer": "f64(f64[n] x, i64 n)",
    "swapped": "f64(f64[n] x, i64 n, i64 steps)",
}


@cache
def kernel(name: str) -> Kernel:
    """One of the kernels."""
    return load(SOURCE).kernel(name, SIGNATURES[name])


def line(text: str, source: str = SOURCE) -> int:
    """The number of the first line with this text."""
    return next(n for n, row in enumerate(source.splitlines(), 1) if text in row)


def values(count: int, dtype: type = np.float64) -> np.ndarray:
    """Numbers around one."""
    return np.linspace(0.5, 1.5, count).astype(dtype)
