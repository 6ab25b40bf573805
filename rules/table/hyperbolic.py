"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from irgrad.rules.expressions.functions import cosh, sinh, sqrt
from irgrad.rules.expressions.row import Family, Kink

family = Family()
row = family.define
_INF = float("inf")

row("sinh", "f", lambda x, y: cosh(x), llvm="sinh experimental.constrained.sinh", libmvec=True)
row("cosh", "f", lambda x, y: sinh(x), llvm="cosh experimental.constrained.cosh", libmvec=True)
# Cheap by reuse of y. The error is a rounding of 1, not of the derivative: the relative error grows as e^(2|x|)
row("tanh", "f", lambda x, y: 1.0 - y * y, llvm="tanh experimental.constrained.tanh", domain=(-1.2, 1.2), libmvec=True)
row("asinh", "f", lambda x, y: 1.0 / sqrt(x * x + 1.0), domain=(-9, 9), libmvec=True)
row("acosh", "f", lambda x, y: 1.0 / sqrt((x - 1.0) * (x + 1.0)), domain=(1.01, 9),
    kinks=[Kink((1.0,), (_INF,), "the tangent is vertical")], libmvec=True)  # fmt: skip
row("atanh", "f", lambda x, y: 1.0 / ((1.0 - x) * (1.0 + x)), domain=(-0.99, 0.99),
    kinks=[Kink((1.0,), (_INF,), "the limit from inside")], libmvec=True)  # fmt: skip
