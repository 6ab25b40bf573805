"""A network trained through a C solver, by JAX and optax. Page: tutorial.md#in-a-training-loop; lines: 29."""

import jax
import jax.numpy as jnp
import optax

import irgrad as ig

jax.config.update("jax_enable_x64", True)
lib = ig.load(r"""
void oscillate(const double *k, const double *x0, double *x, long n, long steps) {
    for (long i = 0; i < n; i++) {
        double q = x0[i], v = 0;
        for (long t = 0; t < steps; t++) { v -= 0.01 * k[i] * q; q += 0.01 * v; }
        x[i] = q;
    }
}""")
oscillate = lib.kernel("oscillate", "void(f64[n] k, f64[n] x0, out f64[n] x, i64 n, i64 steps)")


def loss(w, features, x0, wanted):
    stiffness = jnp.exp(features @ w)
    return jnp.mean((oscillate(stiffness, x0, 100) - wanted) ** 2)


features = jax.random.normal(jax.random.key(0), (64, 3))
x0, truth = jnp.linspace(0.5, 1.5, 64), jnp.array([0.3, -0.2, 0.5])
wanted = oscillate(jnp.exp(features @ truth), x0, 100)

w = jnp.zeros(3)
optimiser = optax.adam(0.05)
state = optimiser.init(w)
step = jax.jit(jax.value_and_grad(loss))
for _ in range(200):
    value, gradient = step(w, features, x0, wanted)
    updates, state = optimiser.update(gradient, state)
    w = optax.apply_updates(w, updates)
assert jnp.allclose(w, truth, atol=1e-3)
