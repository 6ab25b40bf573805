"""Jacobians of a C integrator over a grid of initial conditions: `python examples/flow_map.py [cells] [picture.png]`.

How strongly a flow stretches a small patch of fluid is the largest singular value of the Jacobian of its flow map. Its
logarithm over time, the finite-time Lyapunov exponent, draws the ridges that fluid does not cross; here for the double
gyre (Shadden, Lekien and Marsden 2005). `vmap(jacfwd(...))` is one native call for the whole grid.
"""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp

import irgrad as ig

SOURCE = """
#include <math.h>
static void velocity(double t, const double *p, double *v) {
    const double pi = 3.141592653589793, a = 0.1, eps = 0.25, omega = 2 * pi / 10;
    double s = eps * sin(omega * t), f = s * p[0] * p[0] + (1 - 2 * s) * p[0], df = 2 * s * p[0] + 1 - 2 * s;
    v[0] = -pi * a * sin(pi * f) * cos(pi * p[1]);
    v[1] = pi * a * cos(pi * f) * sin(pi * p[1]) * df;
}
void flow(const double *start, double *end, double time, int steps) {
    double p[2] = {start[0], start[1]}, h = time / steps;
    for (int n = 0; n < steps; n++) {
        double k1[2], k2[2], k3[2], k4[2], q[2], t = n * h;
        velocity(t, p, k1);
        for (int i = 0; i < 2; i++) q[i] = p[i] + 0.5 * h * k1[i];
        velocity(t + 0.5 * h, q, k2);
        for (int i = 0; i < 2; i++) q[i] = p[i] + 0.5 * h * k2[i];
        velocity(t + 0.5 * h, q, k3);
        for (int i = 0; i < 2; i++) q[i] = p[i] + h * k3[i];
        velocity(t + h, q, k4);
        for (int i = 0; i < 2; i++) p[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
    end[0] = p[0];
    end[1] = p[1];
}
"""


def main(cells: int = 200, picture: str = "") -> tuple[float, float]:
    """Compute the exponents on a grid of 2 cells x cells, draw them. Returns the smallest and the largest."""
    jax.config.update("jax_enable_x64", True)
    flow = ig.load(SOURCE).kernel("flow", "void(f64[2] start, out f64[2] end, f64 time, i32 steps)")
    duration, steps = 15.0, 150
    x, y = jnp.meshgrid(jnp.linspace(0, 2, 2 * cells), jnp.linspace(0, 1, cells))
    grid = jnp.stack([x.ravel(), y.ravel()], axis=1)

    @jax.jit
    def exponents(grid: jax.Array) -> jax.Array:
        jacobian = jax.vmap(jax.jacfwd(lambda start: flow(start, duration, steps)))(grid)
        return jnp.log(jnp.linalg.norm(jacobian, ord=2, axis=(1, 2))) / duration

    print(f"{grid.shape[0]} initial conditions, {steps} steps each ...", flush=True)
    begin = time.perf_counter()
    field = exponents(grid).block_until_ready()
    print(f"done after {time.perf_counter() - begin:.1f} s, exponents from {field.min():.3f} to {field.max():.3f}")
    if picture:
        draw(picture, field.reshape(cells, 2 * cells))
    return float(field.min()), float(field.max())


def draw(path: str, field: jax.Array) -> None:
    """The field of exponents as an image."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    image = axes.imshow(field, origin="lower", extent=(0, 2, 0, 1), cmap="magma", vmin=0)
    figure.colorbar(image, label="finite-time Lyapunov exponent")
    axes.set(xlabel="x", ylabel="y", title="double gyre, flow map over 15 time units")
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2] if len(sys.argv) > 2 else "flow_map.png")
