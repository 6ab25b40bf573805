"""`#pragma omp parallel for` on many threads of a device: values and derivatives, thread by thread on the host in any
order, against the CPU's own code."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import on_parts

import irgrad

pytestmark = pytest.mark.long
jax.config.update("jax_enable_x64", True)

LIBRARY = irgrad.load(r"""
#include <math.h>
#include <stdlib.h>
double waves(const double *x, double *y, double a, long n) {
    double s = 0;
    #pragma omp parallel for reduction(+:s)
    for (long i = 0; i < n; i++) { double t = sin(a * x[i]); y[i] = t; s += t * t; }
    return s;
}
void stencil(const double *u, double *v, double *w, long n, long steps) {
    for (long i = 0; i < n; i++) v[i] = u[i];
    for (long t = 0; t < steps; t++) {
        #pragma omp parallel for schedule(static)
        for (int i = 1; i < (int)n - 1; i++) w[i] = v[i] + 0.1 * v[i-1] * v[i+1];
        #pragma omp parallel
        {
            #pragma omp for simd
            for (long i = 1; i < n - 1; i++) v[i] = w[i];
        }
    }
}
void regions(const double *x, double *y, double *z, long n) {
    double *t = malloc(n * sizeof *t), w[4];
    #pragma omp parallel private(w)
    {
        #pragma omp for nowait
        for (long i = 0; i < n; i++) t[i] = x[i] * x[i];
        #pragma omp for schedule(dynamic, 2)
        for (long i = 0; i < n; i++) {
            for (int k = 0; k < 4; k++) w[k] = x[i] * k;
            z[i] = exp(-w[1] * w[2]);
        }
    }
    #pragma omp parallel for schedule(static, 3)
    for (long i = 0; i < n; i++) y[i] = t[i] * t[(i + 1) % n];
    free(t);
}
void plane(const double *A, double *B, long n, long m) {
    #pragma omp parallel for collapse(2)
    for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++) B[i*m+j] = A[i*m+j] * A[i*m+(j+1)%m];
}
""", flags=["-fopenmp"])  # fmt: skip
RNG = np.random.default_rng(4)
X, A = RNG.uniform(0.5, 1.5, 13), RNG.uniform(0.5, 1.5, (4, 5))
WAVES = LIBRARY.kernel("waves", "f64(f64[n] x, out f64[n] y, f64 a, i64 n)")
STENCIL = LIBRARY.kernel("stencil", "void(f64[n] u, out f64[n] v, out f64[n] w, i64 n, i64 steps)")
REGIONS = LIBRARY.kernel("regions", "void(f64[n] x, out f64[n] y, out f64[n] z, i64 n)")
PLANE = LIBRARY.kernel("plane", "void(f64[n,m] A, out f64[n,m] B, i64 n, i64 m)")
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "waves": (lambda x, a: WAVES(x, a)[0] + (WAVES(x, a)[1] ** 3).sum(), (X, 0.7)),
    "stencil": (lambda x: (STENCIL(x, steps=4)[0] ** 2).sum(), (X,)),
    "regions": (lambda x: (REGIONS(x)[0] * REGIONS(x)[1]).sum(), (X,)),
    "plane": (lambda a: (PLANE(a) ** 2).sum(), (A,)),
}


def _shuffled(numbers: Any) -> list[int]:
    out = list(numbers)
    random.Random(3).shuffle(out)
    return out


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("workers", [1, 8])
def test_regions_of_openmp_are_launches(name: str, workers: int) -> None:
    f, args = CASES[name]
    wrt = tuple(range(len(args)))

    def whole(*given: Any) -> Any:
        return jax.value_and_grad(f, wrt)(*given), jax.jvp(jax.grad(f, wrt), given, given)

    wanted = jax.jit(whole)(*args)
    with on_parts(5, _shuffled, workers) as made:
        got = jax.jit(whole)(*args)
    assert made
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * float(jnp.abs(b).max()))


def test_loops_in_sequence_are_launches_in_sequence() -> None:
    """Eight loops in four time steps, forward, and as many back."""
    with on_parts(5) as made:
        jax.jit(jax.grad(CASES["stencil"][0]))(X)
    assert [plan.parts.steps for plan in made] == [8, 16]
