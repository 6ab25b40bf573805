"""A hundred thousand time steps within memory. Page: cookbook.md#long-loops-within-memory; lines: 23."""

import jax
import jax.numpy as jnp
import numpy as np

import irgrad as ig

jax.config.update("jax_enable_x64", True)
lib = ig.load(r"""
#include <math.h>
void advance(double *x, double k, long n, long steps) {
    for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) x[i] += 1e-6 * sin(k * x[(i + 1) % n]);
}""")
advance = lib.kernel("advance", "void(inout f64[n] x, f64 k, i64 n, i64 steps)")
x, steps = np.linspace(0.1, 1, 4), 100_000
whole = advance.tape_bytes(x, 2.0, steps)


def loss(x, k):
    segment = jax.checkpoint(lambda x, _: (advance(x, k, 1000), None))
    x, _ = jax.lax.scan(segment, x, length=steps // 1000)
    return jnp.sum(x**2)


by_k = jax.jit(jax.grad(loss, argnums=1))(x, 2.0)
segment = advance.tape_bytes(x, 2.0, 1000) + steps // 1000 * x.nbytes
assert 50 * segment < whole
differences = (loss(x, 2.0 + 1e-5) - loss(x, 2.0 - 1e-5)) / 2e-5
assert np.isclose(by_k, differences, rtol=1e-6)
