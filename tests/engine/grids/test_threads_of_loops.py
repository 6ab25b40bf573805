"""Loops that many threads share: their places, and why the others are none."""

from __future__ import annotations

from typing import Any

import numpy as np

import irgrad
from irgrad.engine.grids.threads_of_loops import for_device, shared_loops
from irgrad.engine.normalise.iterations import LOOP

TEXT = """
double f(const double *x, long n) {{
    double s = 0, t = 1;
    {}for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i];
    for (long i = 0; i < n; i++) t = t * .5 + x[i];
    return s + t;
}}
"""
EACH = "\n#pragma clang loop vectorize(assume_safety)\n"
PLAIN, PROMISED = (irgrad.load(TEXT.format(word)).kernel("f", "f64(f64[n] x, i64 n)") for word in ("", EACH))


def test_the_form_of_devices() -> None:
    x = np.arange(5.0)
    for kernel, apart in ((PLAIN, False), (PROMISED, True)):
        made = for_device(kernel)
        assert made is for_device(kernel) and made.options.device and made(x) == kernel(x)
        assert (f"f.normal{LOOP}" in made.primal.stage.text) == apart


def test_loops_by_place() -> None:
    found = shared_loops(PROMISED)
    assert [place.startswith("<string>:6:") for place in found.shared] == [True]
    assert [(row.startswith("<string>:7:"), "nothing says" in row) for row in found.others] == [(True, True)]
    assert shared_loops(PLAIN).shared == () and len(shared_loops(PLAIN).others) == 2


RELAX = """
#include <math.h>
double relax(const double *p, double y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        double e = exp(-p[0] * y), t = tanh(p[1] * y);
        y += 0.1 * e * t - 0.01 * y * e;
        s += e * t * t;
    }
    return s + y;
}
"""


def test_the_tape_of_a_device_is_smaller() -> None:
    """Calls that cost less than their results' traffic are made again; the derivative is the same."""
    kernel = irgrad.load(RELAX).kernel("relax", "f64(f64[2] p, f64 y, i64 n)")
    p, y, h = np.array([0.3, 0.7]), 0.5, 1e-6
    bytes_kept, results = [], []
    for made in (kernel, for_device(kernel)):
        gradient = irgrad.grad(made, wrt=("p", "y"))
        results.append(gradient(p, y, 1000))
        bytes_kept.append(gradient.tape_bytes)
    assert bytes_kept == [24_000, 8_000]
    for (of_p, of_y), tolerance in ((results[0], 1e-12), (_differences(kernel, p, y, h), 1e-6)):
        np.testing.assert_allclose(results[1][0], of_p, rtol=tolerance)
        np.testing.assert_allclose(results[1][1], of_y, rtol=tolerance)


def _differences(kernel: Any, p: Any, y: float, h: float) -> tuple[Any, Any]:
    steps = h * np.eye(2)
    slopes = [(kernel(p + step, y, 1000) - kernel(p - step, y, 1000)) / (2 * h) for step in steps]
    return np.array(slopes), (kernel(p, y + h, 1000) - kernel(p, y - h, 1000)) / (2 * h)
