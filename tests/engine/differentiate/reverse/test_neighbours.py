"""Pending sums of neighbouring cells: right for every window, for one iteration and for none."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient

WINDOW = """
void f(double *x, double *w, long *n, double *o) {
    double s = 0;
    for (long i = %d; i < *n - %d; i++) s += %s;
    *o = s;
}"""


@pytest.mark.parametrize("n", [8, 9, 40, 41])
@pytest.mark.parametrize("offsets", [(-1, 1), (0, 1), (-2, -1, 0, 1, 2), (-3, 2), (-1, 0, 1, 0)])
def test_windows(n: int, offsets: tuple[int, ...]) -> None:
    terms = [f"w[{k}] * x[i + ({at})] * x[i + ({at})]" for k, at in enumerate(offsets)]
    source = WINDOW % (max(0, -min(offsets)), max(0, *offsets), " + ".join(terms) + " + x[0] * w[0]")
    x, w = np.linspace(0.2, 1.7, n), np.linspace(1, 2, 6)
    (dx, dw, _), _ = gradient(source, "f", "ddcd", x, w, np.array([n]), OUT)
    want_x, want_w = np.zeros(n), np.zeros(6)
    for i in range(max(0, -min(offsets)), n - max(0, *offsets)):
        for k, at in enumerate(offsets):
            want_x[i + at] += 2 * w[k] * x[i + at]
            want_w[k] += x[i + at] ** 2
        want_x[0] += w[0]
        want_w[0] += x[0]
    assert np.allclose(dx, want_x, rtol=1e-13)
    assert np.allclose(dw, want_w, rtol=1e-13)


def test_a_single_iteration_and_none() -> None:
    source = WINDOW % (1, 1, "w[0] * x[i - 1] * x[i + 1]")
    for n, want in ((3, [0.9, 0.0, 0.5]), (2, [0.0, 0.0])):
        x = np.array([0.5, 0.7, 0.9])[:n]
        (dx, _), _ = gradient(source, "f", "dccd", x, np.array([1.0]), np.array([n]), OUT)
        assert np.allclose(dx, want)
