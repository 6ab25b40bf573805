"""Functions with several results: through pointers (sincos, modf, frexp, remquo) or as a struct (LLVM's intrinsics)."""

from __future__ import annotations

from irgrad.rules.expressions.expr import ZERO, Expr
from irgrad.rules.expressions.functions import PI, eq, rint, where
from irgrad.rules.expressions.row import STRUCT, Family, Kink

family = Family()
row = family.define


def _sincos(x: Expr, y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    return y[1], -y[0]


def _sincospi(x: Expr, y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    return PI * y[1], -(PI * y[0])


def _frexp(x: Expr, y: Expr) -> Expr:
    """x = y 2^e, so dy/dx = 2^-e = y/x, exactly, as the quotient is a power of two."""
    return where(eq(x, 0.0), 1.0, y / x)


_FREXP_KINK = [Kink((0.0,), (1.0,), "zero is its own mantissa")]

row("sincos", "fpp", _sincos, outputs=(("ptr", 1), ("ptr", 2)))
row("sincos.pair", "f", _sincos, outputs=STRUCT, libm="", llvm="sincos",
    exact=[("__sincos_stret", "f64"), ("__sincosf_stret", "f32")])  # fmt: skip
row("sincospi", "fpp", _sincospi, outputs=(("ptr", 1), ("ptr", 2)))
row("sincospi.pair", "f", _sincospi, outputs=STRUCT, libm="", llvm="sincospi")
row("modf", "fp", lambda x, y: ((1.0,), (ZERO,)), outputs=("ret", ("ptr", 1)))
row("modf.pair", "f", lambda x, y: ((1.0,), (ZERO,)), outputs=STRUCT, libm="", llvm="modf")
row("frexp", "fp", _frexp, kinks=_FREXP_KINK, domain=(0.3, 9))
row("frexp.pair", "f", _frexp, outputs=(("ret", 0),), libm="", llvm="frexp", kinks=_FREXP_KINK, domain=(0.3, 9))
row("remquo", "ffp", lambda a, b, y: (1.0, -rint((a - y) / b)), domain=[(-9, 9), (0.7, 2), (0, 0)])
