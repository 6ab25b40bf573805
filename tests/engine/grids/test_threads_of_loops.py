"""Loops that many threads share: their places, and why the others are none."""

from __future__ import annotations

import numpy as np

import irgrad
from irgrad.engine.grids.threads_of_loops import by_iterations, shared_loops

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


def test_only_promises_need_another_form() -> None:
    assert by_iterations(PLAIN) is PLAIN
    made = by_iterations(PROMISED)
    assert made is not PROMISED and made is by_iterations(PROMISED) and made.options.iterations
    x = np.arange(5.0)
    assert made(x) == PROMISED(x)


def test_loops_by_place() -> None:
    found = shared_loops(PROMISED)
    assert [place.startswith("<string>:6:") for place in found.shared] == [True]
    assert [(row.startswith("<string>:7:"), "nothing says" in row) for row in found.others] == [(True, True)]
    assert shared_loops(PLAIN).shared == () and len(shared_loops(PLAIN).others) == 2
