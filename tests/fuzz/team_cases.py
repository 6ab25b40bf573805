"""Kernels whose loops threads share, with arguments, and how many jobs their gradients have at least."""

from __future__ import annotations

from typing import Any

import numpy as np

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
void stencil(const double *x, double *y, long n, long steps) {
    for (long i = 0; i < n; i++) y[i] = x[i];
    double *z = malloc(n * sizeof *z);
    for (long t = 0; t < steps; t++) {
        #pragma omp parallel for schedule(dynamic, 4)
        for (long i = 1; i < n - 1; i++) z[i] = y[i] + 0.1 * (y[i - 1] - 2 * y[i] + y[i + 1]) * cos(y[i]);
        #pragma omp parallel for
        for (long i = 1; i < n - 1; i++) y[i] = z[i];
    }
    free(z);
}
void rows(double *x, const double *w, long n, long m) {
    for (long i = 0; i < n; i++)
        for (long j = 1; j < m; j++) x[i * m + j] = tanh(x[i * m + j - 1] * w[j] + x[i * m + j]);
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
double extremes(const double *x, long n) {
    double m = -1e9, p = 1;
    long c = 0;
    #pragma omp parallel for reduction(max:m) reduction(*:p) reduction(+:c)
    for (long i = 0; i < n; i++) {
        double v = sin(x[i]) * x[i];
        m = v > m ? v : m, p *= 1 + 0.01 * x[i], c += x[i] > 0;
    }
    return m * p * c;
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
    "stencil": ("void(f64[n] x, out f64[n] y, i64 n, i64 steps)", (VALUES[0], 3), 4),
    "rows": ("void(inout f64[n,m] x, f64[m] w, i64 n, i64 m)", (VALUES[:2, :300].reshape(60, 10), VALUES[2, :10]), 2),
    "extremes": ("f64(f64[n] x, i64 n)", (VALUES[0],), 2),
    "two_sums": ("f64(f64[n] x, f64[k] w, i64 n)".replace("[k]", "[2]"), (VALUES[0], VALUES[1, :2]), 2),
}  # fmt: skip
