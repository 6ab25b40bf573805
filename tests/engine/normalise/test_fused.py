"""Loops whose primal sweep runs the reverse one as well: which of a function, and the functions that they become."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig

SOURCE = """
#include <math.h>
double f(const double *x, long n) {
    double s = 0, a = 0.1;
    for (long i = 0; i < n; i++) s += sin(x[i]) * x[i];
    for (long i = 0; i < n; i++) a = 0.5 * a + x[i] * a * a;
    for (long i = 0; i < n; i++) {
        double v = 1;
        for (long j = 0; j < n; j++) v *= cos(x[i] - x[j]);
        s -= v;
    }
    return s + a;
}
"""
SIGNATURE = "f64(f64[n] x, i64 n)"
X = np.linspace(0.1, 0.4, 40)


def _text(**options: object) -> str:
    kernel = ig.load(SOURCE).kernel("f", SIGNATURE, **options)  # type: ignore[call-overload]
    return str(kernel.primal.pullback([0, 2]).stage.text)


def test_a_loop_becomes_two_functions() -> None:
    made = _text(checkpoint={7: "fused"})
    assert "define internal i64 @f.normal.fused.one.0(ptr " in made
    assert "define internal void @f.normal.fused.segments.0(ptr " in made
    assert ".segment." not in made, "no iteration reads what another one wrote"
    assert ".one." not in _text()


def test_with_a_bound_of_memory_as_many_as_may_be() -> None:
    made = _text(tape_memory="64kB")
    assert "@f.normal.fused.one.1(" in made
    assert "@f.normal.fused.one.2(" not in made
    assert "@f.normal.segment.2(" in made
    wanted = ig.grad(ig.load(SOURCE).kernel("f", SIGNATURE))(X)
    for options in ({"tape_memory": "2kB"}, {"checkpoint": {5: "fused", 6: 3, 7: "fused"}}):
        kernel = ig.load(SOURCE).kernel("f", SIGNATURE, **options)  # type: ignore[call-overload]
        np.testing.assert_allclose(ig.grad(kernel)(X), wanted, rtol=1e-13)


@pytest.mark.parametrize(("place", "message"), [
    (9, "the loop at 9 has no fused schedule"),
    (6, "the loop at 6 has no fused schedule"),
    (3, "there is no loop at `3`"),
])  # fmt: skip
def test_places_without_such_a_loop(place: int, message: str) -> None:
    with pytest.raises(ig.Unsupported, match=message):
        _text(checkpoint={place: "fused"})
