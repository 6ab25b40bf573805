"""The functions in which rules are written: `sin(x)`, `where(x > 0, a, b)`, ... each builds an expression."""

from __future__ import annotations

from collections.abc import Callable

from irgrad.rules.expressions.expr import Expr, Operand, call, compare, const, where

__all__ = [
    "PI",
    "atan2",
    "cbrt",
    "const",
    "copysign",
    "cos",
    "cosh",
    "eq",
    "exp",
    "exp2",
    "fabs",
    "floor",
    "fma",
    "hypot",
    "integer",
    "j0",
    "j1",
    "jn",
    "ldexp",
    "log",
    "minus_one",
    "ne",
    "plus_one",
    "pow_",
    "powi",
    "rint",
    "scalbln",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
    "y0",
    "y1",
    "yn",
]


def _unary(name: str) -> Callable[[Operand], Expr]:
    return lambda x: call(name, x)


PI = const("pi")

sqrt, cbrt, exp, exp2, log = _unary("sqrt"), _unary("cbrt"), _unary("exp"), _unary("exp2"), _unary("log")
sin, cos, tan = _unary("sin"), _unary("cos"), _unary("tan")
sinh, cosh, tanh = _unary("sinh"), _unary("cosh"), _unary("tanh")
fabs, floor, trunc, rint = _unary("fabs"), _unary("floor"), _unary("trunc"), _unary("rint")
j0, j1, y0, y1 = _unary("j0"), _unary("j1"), _unary("y0"), _unary("y1")

integer = _unary("sitofp")
"""An integer argument as a float of the row's type."""
plus_one, minus_one = _unary("iadd1"), _unary("isub1")
"""An integer argument, plus or minus one (wrapping)."""


def atan2(a: Operand, b: Operand) -> Expr:
    return call("atan2", a, b)


def hypot(a: Operand, b: Operand) -> Expr:
    return call("hypot", a, b)


def pow_(a: Operand, b: Operand) -> Expr:
    return call("pow", a, b)


def powi(a: Operand, n: Operand) -> Expr:
    """`a` to the power of the integer `n`."""
    return call("powi", a, n)


def ldexp(a: Operand, n: Operand) -> Expr:
    return call("ldexp", a, n)


def scalbln(a: Operand, n: Operand) -> Expr:
    """`ldexp` whose exponent is a `long`."""
    return call("scalbln", a, n)


def jn(n: Operand, x: Operand) -> Expr:
    return call("jn", n, x)


def yn(n: Operand, x: Operand) -> Expr:
    return call("yn", n, x)


def copysign(a: Operand, b: Operand) -> Expr:
    return call("copysign", a, b)


def fma(a: Operand, b: Operand, c: Operand) -> Expr:
    return call("fma", a, b, c)


def eq(a: Operand, b: Operand) -> Expr:
    """a == b, false for NaN."""
    return compare("oeq", a, b)


def ne(a: Operand, b: Operand) -> Expr:
    """a != b, true for NaN."""
    return compare("une", a, b)
