"""A soft robot plans how to crawl: `python examples/crawler.py [steps] [picture.png]`.

Ten masses, joined by springs whose lengths are controlled, lie on the ground: contacts with friction at every foot.
Trajectory optimisation by shooting: L-BFGS chooses 12 x 21 lengths over time so that the robot comes to rest a body's
length away, with little effort; the gradient goes through all contacts of a simulator in C++.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize

import irgrad as ig

SOURCE = r"""
#include <cmath>
#include <vector>
struct Vec { double x, y; };
static Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y}; }
static Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y}; }
static Vec operator*(double s, Vec a) { return {s * a.x, s * a.y}; }
static double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y; }

struct Mass { Vec at, velocity, force; };
struct Spring { int from, to; double length; };
struct Robot {
    std::vector<Mass> masses;
    std::vector<Spring> springs;
    void join(int a, int b) {
        Vec d = masses[b].at - masses[a].at;
        springs.push_back({a, b, std::sqrt(dot(d, d))});
    }
    explicit Robot(int columns) {                                   /* two rows of masses, all neighbours joined */
        for (int i = 0; i < 2 * columns; i++) masses.push_back({{0.25 * (i / 2), 0.25 * (i % 2)}, {0, 0}, {0, 0}});
        for (int c = 0; c < columns; c++) {
            int i = 2 * c;
            join(i, i + 1);
            if (c + 1 < columns) { join(i, i + 2); join(i + 1, i + 3); join(i, i + 3); join(i + 1, i + 2); }
        }
    }
    void step(const std::vector<double> &stretch, double dt) {
        for (auto &m : masses) m.force = {0, -9.81};
        for (std::size_t s = 0; s < springs.size(); s++) {
            Mass &a = masses[springs[s].from], &b = masses[springs[s].to];
            Vec d = b.at - a.at, v = b.velocity - a.velocity;
            double length = std::sqrt(dot(d, d));
            double pull = 2500 * (length - springs[s].length * (1 + stretch[s])) + 12 * dot(d, v) / length;
            Vec f = (pull / length) * d;
            a.force = a.force + f;
            b.force = b.force - f;
        }
        for (auto &m : masses) {
            if (m.at.y < 0) {                                       /* a foot in the ground: it pushes, and rubs */
                double normal = -4000 * m.at.y * (1 - 0.4 * m.velocity.y);
                if (normal > 0) {
                    m.force.y += normal;
                    m.force.x -= 0.9 * normal * std::tanh(m.velocity.x / 0.05);
                }
            }
            m.velocity = m.velocity + dt * m.force;
            m.at = m.at + dt * m.velocity;
        }
    }
};
/* control: a number for each knot and spring, which changes its length by at most a quarter; path: where masses are */
extern "C" void crawl(const double *control, double *path, long knots, long springs, long frames, long every,
                      double dt) {
    Robot robot(5);
    std::vector<double> stretch(springs);
    for (long t = 0; t < frames * every; t++) {
        double place = double(t) * (knots - 1) / (frames * every), part = place - long(place);
        const double *now = control + long(place) * springs;
        for (long s = 0; s < springs; s++) stretch[s] = 0.25 * std::tanh((1 - part) * now[s] + part * now[s + springs]);
        robot.step(stretch, dt);
        if ((t + 1) % every == 0)
            for (const auto &m : robot.masses) { *path++ = m.at.x; *path++ = m.at.y; }
    }
}
"""
SIGNATURE = ("void(f64[knots,springs] control, out f64[frames,10,2] path, i64 knots, i64 springs, i64 frames, "
             "i64 every, f64 dt)")  # fmt: skip
KNOTS, SPRINGS, FRAMES, EVERY, STEP, WAY = 12, 21, 60, 25, 1e-3, 1.0


def cost(path: np.ndarray) -> tuple[float, np.ndarray]:
    """How far from the goal, and from rest, the robot is in the last frames; and the gradient."""
    home = np.stack([np.repeat(np.arange(5), 2), np.tile([0, 1], 5)], -1) * 0.25 + [WAY, 0]
    weight = np.where(np.arange(FRAMES) < FRAMES - 5, 0.0, 1.0)[:, None, None]
    return float((weight * (path - home) ** 2).sum()), 2 * weight * (path - home)


def main(steps: int = 60, picture: str = "") -> tuple[float, float]:
    """Plan, print the progress, draw. Returns the way that the robot goes, in metres, at first and at last."""
    crawl = ig.load(SOURCE, language="c++").kernel("crawl", SIGNATURE)
    sizes = (FRAMES, EVERY, STEP)
    start = 0.3 * np.random.default_rng(0).standard_normal((KNOTS, SPRINGS))
    history: list[float] = []

    def effort(flat: np.ndarray) -> tuple[float, np.ndarray]:
        control = flat.reshape(start.shape)
        path, pullback = ig.vjp(crawl, control, *sizes)
        missed, slope = cost(path)
        history.append(missed)
        if len(history) % 10 == 1:
            print(f"run {len(history):3d}   cost {missed:8.4f}   way {way(path):.3f} m", flush=True)
        return missed + 1e-3 * (control**2).sum(), (pullback(slope)[0] + 2e-3 * control).ravel()

    fit = minimize(effort, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    found = fit.x.reshape(start.shape)
    before, after = crawl(start, *sizes), crawl(found, *sizes)
    print(f"way {way(before):.3f} m at first, {way(after):.3f} m now (wanted {WAY})")
    if picture:
        draw(picture, after, history)
    return way(before), way(after)


def way(path: np.ndarray) -> float:
    """How far the middle of the robot has come."""
    return float(path[-1, :, 0].mean() - 0.5)


def draw(path: str, frames: np.ndarray, history: list[float]) -> None:
    """The robot at six times, the feet over time, and the cost."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplot_mosaic([["robot", "robot"], ["feet", "cost"]], height_ratios=[1, 1.6], width_ratios=[2, 1])
    outline = [0, 2, 4, 6, 8, 9, 7, 5, 3, 1, 0]
    for n, frame in enumerate(frames[:: FRAMES // 6]):
        axes["robot"].plot(*frame[outline].T, "-o", ms=3, color=f"C{n}", alpha=0.8)
    axes["robot"].axhline(0, color="k", lw=1)
    axes["robot"].set(aspect="equal", ylim=(-0.05, 0.6), title="the robot, a quarter of a second apart")
    time = EVERY * STEP * np.arange(1, FRAMES + 1)
    for foot in range(0, 10, 2):
        axes["feet"].plot(time, frames[:, foot, 1], color=f"C{foot // 2}")
    axes["feet"].set(xlabel="seconds", ylabel="height, m", title="feet above the ground")
    axes["cost"].semilogy(np.minimum.accumulate(history))
    axes["cost"].set(xlabel="run", title="least cost so far")
    figure.savefig(path, dpi=90)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, sys.argv[2] if len(sys.argv) > 2 else "crawler.png")
