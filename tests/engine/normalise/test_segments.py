"""Loops as functions of segments: by their places, as they were at any level, or refused with what is there."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig

SOURCE = """
double f(const double *x, long n, long steps) {
    double s = 0.1;
    for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++)
            s = 0.5 * s + x[i] * s * s;
    return s;
}
"""
SIGNATURE = "f64(f64[n] x, i64 n, i64 steps)"
X = np.array([0.3, 0.8, 0.1])


def text(**options: object) -> str:
    kernel = ig.load(SOURCE).kernel("f", SIGNATURE, **options)  # type: ignore[call-overload]
    return str(kernel.primal.pullback([0, 3]).stage.text)


def test_a_loop_becomes_two_functions() -> None:
    made = text(checkpoint={"*": 2})
    assert "define internal i64 @f.normal.segment.0(ptr " in made
    assert "define internal void @f.normal.segments.0(ptr " in made
    assert ".segment." not in text()


def test_the_loop_at_a_line() -> None:
    """The inner one where it is named, with its file or without."""
    wanted = ig.grad(ig.load(SOURCE).kernel("f", SIGNATURE))(X, 7)
    for line in (4, 5):
        kernel = ig.load(SOURCE).kernel("f", SIGNATURE, checkpoint={line: 2})
        np.testing.assert_allclose(ig.grad(kernel)(X, 7), wanted, rtol=1e-13)
    assert text(checkpoint={4: 2}) != text(checkpoint={5: 2})


def test_no_loop_there() -> None:
    with pytest.raises(ig.Unsupported, match="there is no loop at `17`") as refused:
        text(checkpoint={17: 2})
    assert ":4`" in str(refused.value)
    assert ":5`" in str(refused.value)


CALLED = """
__attribute__((noinline)) static double walk(const double *x, long n, double s) {
    for (long i = 0; i < n; i++)
        s = 0.5 * s + x[i] * s * s;
    return s;
}
double f(const double *x, long n, long steps) {
    double s = walk(x, n, 0.1);
    for (long t = 0; t < steps; t++)
        s = walk(x, n, s);
    return s;
}
"""


def test_loops_of_functions_that_a_loop_in_segments_calls() -> None:
    """Their states would take the memory of the whole at each call; where the loop is named they have them."""
    kernel = ig.load(CALLED).kernel("f", SIGNATURE, tape_memory="1kB")
    made = str(kernel.primal.pullback([0, 3]).stage.text)
    assert "@f.normal.segments.0(" in made
    assert ".segments.1(" not in made
    assert ".segments.1(" in str(ig.load(CALLED).kernel("f", SIGNATURE, checkpoint={"*": 2, 3: 2})
                                 .primal.pullback([0, 3]).stage.text)  # fmt: skip
    wanted = ig.grad(ig.load(CALLED).kernel("f", SIGNATURE, tape_memory=None))(X, 7)
    np.testing.assert_allclose(ig.grad(kernel)(X, 7), wanted, rtol=1e-13)
