"""Small C kernels that the tests of the API, the command line and the JAX bridge share."""

from __future__ import annotations

from functools import cache
from typing import Any

import irgrad

SOURCE = r"""
#include <math.h>
double cubes(const double *x, double a, long n) {        /* a * sum x^3 */
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i];
    return a * s;
}
float halves(const float *x, int n) {                    /* sum x^2 / 2 */
    float s = 0;
    for (int i = 0; i < n; i++) s += 0.5f * x[i] * x[i];
    return s;
}
double energy(const double *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) {
                double d = pos[3 * i + k] - pos[3 * j + k];
                r += d * d;
            }
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
void scale(double *x, int n, double dt, double *o) {     /* x *= dt; o = x^2 */
    for (int i = 0; i < n; i++) {
        x[i] *= dt;
        o[i] = x[i] * x[i];
    }
}
double two(const double *x, int n, double *y, double *z) {   /* returns sum x; y = sin x; z = x[0] x[n-1] */
    double s = 0;
    for (int i = 0; i < n; i++) {
        s += x[i];
        y[i] = sin(x[i]);
    }
    *z = x[0] * x[n - 1];
    return s;
}
double gather(const double *x, const int *index, int n, int m) {  /* sum x[index]^2 */
    double s = 0;
    for (int i = 0; i < m; i++) s += x[index[i]] * x[index[i]];
    return s;
}
double product(double x, double y) { return x * sin(y); }
double power(double x, int k) {
    double r = 1;
    for (int i = 0; i < k; i++) r *= x;
    return r;
}
void ramp(long n, long k, double *y) {
    for (long i = 0; i < n; i++) y[i] = (double)(k * i);
}
int count(const double *x, int n) {
    int c = 0;
    for (int i = 0; i < n; i++) c += x[i] > 0;
    return c;
}
_Bool flip(_Bool a, unsigned char b) { return a ^ (b > 100); }
"""

SIGNATURES = {
    "cubes": "f64(f64[n] x, f64 a, i64 n)",
    "halves": "f32(f32[n] x, i32 n)",
    "energy": "f64(f64[n,3] pos, f64[n] mass, i64 n)",
    "scale": "void(inout f64[n] x, i32 n, f64 dt, out f64[n] o)",
    "two": "f64(f64[n] x, i32 n, out f64[n] y, out f64 z)",
    "gather": "f64(f64[n] x, i32[m] index, i32 n, i32 m)",
    "product": None,
    "power": None,
    "ramp": "void(i64 n, i64 k, out f64[n] y)",
    "count": "i32(f64[n] x, i32 n)",
    "flip": "bool(bool a, u8 b)",
}


@cache
def library() -> Any:
    """The compiled samples."""
    return irgrad.load(SOURCE)


@cache
def sample(name: str) -> Any:
    """One kernel of the samples."""
    return library().kernel(name, SIGNATURES[name])
