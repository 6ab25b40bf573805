"""A camera calibrated from views of a chessboard: `python examples/camera_calibration.py [steps] [picture.png]`.

Focal lengths, centre, four coefficients of distortion, and the pose of the board in every view: 80 numbers for 1,152
residuals. The projection is C++ with templates and lambdas; SciPy's Levenberg-Marquardt gets its Jacobian, whose blocks
of other views are zero, from coloured forward mode.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import least_squares

import irgrad as ig

SOURCE = r"""
#include <array>
#include <cmath>
template <class T, int N> using vec = std::array<T, N>;
template <class T> vec<T, 3> cross(const vec<T, 3> &a, const vec<T, 3> &b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
/* Rodrigues' formula, with its series where the angle is small: the derivative exists at 0 */
template <class T> vec<T, 3> rotate(const T *w, const vec<T, 3> &x) {
    T square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2], s, c;
    if (square > 1e-8) { T angle = std::sqrt(square); s = std::sin(angle) / angle; c = (1 - std::cos(angle)) / square; }
    else { s = 1 - square / 6; c = T(0.5) - square / 24; }
    vec<T, 3> axis{w[0], w[1], w[2]}, once = cross(axis, x), twice = cross(axis, once), y;
    for (int k = 0; k < 3; k++) y[k] = x[k] + s * once[k] + c * twice[k];
    return y;
}
template <class T> struct Camera {
    T fx, fy, cx, cy, k1, k2, p1, p2;
    vec<T, 2> project(const vec<T, 3> &q) const {
        T x = q[0] / q[2], y = q[1] / q[2], r = x * x + y * y, radial = 1 + r * (k1 + r * k2);
        T u = x * radial + 2 * p1 * x * y + p2 * (r + 2 * x * x);
        T v = y * radial + p1 * (r + 2 * y * y) + 2 * p2 * x * y;
        return {fx * u + cx, fy * v + cy};
    }
};
extern "C" void residuals(const double *p, const double *board, const double *pixels, double *out,
                          long views, long points) {
    Camera<double> camera{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
    for (long v = 0; v < views; v++) {
        const double *pose = p + 8 + 6 * v;
        auto seen = [&](const double *b) {
            vec<double, 3> q = rotate(pose, {b[0], b[1], 0.0});
            for (int k = 0; k < 3; k++) q[k] += pose[3 + k];
            return camera.project(q);
        };
        for (long i = 0; i < points; i++) {
            auto pixel = seen(board + 2 * i);
            for (int k = 0; k < 2; k++) *out++ = pixel[k] - *pixels++;
        }
    }
}
"""
SIGNATURE = ("void(f64[8 + 6*views] p, f64[points,2] board, f64[views,points,2] pixels, out f64[views,points,2] r, "
             "i64 views, i64 points)")  # fmt: skip
CAMERA = np.array([820.0, 790.0, 330.0, 235.0, -0.28, 0.09, 0.002, -0.003])
VIEWS = 12


def main(steps: int = 40, picture: str = "") -> tuple[float, float]:
    """Calibrate, print the camera, draw residuals. Returns the first and the last error in pixels."""
    residuals = ig.load(SOURCE, language="c++").kernel("residuals", SIGNATURE)
    rng = np.random.default_rng(1)
    board = np.stack(np.meshgrid(np.arange(8) - 3.5, np.arange(6) - 2.5), -1).reshape(-1, 2) * 0.03
    turns = rng.uniform(-0.5, 0.5, (VIEWS, 3))
    places = np.column_stack([rng.uniform(-0.08, 0.08, (VIEWS, 2)), rng.uniform(0.35, 0.6, VIEWS)])
    true = np.concatenate([CAMERA, np.hstack([turns, places]).ravel()])
    ideal = residuals(true, board, np.zeros((VIEWS, len(board), 2)))
    pixels = ideal + 0.2 * rng.standard_normal(ideal.shape)

    jacobian = ig.jac_sparse(residuals, wrt="p")
    start = np.concatenate([[700, 700, 320, 240, 0, 0, 0, 0], np.tile([0, 0, 0, 0, 0, 0.5], VIEWS)])
    print(f"{true.size} columns in {jacobian.colours(start, board, pixels)} colours")
    fit = least_squares(lambda p: residuals(p, board, pixels).ravel(), start, x_scale="jac", max_nfev=steps,
                        jac=lambda p: jacobian(p, board, pixels).toarray())  # type: ignore[arg-type]  # fmt: skip
    before, after = residuals(start, board, pixels), residuals(fit.x, board, pixels)
    spread = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac))) * np.sqrt((after**2).mean())
    for name, wanted, got, error in zip("fx fy cx cy k1 k2 p1 p2".split(), CAMERA, fit.x, spread, strict=False):
        print(f"{name} {got:9.4f} +- {error:.4f}   (true {wanted:g})")
    first, last = (float(np.sqrt((r**2).mean())) for r in (before, after))
    print(f"error {first:.1f} pixels at first, {last:.3f} now (noise 0.2)")
    if picture:
        draw(picture, pixels, pixels + before, pixels + after, after)
    return first, last


def draw(path: str, pixels: np.ndarray, before: np.ndarray, after: np.ndarray, rest: np.ndarray) -> None:
    """Two views with the first guess and the fit, and all residuals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    for view, colour in ((0, "tab:blue"), (4, "tab:orange")):
        left.plot(*before[view].T, "+", color=colour, alpha=0.4, label="first guess")
        left.plot(*after[view].T, ".", color=colour, label="fitted")
        left.plot(*pixels[view].T, "o", mfc="none", mec="k", ms=7, lw=0.5, label="seen" if view else None)
    left.set(xlim=(0, 640), ylim=(480, 0), aspect="equal", title="corners of the board in two of twelve views")
    left.legend(*(entries[-3:] for entries in left.get_legend_handles_labels()), fontsize=8)
    right.plot(*rest.reshape(-1, 2).T, "k.", ms=2)
    right.set(aspect="equal", title="what is left, in pixels")
    figure.savefig(path, dpi=90)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, sys.argv[2] if len(sys.argv) > 2 else "camera_calibration.png")
