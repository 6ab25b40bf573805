"""Powers, roots, exponentials and logarithms."""

from __future__ import annotations

from irgrad.rules.expressions.expr import Expr
from irgrad.rules.expressions.functions import const, eq, exp, integer, log, minus_one, pow_, powi, where
from irgrad.rules.expressions.row import Family, Kink

family = Family()
row = family.define

_LN2, _LN10, _INV_LN2, _INV_LN10 = const("ln2"), const("ln10"), const("1/ln2"), const("1/ln10")
_INF = float("inf")

row("sqrt", "f", lambda x, y: 0.5 / y, llvm="sqrt experimental.constrained.sqrt", domain=(0.05, 9),
    kinks=[Kink((0.0,), (_INF,), "the one-sided derivative")])  # fmt: skip
row("cbrt", "f", lambda x, y: 1.0 / (3.0 * (y * y)), domain=(0.05, 9),
    kinks=[Kink((0.0,), (_INF,), "the tangent is vertical")], libmvec=True)  # fmt: skip
row("rsqrt", "f", lambda x, y: -0.5 * (y / x), domain=(0.05, 9))
# What the instructions of those names give, to 11 or 14 bits; the derivative is that of the function they stand for.
for _digits in ("", "14"):
    row(f"approximate_rsqrt{_digits}", "f", lambda x, y: -0.5 * (y * y * y), libm="", llvm=f"irgrad.rsqrt{_digits}",
        domain=(0.05, 9))  # fmt: skip
    row(f"approximate_rcp{_digits}", "f", lambda x, y: -(y * y), libm="", llvm=f"irgrad.rcp{_digits}",
        domain=(0.05, 9))  # fmt: skip
row("exp", "f", lambda x, y: y, llvm="exp experimental.constrained.exp", libmvec=True)
row("exp2", "f", lambda x, y: y * _LN2, llvm="exp2 experimental.constrained.exp2", libmvec=True)
row("exp10", "f", lambda x, y: y * _LN10, libm="exp10 pow10", llvm="exp10", libmvec=True)
# y + 1 would lose every digit for x << 0
row("expm1", "f", lambda x, y: exp(x), libmvec=True)
row("log", "f", lambda x, y: 1.0 / x, llvm="log experimental.constrained.log", domain=(0.05, 9),
    kinks=[Kink((0.0,), (_INF,), "the one-sided limit")], libmvec=True)  # fmt: skip
row("log2", "f", lambda x, y: _INV_LN2 / x, llvm="log2 experimental.constrained.log2", domain=(0.05, 9), libmvec=True)
row("log10", "f", lambda x, y: _INV_LN10 / x, llvm="log10 experimental.constrained.log10", domain=(0.05, 9),
    libmvec=True)  # fmt: skip
row("log1p", "f", lambda x, y: 1.0 / (1.0 + x), domain=(-0.9, 9), libmvec=True)


def _pow(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    """b a^(b-1), which is 0 for b = 0 even at a = 0; y log a, which is 0 where y is 0 (a = 0 and b > 0)."""
    by_a = where(eq(b, 0.0), 0.0, b * pow_(a, b - 1.0))
    by_b = where(eq(y, 0.0), 0.0, y * log(a))
    return by_a, by_b


row("pow", "ff", _pow, llvm="pow experimental.constrained.pow", domain=[(0.1, 4), (-3, 3)],
    kinks=[
        Kink((0.0, 0.0), (0.0, -_INF), "x^0 is the constant 1; 0^y falls from 1 to 0"),
        Kink((0.0, 2.0), (0.0, 0.0), "0^y is 0 for every y > 0"),
        Kink((0.0, 1.0), (1.0, 0.0), "x^1 is x"),
        Kink((0.0, 0.5), (_INF, 0.0), "as sqrt"),
        Kink((-2.0, 3.0), (12.0, None), "x^y is not defined around an integer y for x < 0: NaN in y"),
    ], libmvec=True)  # fmt: skip
row("powi", "fi", lambda x, n, y: where(eq(integer(n), 0.0), 0.0, integer(n) * powi(x, minus_one(n))),
    libm="", llvm="powi experimental.constrained.powi", domain=[(-3, 3), (-4, 6)],
    exact=[("__powisf2", "f32"), ("__powidf2", "f64"), ("__powixf2", "f80")],
    kinks=[Kink((0.0, 0.0), (0.0, None), "x^0 is the constant 1"),
           Kink((0.0, 1.0), (1.0, None), "x^1 is x")])  # fmt: skip
