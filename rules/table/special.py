"""Error functions, gamma functions, Bessel functions.

digamma, the derivative of log gamma, is in no libm. It is an expression here (A&S 6.3.5, 6.3.7, 6.3.18):
reflect x < 1/2, shift by eight with the recurrence, then eight terms of the asymptotic series at z >= 8.5, whose
remainder is below 5e-16. Being arithmetic, it can be differentiated again.
"""

from __future__ import annotations

from fractions import Fraction

from irgrad.rules.expressions.expr import Expr
from irgrad.rules.expressions.functions import (
    PI,
    const,
    eq,
    exp,
    j0,
    j1,
    jn,
    log,
    minus_one,
    plus_one,
    rint,
    tan,
    where,
    y0,
    y1,
    yn,
)  # fmt: skip
from irgrad.rules.expressions.row import Family, Kink

family = Family()
row = family.define

_SHIFT = 8
# B_2k / (2k) for k = 1..8
_SERIES = [Fraction(1, 12), Fraction(-1, 120), Fraction(1, 252), Fraction(-1, 240), Fraction(1, 132),
           Fraction(-691, 32760), Fraction(1, 12), Fraction(-3617, 8160)]  # fmt: skip


def digamma(x: Expr) -> Expr:
    """psi(x), to about 1e-15 (1 + |psi|) in double; infinite or NaN at the poles 0, -1, -2, ..."""
    reflected = x < 0.5
    v = where(reflected, 1.0 - x, x)
    z = v + float(_SHIFT)
    r = 1.0 / z
    r2 = r * r
    tail = const(_SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        tail = tail * r2 + const(coefficient)
    value = log(z) - 0.5 * r - tail * r2
    # 1/v + 1/(v+7), 1/(v+1) + 1/(v+6), ... : the pairs would share divisions only by forming products that overflow
    below = 1.0 / (v + float(_SHIFT - 1))
    for k in reversed(range(1, _SHIFT - 1)):
        below = below + 1.0 / (v + float(k))
    value = value - (below + 1.0 / v)
    # psi(1 - x) - psi(x) = pi / tan(pi x), and tan(pi x) has period 1: reduce first, exactly
    cot = PI / tan(PI * (x - rint(x)))
    return where(reflected, value - cot, value)


_GAUSS = const("2/sqrt(pi)")
row("erf", "f", lambda x, y: _GAUSS * exp(-(x * x)), libmvec=True)
row("erfc", "f", lambda x, y: -(_GAUSS * exp(-(x * x))), libmvec=True)
row("tgamma", "f", lambda x, y: y * digamma(x), domain=(1.7, 9))
row("lgamma", "f", lambda x, y: digamma(x), domain=(1.7, 30), libm="lgamma gamma")
row("lgamma_r", "fp", lambda x, y: digamma(x), domain=(1.7, 30), libm="",
    exact=[("lgamma_r", "f64"), ("lgammaf_r", "f32"), ("lgammal_r", "f80"), ("__lgamma_r_finite", "f64"),
           ("__lgammaf_r_finite", "f32")])  # fmt: skip


def _first_order(other: Expr, x: Expr, y: Expr) -> Expr:
    return other - y / x


row("j0", "f", lambda x, y: -j1(x), domain=(0.2, 3))
# J1(x)/x tends to 1/2 at 0
row("j1", "f", lambda x, y: where(eq(x, 0.0), 0.5, _first_order(j0(x), x, y)), domain=(0.2, 1.5),
    kinks=[Kink((0.0,), (0.5,), "a removable singularity of the formula")])  # fmt: skip
row("jn", "if", lambda n, x, y: 0.5 * (jn(minus_one(n), x) - jn(plus_one(n), x)), domain=[(0, 5), (0.2, 1.2)])
row("y0", "f", lambda x, y: -y1(x), domain=(0.3, 2))
row("y1", "f", lambda x, y: _first_order(y0(x), x, y), domain=(0.3, 2))
row("yn", "if", lambda n, x, y: 0.5 * (yn(minus_one(n), x) - yn(plus_one(n), x)), domain=[(0, 5), (0.3, 2)])
