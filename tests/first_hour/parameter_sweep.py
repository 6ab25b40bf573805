"""A batch of parameters, from NumPy and under vmap. Page: cookbook.md#a-batch-of-parameters; lines: 22."""

import jax
import numpy as np

import irgrad as ig

jax.config.update("jax_enable_x64", True)
lib = ig.load("""
double decay(double rate, const double *t, const double *y, long n) {
    double sum = 0, x = 1, last = 0;
    for (long i = 0; i < n; i++) {
        for (int k = 0; k < 20; k++) x -= rate * x * (t[i] - last) / 20;
        last = t[i];
        sum += (x - y[i]) * (x - y[i]);
    }
    return sum;
}""")
decay = lib.kernel("decay", "f64(f64 rate, f64[n] t, f64[n] y, i64 n)")
t = np.linspace(0.1, 2, 20)
rates, y = np.linspace(0.1, 3, 1000), np.exp(-0.7 * t)

values, slopes = ig.batch_value_and_grad(decay)(rates, t, y)
assert values.shape == slopes.shape == (1000,)
same = jax.jit(jax.vmap(jax.grad(decay), in_axes=(0, None, None)))(rates, t, y)
np.testing.assert_allclose(same, slopes, rtol=1e-12)
assert abs(rates[values.argmin()] - 0.7) < 0.02
