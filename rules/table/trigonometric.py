"""Circular functions and their inverses."""

from __future__ import annotations

from irgrad.rules.expressions.expr import Expr
from irgrad.rules.expressions.functions import PI, cos, eq, fabs, hypot, rint, sin, sqrt, trunc, where
from irgrad.rules.expressions.row import Family, Kink

family = Family()
row = family.define
_NAN = float("nan")
_INF = float("inf")

row("sin", "f", lambda x, y: cos(x), llvm="sin experimental.constrained.sin", domain=(-9, 9), libmvec=True)
row("cos", "f", lambda x, y: -sin(x), llvm="cos experimental.constrained.cos", domain=(-9, 9), libmvec=True)
row("tan", "f", lambda x, y: 1.0 + y * y, llvm="tan experimental.constrained.tan", domain=(-9, 9), libmvec=True)
# (1-x)(1+x) keeps the digits that 1 - x^2 loses near the ends
row("asin", "f", lambda x, y: 1.0 / sqrt((1.0 - x) * (1.0 + x)), llvm="asin experimental.constrained.asin",
    domain=(-0.99, 0.99), kinks=[Kink((1.0,), (_INF,), "the tangent is vertical")], libmvec=True)  # fmt: skip
row("acos", "f", lambda x, y: -1.0 / sqrt((1.0 - x) * (1.0 + x)), llvm="acos experimental.constrained.acos",
    domain=(-0.99, 0.99), kinks=[Kink((1.0,), (-_INF,), "the tangent is vertical")], libmvec=True)  # fmt: skip
row("atan", "f", lambda x, y: 1.0 / (1.0 + x * x), llvm="atan experimental.constrained.atan", domain=(-9, 9),
    libmvec=True)  # fmt: skip


def _atan2(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(b, -a) / r^2, divided twice by r: r^2 overflows and underflows where r does not."""
    r = hypot(a, b)
    return (b / r) / r, -((a / r) / r)


row("atan2", "ff", _atan2, llvm="atan2 experimental.constrained.atan2",
    kinks=[Kink((0.0, 0.0), (_NAN, _NAN), "a singularity: no direction has a limit")], libmvec=True)  # fmt: skip


def _half_turns(x: Expr) -> tuple[Expr, Expr]:
    """(x - n, (-1)^n) with n next to x: the difference is exact, so zeros keep their relative accuracy."""
    n = rint(x)
    return x - n, 1.0 - 2.0 * fabs(n - 2.0 * trunc(0.5 * n))


def _sin_pi(x: Expr) -> Expr:
    r, sign = _half_turns(x)
    return sign * sin(PI * r)


def _cos_pi(x: Expr) -> Expr:
    """cos(pi r) = sin(pi (1/2 - |r|)), whose argument is exact next to the zeros."""
    r, sign = _half_turns(x)
    return sign * sin(PI * (0.5 - fabs(r)))


row("sinpi", "f", lambda x, y: PI * _cos_pi(x))
row("cospi", "f", lambda x, y: -(PI * _sin_pi(x)))
row("tanpi", "f", lambda x, y: PI * (1.0 + y * y), domain=(-0.4, 0.4))
row("asinpi", "f", lambda x, y: (1.0 / PI) / sqrt((1.0 - x) * (1.0 + x)), domain=(-0.99, 0.99))
row("acospi", "f", lambda x, y: (-1.0 / PI) / sqrt((1.0 - x) * (1.0 + x)), domain=(-0.99, 0.99))
row("atanpi", "f", lambda x, y: (1.0 / PI) / (1.0 + x * x), domain=(-9, 9))


def _hypot(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(a, b)/y; at the origin 0, the smallest of the subgradients (which fill the unit disc)."""
    origin = eq(y, 0.0)
    return where(origin, 0.0, a / y), where(origin, 0.0, b / y)


row("hypot", "ff", _hypot, exact=[("cabs", "f64"), ("__cabs_finite", "f64")],
    kinks=[Kink((0.0, 0.0), (0.0, 0.0), "the smallest subgradient of a convex function")], libmvec=True)  # fmt: skip
