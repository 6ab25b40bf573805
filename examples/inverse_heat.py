"""What a plate is made of, from thermometers: `python examples/inverse_heat.py [steps] [picture.png]`.

Four heat pulses run through a plate, from each edge in turn, and 36 thermometers write down what they see. The unknown
is the conductivity of every cell. L-BFGS gets its gradient through all time steps of a heat equation in C, which keeps
states in place of a tape (`tape_memory=`).
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize

import irgrad as ig

SOURCE = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
enum { EDGES = 4 };
static double conduct(double a, double b) { return 2 * exp(a) * exp(b) / (exp(a) + exp(b)); }  /* between two cells */

/* u_t = div(exp(p) grad u), no flux through the edges but for a pulse on one of them; every ninth point is read */
void measure(const double *p, double *seen, long n, long m, long steps) {
    double h = 1.0 / n, dt = 0.05 * h * h;
    double *u = malloc(n * n * sizeof(double)), *next = malloc(n * n * sizeof(double));
    double *right = malloc(n * n * sizeof(double)), *down = malloc(n * n * sizeof(double));
    for (long i = 0; i < n * n; i++) {
        right[i] = (i + 1) % n ? conduct(p[i], p[i + 1]) : 0;
        down[i] = i + n < n * n ? conduct(p[i], p[i + n]) : 0;
    }
    for (int edge = 0; edge < EDGES; edge++) {
        memset(u, 0, n * n * sizeof(double));
        for (long t = 0; t < steps; t++) {
            for (long r = 0; r < n; r++)
                for (long c = 0; c < n; c++) {
                    long i = r * n + c;
                    double flow = 0;
                    if (c + 1 < n) flow += right[i] * (u[i + 1] - u[i]);
                    if (r + 1 < n) flow += down[i] * (u[i + n] - u[i]);
                    if (c) flow += right[i - 1] * (u[i - 1] - u[i]);
                    if (r) flow += down[i - n] * (u[i - n] - u[i]);
                    int heated = edge == 0 ? c == 0 : edge == 1 ? c == n - 1 : edge == 2 ? r == 0 : r == n - 1;
                    next[i] = u[i] + dt / (h * h) * flow + (heated && 2 * t < steps ? 40 * dt / h : 0);
                }
            memcpy(u, next, n * n * sizeof(double));
            if ((t + 1) % (steps / m) == 0)
                for (int s = 0; s < 36; s++)
                    *seen++ = u[(2 * (s / 6) + 1) * n / 12 * n + (2 * (s % 6) + 1) * n / 12];
        }
    }
    free(u), free(next), free(right), free(down);
}
"""
SIGNATURE = "void(f64[n,n] p, out f64[4,m,36] seen, i64 n, i64 m, i64 steps)"
CELLS, READINGS, STEPS = 24, 8, 800


def plate() -> np.ndarray:
    """The logarithm of the conductivity: a bad conductor and a good one in a plate of 1, shape (CELLS, CELLS)."""
    y, x = (np.mgrid[:CELLS, :CELLS] + 0.5) / CELLS
    good, bad = (abs(x - 0.7) < 0.15) & (abs(y - 0.65) < 0.2), np.hypot(x - 0.3, y - 0.35) < 0.18
    return np.where(bad, -1.5, np.where(good, 1.2, 0))


def roughness(p: np.ndarray) -> tuple[float, np.ndarray]:
    """The smoothed total variation, and its gradient."""
    value, gradient = 0.0, np.zeros_like(p)
    for axis in (0, 1):
        step = np.diff(p, axis=axis)
        length = np.sqrt(step**2 + 1e-3)
        value += length.sum()
        slope = step / length
        gradient += np.diff(slope, axis=axis, prepend=0, append=0) * -1
    return value, gradient


def main(steps: int = 60, picture: str = "") -> tuple[float, float]:
    """Find the plate, print the progress, draw both. Returns the first and the last error of the conductivity."""
    measure = ig.load(SOURCE).kernel("measure", SIGNATURE, tape_memory="4MB")
    true, sizes = plate(), (READINGS, STEPS)
    seen = measure(true, *sizes)
    noise = 0.005 * seen.std()
    seen += noise * np.random.default_rng(0).standard_normal(seen.shape)
    losses: list[float] = []

    def misfit(flat: np.ndarray) -> tuple[float, np.ndarray]:
        p = flat.reshape(true.shape)
        got, pullback = ig.vjp(measure, p, *sizes)
        rough, slope = roughness(p)
        (gradient,) = pullback((got - seen) / noise**2)
        losses.append(float(((got - seen) ** 2).mean() ** 0.5 / noise))
        if len(losses) % 20 == 1:
            print(f"run {len(losses):3d}   misfit {losses[-1]:8.3f} of the noise", flush=True)
        return 0.5 * ((got - seen) ** 2).sum() / noise**2 + 4 * rough, (gradient + 4 * slope).ravel()

    fit = minimize(misfit, np.zeros(true.size), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    found = fit.x.reshape(true.shape)
    first, last = np.sqrt((true**2).mean()), np.sqrt(((found - true) ** 2).mean())
    print(f"misfit {losses[-1]:.3f} of the noise; error of log k: {first:.3f} at first, {last:.3f} now")
    if picture:
        draw(picture, true, found, losses)
    return float(first), float(last)


def draw(path: str, true: np.ndarray, found: np.ndarray, losses: list[float]) -> None:
    """The plate, what was found with the thermometers, and the misfit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    place = (2 * np.arange(6) + 1) * CELLS // 12
    for axes, field, title in ((left, true, "log of the conductivity"), (middle, found, "found from 36 thermometers")):
        image = axes.imshow(field, cmap="RdBu_r", vmin=-1.6, vmax=1.6)
        axes.set(title=title, xticks=[], yticks=[])
    middle.plot(*map(np.ravel, np.meshgrid(place, place)), "k.", ms=3)
    figure.colorbar(image, ax=middle)
    right.semilogy(losses)
    right.axhline(1, color="k", ls=":", lw=1)
    right.set(xlabel="run", title="misfit over noise")
    figure.savefig(path, dpi=90)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, sys.argv[2] if len(sys.argv) > 2 else "inverse_heat.png")
