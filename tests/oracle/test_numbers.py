"""The oracle's own derivative formulas against mpmath's numerical differentiation."""

from __future__ import annotations

import math

import mpmath
import pytest

from oracle.formulas import FORMULAS, MpMath
from oracle.numbers import ComplexDomain, Dual, DualDomain, FloatDomain, MpfDomain

POINTS = {
    "acosh": ((1.3,), (4.0,)), "lgamma": ((0.4,), (2.7,), (-1.5,)), "tgamma": ((0.4,), (2.7,), (-1.5,)),
    "pow": ((1.3, 0.7), (0.4, -2.5), (2.0, 3.0)), "hypot": ((0.3, -0.8), (2.0, 1.0)),
    "atan2": ((0.3, -0.8), (-0.3, -0.8), (2.0, 1.0)),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "y0", "y1"), ((0.3,), (2.7,))),
    **dict.fromkeys(("asin", "acos", "atanh"), ((0.3,), (-0.6,))),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORMULAS))
def test_partials(name: str) -> None:
    """Each partial to 20 digits; each value in floats to 1e-14; complex step to 1e-13."""
    value, *partials = FORMULAS[name]
    m = MpMath()
    for point in POINTS.get(name, ((0.3,), (-0.6,), (1.7,))):
        with mpmath.workdps(40):
            at = [mpmath.mpf(x) for x in point]
            for i, partial in enumerate(partials):
                order = tuple(int(i == j) for j in range(len(at)))
                want = mpmath.diff(lambda *a: value(m, *a), tuple(at), order)
                assert abs(partial(m, *at) - want) <= 1e-15 * max(1, abs(want)), f"{name} at {point}, argument {i}"
            exact = float(value(m, *at))
        assert FloatDomain().call(name, *point) == pytest.approx(exact, rel=1e-14, abs=1e-15)
        for i in range(len(point)):
            dual = DualDomain().call(name, *(Dual(x, 1.0) if i == j else x for j, x in enumerate(point)))
            stepped = ComplexDomain().call(name, *(complex(x, 1e-30) if i == j else x for j, x in enumerate(point)))
            if type(stepped) is complex and not math.isnan(stepped.imag):
                assert stepped.imag / 1e-30 == pytest.approx(dual.t, rel=1e-12)


def test_a_zero_tangent_never_meets_an_infinite_partial() -> None:
    """d sqrt at 0 along nothing is nothing."""
    assert DualDomain().call("sqrt", Dual(0.0, 0.0)).t == 0.0
    assert DualDomain().call("sqrt", Dual(0.0, 1.0)).t == math.inf


def test_division_and_remainder() -> None:
    """IEEE division; x - n*y with n frozen."""
    d = DualDomain()
    assert FloatDomain().div(1.0, -0.0) == -math.inf
    assert math.isnan(FloatDomain().div(0.0, 0.0))
    q = d.div(Dual(3.0, 1.0), Dual(2.0, 1.0))
    assert (q.v, q.t) == (1.5, 0.5 - 0.75)
    r = d.remainder(Dual(5.5, 1.0), Dual(2.0, 1.0), "trunc")
    assert (r.v, r.t) == (1.5, 1.0 - 2.0)
    with mpmath.workdps(30):
        exact = DualDomain(MpfDomain())
        assert exact.div(Dual(exact.lift(1), exact.lift(1)), exact.lift(3)).t * 3 == 1
