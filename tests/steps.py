"""A loop over time whose tape is long: what it keeps grows with its steps."""

from __future__ import annotations

STEPS = """
double f(const double *x, double *y, long n, long steps) {
    double s = 0;
    for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) y[i] += 0.001 * x[i] * (1 - y[(i + 1) % n] * y[i]);
    for (long i = 0; i < n; i++) s += y[i] * y[i];
    return s;
}
"""
