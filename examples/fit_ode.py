"""Parameters of a C ODE solver fitted by L-BFGS: `python examples/fit_ode.py [steps] [picture.png]`.

Predators and prey (Lotka-Volterra), integrated by Runge-Kutta in C. The gradient of the misfit in four rates and two
initial values goes to SciPy's L-BFGS-B: no JAX is involved.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize

import irgrad as ig

SOURCE = """
static void rate(const double *p, const double *y, double *d) {
    d[0] = p[0] * y[0] - p[1] * y[0] * y[1];
    d[1] = p[2] * y[0] * y[1] - p[3] * y[1];
}
static void advance(const double *p, double *y, double h) {
    double k1[2], k2[2], k3[2], k4[2], z[2];
    rate(p, y, k1);
    for (int i = 0; i < 2; i++) z[i] = y[i] + 0.5 * h * k1[i];
    rate(p, z, k2);
    for (int i = 0; i < 2; i++) z[i] = y[i] + 0.5 * h * k2[i];
    rate(p, z, k3);
    for (int i = 0; i < 2; i++) z[i] = y[i] + h * k3[i];
    rate(p, z, k4);
    for (int i = 0; i < 2; i++) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
}
void solve(const double *p, double *path, long n, double dt) {       /* p: four rates, two initial values */
    double y[2] = {p[4], p[5]};
    for (long t = 0; t < n; t++) {
        path[2 * t] = y[0];
        path[2 * t + 1] = y[1];
        for (int s = 0; s < 20; s++) advance(p, y, dt / 20);
    }
}
double misfit(const double *p, const double *data, long n, double dt) {
    double y[2] = {p[4], p[5]}, s = 0;
    for (long t = 0; t < n; t++) {
        for (int i = 0; i < 2; i++) s += (y[i] - data[2 * t + i]) * (y[i] - data[2 * t + i]);
        for (int k = 0; k < 20; k++) advance(p, y, dt / 20);
    }
    return s / n;
}
"""
TRUE = np.array([1.1, 0.4, 0.1, 0.4, 10.0, 5.0])


def main(steps: int = 60, picture: str = "") -> tuple[float, float]:
    """Fit, print the progress, draw data and fit. Returns the first and the last misfit."""
    lib = ig.load(SOURCE)
    solve = lib.kernel("solve", "void(f64[6] p, out f64[n,2] path, i64 n, f64 dt)")
    misfit = lib.kernel("misfit", "f64(f64[6] p, f64[n,2] data, i64 n, f64 dt)")
    value_and_grad = ig.engine.value_and_grad(misfit, wrt="p")

    rng = np.random.default_rng(0)
    data = solve(TRUE, 100, 0.2) + 0.3 * rng.standard_normal((100, 2))
    start = TRUE * np.array([0.8, 1.2, 0.8, 1.25, 0.9, 1.1])
    history: list[float] = []

    def progress(p: np.ndarray) -> None:
        history.append(float(misfit(p, data, 0.2)))
        if len(history) % 5 == 1:
            print(f"iteration {len(history):3d}   misfit {history[-1]:.5f}", flush=True)

    first = float(misfit(start, data, 0.2))
    fit = minimize(lambda p: value_and_grad(p, data, 0.2), start, jac=True, method="L-BFGS-B", callback=progress,
                   options={"maxiter": steps})
    print("found", np.round(fit.x, 3), "\nwanted", TRUE, f"\nmisfit {fit.fun:.5f} (noise: {0.3**2 * 2:.5f})")
    if picture:
        draw(picture, data, solve(start, 100, 0.2), solve(fit.x, 100, 0.2))
    return first, float(fit.fun)


def draw(path: str, data: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
    """Data, the first guess and the fit over time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    time = 0.2 * np.arange(len(data))
    for i, (name, colour) in enumerate((("prey", "tab:blue"), ("predators", "tab:red"))):
        axes.plot(time, data[:, i], ".", color=colour, ms=4, label=f"{name}, measured")
        axes.plot(time, before[:, i], ":", color=colour, lw=1, label=f"{name}, first guess")
        axes.plot(time, after[:, i], color=colour, label=f"{name}, fitted")
    axes.set(xlabel="time", ylabel="population", title="six parameters fitted through a C solver")
    axes.legend(ncols=2, fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, sys.argv[2] if len(sys.argv) > 2 else "fit_ode.png")
