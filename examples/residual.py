"""A differential equation solved by its residual: `python examples/residual.py [steps] [picture.png]`.

The trial solution u(x; params) is a small network written in C. The residual of u'' = -(2 pi)^2 sin(2 pi x) needs its
second derivative in x, training the gradient of that in all parameters: three derivatives of one C function, nested in
JAX.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import optax

import irgrad as ig

SOURCE = """
#include <math.h>
enum { H = 12 };
double trial(const double *p, double x) {       /* 1 - H - H - 1, tanh; times x (1 - x): zero at both ends */
    const double *w1 = p, *b1 = p + H, *w2 = p + 2 * H, *b2 = w2 + H * H, *w3 = b2 + H;
    double first[H], u = 0;
    for (int i = 0; i < H; i++) first[i] = tanh(w1[i] * x + b1[i]);
    for (int i = 0; i < H; i++) {
        double s = b2[i];
        for (int j = 0; j < H; j++) s += w2[i * H + j] * first[j];
        u += w3[i] * tanh(s);
    }
    return x * (1 - x) * u;
}
"""
HIDDEN = 12
COUNT = 2 * HIDDEN + HIDDEN * HIDDEN + 2 * HIDDEN


def main(steps: int = 1500, picture: str = "") -> tuple[float, float]:
    """Train, print the progress, draw the solution. Returns the first and the last loss."""
    jax.config.update("jax_enable_x64", True)
    trial = ig.load(SOURCE).kernel("trial", f"f64(f64[{COUNT}] p, f64 x)")
    x = jnp.linspace(0, 1, 48)
    second = jax.grad(jax.grad(trial, 1), 1)

    def loss_of(params: jax.Array) -> jax.Array:
        curvature = jax.vmap(second, (None, 0))(params, x)
        return jnp.mean((curvature + (2 * jnp.pi) ** 2 * jnp.sin(2 * jnp.pi * x)) ** 2)

    params = jax.random.normal(jax.random.key(1), (COUNT,)) * 0.7
    optimiser = optax.adam(optax.cosine_decay_schedule(1e-2, steps))
    state = optimiser.init(params)

    @jax.jit
    def step(params: jax.Array, state: optax.OptState) -> tuple:
        loss, gradient = jax.value_and_grad(loss_of)(params)
        update, state = optimiser.update(gradient, state)
        return optax.apply_updates(params, update), state, loss

    losses = []
    for n in range(steps):
        params, state, loss = step(params, state)
        losses.append(float(loss))
        if n % max(1, steps // 10) == 0 or n == steps - 1:
            print(f"step {n:4d}   residual {losses[-1]:.3e}", flush=True)
    solution = jax.vmap(trial, (None, 0))(params, x)
    print(f"largest error of the solution: {jnp.abs(solution - jnp.sin(2 * jnp.pi * x)).max():.2e}")
    if picture:
        draw(picture, losses, x, solution)
    return losses[0], losses[-1]


def draw(path: str, losses: list[float], x: jax.Array, solution: jax.Array) -> None:
    """The loss, and the solution beside the exact one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.semilogy(losses)
    left.set(xlabel="step", ylabel="mean squared residual", title="three derivatives of a C function")
    right.plot(x, jnp.sin(2 * jnp.pi * x), "k--", lw=1, label="exact")
    right.plot(x, solution, label="network in C")
    right.set(xlabel="x", ylabel="u", title="solution")
    right.legend()
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1500, sys.argv[2] if len(sys.argv) > 2 else "residual.png")
