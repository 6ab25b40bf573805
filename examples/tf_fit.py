"""The same C solver as in torch_fit.py, fitted with TensorFlow: `python examples/tf_fit.py [steps]`.

One step of training is a graph: the path of the solver, its gradient by a tape, and the update of the rates.
"""

from __future__ import annotations

import sys

import tensorflow as tf

import irgrad as ig

SOURCE = """
void solve(const double *p, const double *start, double *path, long n, double dt) {   /* Lotka, Volterra */
    double x = start[0], y = start[1];
    for (long i = 0; i < n; i++) {
        double mx = x + dt / 2 * (p[0] * x - p[1] * x * y), my = y + dt / 2 * (p[2] * x * y - p[3] * y);
        path[2 * i] = x += dt * (p[0] * mx - p[1] * mx * my);
        path[2 * i + 1] = y += dt * (p[2] * mx * my - p[3] * my);
    }
}
"""


def main(steps: int = 400) -> tuple[float, float]:
    """Fit, and print the progress. Returns the first and the last loss."""
    solve = ig.load(SOURCE).kernel("solve", "void(f64[4] p, f64[2] start, out f64[n,2] path, i64 n, f64 dt)")
    start = tf.constant([1.0, 1.0], tf.float64)
    data = solve(tf.constant([1.1, 0.4, 0.2, 0.6], tf.float64), start, 60, 0.1)
    rates = tf.Variable(tf.math.log(tf.constant([0.8, 0.6, 0.3, 0.8], tf.float64)))
    moments = [tf.Variable(tf.zeros_like(rates)) for _ in range(2)]

    @tf.function
    def train(step: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((solve(tf.exp(rates), start, 60, 0.1) - data) ** 2)
        gradient = tape.gradient(loss, rates)
        mean = moments[0].assign(0.9 * moments[0] + 0.1 * gradient) / (1 - 0.9**step)
        square = moments[1].assign(0.999 * moments[1] + 0.001 * gradient**2) / (1 - 0.999**step)
        rates.assign_sub(0.03 * mean / (tf.sqrt(square) + 1e-8))
        return loss

    losses = []
    for step in range(steps):
        losses.append(float(train(tf.constant(step + 1.0, tf.float64))))
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step:4d}   loss {losses[-1]:.3e}   rates {tf.exp(rates).numpy().tolist()}")
    return losses[0], losses[-1]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
