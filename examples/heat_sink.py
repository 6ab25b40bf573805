"""The best shape of a heat sink: `python examples/heat_sink.py [steps] [picture.png]`.

A square is heated everywhere and cooled at a piece of one edge. Where should a third of it be metal? PDE-constrained
optimisation of a density per cell: C computes the residual of the stationary heat equation, irgrad its sparse Jacobian
in the temperatures and its pullback to the densities; SciPy solves with the matrix and with its transpose (adjoint).
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.sparse.linalg import splu

import irgrad as ig

SOURCE = """
#include <math.h>
#include <stdlib.h>
static double metal(double density) { return 1e-2 + (1 - 1e-2) * density * density * density; }  /* SIMP, power 3 */
static double between(double a, double b) { return 2 * a * b / (a + b); }

/* r = div(k grad u) + 1 on n x n cells, u = 0 at the middle of the left edge, no flux through the rest */
void residual(const double *u, const double *density, double *r, long n) {
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++) {
            long i = y * n + x;
            double k = metal(density[i]), flow = 0;
            if (x) flow += between(k, metal(density[i - 1])) * (u[i - 1] - u[i]);
            if (x + 1 < n) flow += between(k, metal(density[i + 1])) * (u[i + 1] - u[i]);
            if (y) flow += between(k, metal(density[i - n])) * (u[i - n] - u[i]);
            if (y + 1 < n) flow += between(k, metal(density[i + n])) * (u[i + n] - u[i]);
            if (x == 0 && labs(2 * y + 1 - n) < n / 5) flow += 2 * k * (0 - u[i]);
            r[i] = flow + 1.0 / (n * n);
        }
}
/* each density is a mean of its neighbours: no chessboards, and a smallest thickness */
void filter(const double *raw, double *density, long n, double radius) {
    int reach = (int)ceil(radius);
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++) {
            double sum = 0, weight = 0;
            for (long b = y > reach ? y - reach : 0; b <= y + reach && b < n; b++)
                for (long a = x > reach ? x - reach : 0; a <= x + reach && a < n; a++) {
                    double w = radius - sqrt((double)((a - x) * (a - x) + (b - y) * (b - y)));
                    if (w > 0) sum += w * raw[b * n + a], weight += w;
                }
            density[y * n + x] = sum / weight;
        }
}
"""
CELLS, SHARE = 40, 0.35


def main(steps: int = 60, picture: str = "") -> tuple[float, float]:
    """Optimise, print the mean temperature, draw. Returns its first and its last value."""
    lib = ig.load(SOURCE)
    residual = lib.kernel("residual", "void(f64[n,n] u, f64[n,n] density, out f64[n,n] r, i64 n)")
    smooth = lib.kernel("filter", "void(f64[n,n] raw, out f64[n,n] density, i64 n, f64 radius)")
    jacobian = ig.jac_sparse(residual, wrt="u")
    zero = np.zeros((CELLS, CELLS))

    def temperature(raw: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The mean temperature, its gradient, the temperatures."""
        density, through_filter = ig.vjp(smooth, raw, 1.5, wrt="raw")
        solver = splu(jacobian(zero, density).tocsc())               # the residual is linear in u
        u = solver.solve(-residual(zero, density).ravel()).reshape(zero.shape)
        adjoint = solver.solve(np.full(u.size, -1 / u.size), trans="T").reshape(zero.shape)
        _, through_residual = ig.vjp(residual, u, density, wrt="density")
        return u.mean(), through_filter(through_residual(adjoint)), u

    raw, history = np.full(zero.shape, SHARE), []
    for step in range(steps):
        value, gradient, _ = temperature(raw)
        history.append(value)
        if step % 10 == 0:
            print(f"step {step:3d}   mean temperature {value:.4f}", flush=True)
        raw = update(raw, gradient)
    value, _, u = temperature(raw)
    print(f"mean temperature {history[0]:.4f} of even metal, {value:.4f} of the shape found")
    if picture:
        draw(picture, smooth(raw, 1.5), u, [*history, value])
    return float(history[0]), float(value)


def update(raw: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A step by optimality criteria: the price of metal is bisected until its share is right."""

    def at(price: float) -> np.ndarray:
        moved = raw * np.sqrt(np.maximum(-gradient, 1e-12) / price)
        return np.clip(np.clip(moved, raw - 0.1, raw + 0.1), 0.01, 1)

    low, high = 1e-9, 1e9
    while high / low > 1 + 1e-6:
        price = np.sqrt(low * high)
        low, high = (price, high) if at(price).mean() > SHARE else (low, price)
    return at(high)


def draw(path: str, density: np.ndarray, u: np.ndarray, history: list[float]) -> None:
    """The metal, the temperature, and how it sank."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.imshow(density, cmap="Greys", vmin=0, vmax=1)
    left.set(title="metal, cooled at the left", xticks=[], yticks=[])
    image = middle.imshow(u, cmap="inferno")
    middle.set(title="temperature", xticks=[], yticks=[])
    figure.colorbar(image, ax=middle)
    right.semilogy(history)
    right.set(xlabel="step", title="mean temperature")
    figure.savefig(path, dpi=90)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, sys.argv[2] if len(sys.argv) > 2 else "heat_sink.png")
