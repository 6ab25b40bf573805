"""Loops whose result a choice threw away are jumped over in the reverse sweep; second derivatives are not."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, Made, asked, gradient, module_of

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive

NEAREST = """
void f(double *c, double *x, long *k, long *d, double *o) {
    double best = 1e300;
    for (long j = 0; j < *k; j++) {
        double s = 0;
        for (long i = 0; i < *d; i++) { double u = x[i] - c[j * *d + i]; s += u * u; }
        %s
    }
    *o = best;
}"""
MINIMUM = "if (s < best) best = s;"
# the adjoint of the row sums is w x[0], which is zero here while its derivative by x[0] is not
FLAT = """
void f(double *x, double *w, long *n, double *o) {
    double s = 0;
    for (long i = 0; i < *n; i++) s += x[i] * x[i];
    double t = w[0] > 0 ? s : 0;
    *o = t * x[0];
}"""
K, D = np.array([5]), np.array([7])


@pytest.mark.parametrize(("choice", "asked"), [(MINIMUM, True), ("best = fmin(best, s);", True),
                                               ("best += s;", False)])  # fmt: skip
def test_only_the_candidate_that_was_taken_is_run_backwards(choice: str, asked: bool) -> None:
    rng = np.random.default_rng(0)
    c, x = rng.normal(size=(5, 7)), rng.normal(size=7)
    (dc, dx, _), made = gradient(NEAREST % choice, "f", "ddccd", c, x, K, D, OUT, discard=[4])
    taken = np.square(x - c).sum(1).argmin() if asked else slice(None)
    want = np.zeros_like(c)
    want[taken] = -2 * (x - c[taken])
    np.testing.assert_allclose(dc, want, rtol=1e-13)
    np.testing.assert_allclose(dx, -want.sum(0), rtol=1e-12)
    assert bool(made.calls("irgrad.idle")) == asked


def test_memory_that_feeds_the_reverse_loop_keeps_it() -> None:
    source = NEAREST.replace("*o = best", "*o = best + x[0]").replace("s += u * u;", "s += u * u; x[i] = u;")
    rng = np.random.default_rng(0)
    c, x = rng.normal(size=(2, 3)), rng.normal(size=3)
    (dc, _, _), made = gradient(source % MINIMUM, "f", "ddccd", c, x, np.array([2]), np.array([3]), OUT)
    assert not made.calls("irgrad.idle")
    first, second = x - c[0], x - c[0] - c[1]
    want = np.zeros_like(c)
    if np.square(second).sum() < np.square(first).sum():
        want -= 2 * second
    else:
        want[0] -= 2 * first
    want[:, 0] -= 1
    np.testing.assert_allclose(dc, want, rtol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_zero_adjoint_with_a_tangent_is_not_jumped_over(mode: str) -> None:
    """The Hessian of x0 (x . x) at x0 = 0: 2 x_i in its first row and column, although the adjoint of the sum is 0."""
    first = Made(module_of(FLAT, "f"), None)  # type: ignore[arg-type]
    derived = derive(first.module, asked("f", "reverse", ["dup", "const", "const", "dup"]))
    first = Made(first.module, derived)
    assert first.calls("irgrad.idle")
    module = read(to_text(first.module), roots=[derived.name])  # x x^ w n o o^
    active = ["dup", "dup", "const", "const", "const", "const"]
    second = Made(module, derive(module, asked(derived.name, mode, active)))
    x, v = np.array([0.0, 0.5, -1.5]), np.array([0.3, -0.2, 0.7])
    hessian = np.zeros((3, 3))
    hessian[0] = 2 * x
    hessian[:, 0] = 2 * x
    gx, one, out = np.zeros(3), np.ones(1), np.zeros(1)
    w, n = np.ones(1), np.array([3])
    if mode == "forward":
        dgx = np.zeros(3)
        second(x, v, gx, dgx, w, n, out, one)
        np.testing.assert_allclose(dgx, hessian @ v, rtol=1e-13)
    else:
        dx, cotangent = np.zeros(3), v.copy()
        second(x, dx, gx, cotangent, w, n, out, one)
        np.testing.assert_allclose(dx, hessian @ v, rtol=1e-13)
    np.testing.assert_allclose(gx, [x @ x, 0, 0], rtol=1e-13)
