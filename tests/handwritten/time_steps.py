"""Programs that step two buffers in time, which change places after each step."""

from __future__ import annotations

from typing import Any

import numpy as np

PROGRAM = """
void f(double *x, long *n, long *steps, double *o) {
    long m = *n, last = *steps;
    double *u = malloc(m * 8), *v = malloc(m * 8);
    for (long i = 0; i < m; i++) { u[i] = x[i]; v[i] = 1 - x[i] * x[i]; }
    %s
    for (long t = 0; t < last; t++) {
        %s
        double *old = u; u = v; v = old;
    }
    double s = 0;
    for (long i = 0; i < m; i++) s += u[i] * u[i] * (i + 1) + v[i] * v[i] * v[i] / (i + 2);
    *o = s;
    free(u); free(v);
}"""


def start(n: int) -> Any:
    """The buffer before the first step."""
    return np.random.default_rng(n).uniform(0.3, 0.9, n)
