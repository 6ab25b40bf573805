"""A neural network trained through a C simulator: `python examples/heat_control.py [steps] [picture.png]`.

A rod is heated by power that varies along it. The network reads a wanted temperature profile and answers with the
power; the loss runs the heat equation in C and compares. JAX differentiates through network and simulator alike.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import optax

import irgrad as ig

SOURCE = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
/* u_t = u_xx + power, u = 0 at both ends, explicit Euler on n points of [0, 1] */
void heat(const double *power, double *u, long n, int steps) {
    double h = 1.0 / (n + 1), dt = 0.4 * h * h;
    double *now = calloc(n, sizeof(double)), *next = calloc(n, sizeof(double));
    for (int t = 0; t < steps; t++) {
        for (long i = 0; i < n; i++) {
            double left = i > 0 ? now[i - 1] : 0.0, right = i < n - 1 ? now[i + 1] : 0.0;
            next[i] = now[i] + dt * ((left - 2 * now[i] + right) / (h * h) + power[i]);
        }
        double *swap = now; now = next; next = swap;
    }
    memcpy(u, now, n * sizeof(double));
    free(now);
    free(next);
}
"""
POINTS, TIME_STEPS = 24, 400


def targets(key: jax.Array, count: int) -> jax.Array:
    """Random smooth temperature profiles, shape (count, POINTS)."""
    x = jnp.linspace(0, 1, POINTS + 2)[1:-1]
    modes = jnp.sin(jnp.pi * x[None, :] * jnp.arange(1, 4)[:, None])
    return 0.1 * jnp.abs(jax.random.normal(key, (count, 3)) / jnp.arange(1, 4) @ modes)


def network(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    """Two hidden layers; the power is a correction of ten times the wanted profile."""
    y = x * 10
    for w, b in params[:-1]:
        y = jnp.tanh(y @ w + b)
    w, b = params[-1]
    return 10 * x + y @ w + b


def main(steps: int = 300, picture: str = "") -> tuple[float, float]:
    """Train, print the progress, draw targets and results. Returns the first and the last loss."""
    jax.config.update("jax_enable_x64", True)
    heat = ig.load(SOURCE).kernel("heat", "void(f64[n] power, out f64[n] u, i64 n, i32 steps)")
    keys = jax.random.split(jax.random.key(0), 5)
    sizes = [POINTS, 32, 32, POINTS]
    params = [
        (jax.random.normal(k, (a, b)) / jnp.sqrt(a), jnp.zeros(b))
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=False)
    ]
    optimiser = optax.adam(3e-3)
    state = optimiser.init(params)

    def simulate(params: list[tuple[jax.Array, jax.Array]], wanted: jax.Array) -> jax.Array:
        return jax.vmap(lambda power: heat(power, TIME_STEPS))(network(params, wanted))

    @jax.jit
    def step(params: list[tuple[jax.Array, jax.Array]], state: optax.OptState, key: jax.Array) -> tuple:
        wanted = targets(key, 32)
        loss, gradient = jax.value_and_grad(lambda p: jnp.mean((simulate(p, wanted) - wanted) ** 2))(params)
        update, state = optimiser.update(gradient, state)
        return optax.apply_updates(params, update), state, loss

    losses = []
    for n in range(steps):
        params, state, loss = step(params, state, jax.random.fold_in(keys[4], n))
        losses.append(float(loss))
        if n % max(1, steps // 10) == 0 or n == steps - 1:
            print(f"step {n:4d}   loss {losses[-1]:.3e}", flush=True)
    if picture:
        draw(picture, losses, targets(jax.random.key(7), 3), lambda wanted: simulate(params, wanted))
    return losses[0], losses[-1]


def draw(path: str, losses: list[float], wanted: jax.Array, simulate: object) -> None:
    """The loss, and three profiles that were not trained on with what the rod reaches."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.semilogy(losses)
    left.set(xlabel="step", ylabel="loss", title="training through the simulator")
    for n, (goal, got) in enumerate(zip(wanted, simulate(wanted), strict=True)):  # type: ignore[operator]
        right.plot(goal, "k--", lw=1, label="wanted" if n == 0 else None)
        right.plot(got, label=f"reached {n + 1}")
    right.set(xlabel="point of the rod", ylabel="temperature", title="profiles not seen in training")
    right.legend()
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300, sys.argv[2] if len(sys.argv) > 2 else "heat_control.png")
