"""Complex helpers and functions, on real and imaginary parts.

Each is holomorphic, so with f' = p + iq the Jacobian of (re, im) is ((p, -q), (q, p)) for each complex argument.
A complex argument takes two places of the signature. Clang passes `float complex` as one <2 x float> (see
`Match.packed`) and `long double complex` in memory; `irgrad.parts.cexpf` and the like take both parts apart.
"""

from __future__ import annotations

from collections.abc import Callable

from irgrad.rules.expressions.expr import Expr
from irgrad.rules.expressions.functions import atan2, cos, cosh, hypot, log, sin, sinh
from irgrad.rules.expressions.row import STRUCT, Family

family = Family()
row = family.define
C = tuple[Expr, Expr]


def _mul(a: C, b: C) -> C:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _inverse(z: C) -> C:
    """1/z = conj(z)/|z|^2, divided twice by |z| so that |z|^2 is never formed."""
    r = hypot(*z)
    return (z[0] / r) / r, -((z[1] / r) / r)


def _neg(z: C) -> C:
    return -z[0], -z[1]


def _jacobian(*slopes: C) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Partials of (re, im) from the complex derivative with respect to each complex argument."""
    re = tuple(part for p, q in slopes for part in (p, -q))
    im = tuple(part for p, q in slopes for part in (q, p))
    return re, im


def _cos(z: C) -> C:
    return cos(z[0]) * cosh(z[1]), -(sin(z[0]) * sinh(z[1]))


def _sin(z: C) -> C:
    return sin(z[0]) * cosh(z[1]), cos(z[0]) * sinh(z[1])


def _cosh(z: C) -> C:
    return cosh(z[0]) * cos(z[1]), sinh(z[0]) * sin(z[1])


def _sinh(z: C) -> C:
    return sinh(z[0]) * cos(z[1]), cosh(z[0]) * sin(z[1])


def _log(z: C) -> C:
    return log(hypot(*z)), atan2(z[1], z[0])


def _one_plus(z: C) -> C:
    return 1.0 + z[0], z[1]


def _square(z: C) -> C:
    return _mul(z, z)


_HELPERS = [("s", "f32"), ("d", "f64"), ("x", "f80"), ("h", "f16")]


def _names(stem: str) -> list[tuple[str, str]]:
    return [(f"__{stem}{letter}c3", dtype) for letter, dtype in _HELPERS]


row("complex.mul", "ffff", lambda a, b, c, d, y: _jacobian((c, d), (a, b)), outputs=STRUCT, libm="",
    llvm="irgrad.complex_product", exact=_names("mul"))  # fmt: skip


def _div(a: Expr, b: Expr, c: Expr, d: Expr, y: C) -> tuple[tuple[Expr, ...], ...]:
    w = _inverse((c, d))
    return _jacobian(w, _neg(_mul(y, w)))


row("complex.div", "ffff", _div, outputs=STRUCT, libm="", exact=_names("div"), domain=(0.3, 3))


def _spellings(name: str) -> list[tuple[str, str]]:
    return [(name, "f64"), (name + "f", "f32"), (f"irgrad.parts.{name}f", "f32"), (f"irgrad.parts.{name}l", "f80")]


def _holomorphic(name: str, slope: Callable[[C, C], C], low: float = 0.2, high: float = 1.5) -> None:
    """A row for the C function `name` of one complex argument with derivative slope(z, y)."""
    row(name, "ff", lambda a, b, y: _jacobian(slope((a, b), y)), outputs=STRUCT, libm="",
        exact=_spellings(name), domain=(low, high))  # fmt: skip


_holomorphic("cexp", lambda z, y: y)
_holomorphic("clog", lambda z, y: _inverse(z))
_holomorphic("csqrt", lambda z, y: _inverse((2.0 * y[0], 2.0 * y[1])))
_holomorphic("csin", lambda z, y: _cos(z))
_holomorphic("ccos", lambda z, y: _neg(_sin(z)))
_holomorphic("ctan", lambda z, y: _one_plus(_square(y)), high=0.9)
_holomorphic("csinh", lambda z, y: _cosh(z))
_holomorphic("ccosh", lambda z, y: _sinh(z))
_holomorphic("ctanh", lambda z, y: _one_plus(_neg(_square(y))), high=0.9)
# Inverse functions through the result: asin'(z) = 1/cos(asin z) takes the right branch by itself.
_holomorphic("casin", lambda z, y: _inverse(_cos(y)))
_holomorphic("cacos", lambda z, y: _neg(_inverse(_sin(y))))
_holomorphic("catan", lambda z, y: _inverse(_one_plus(_square(z))))
_holomorphic("casinh", lambda z, y: _inverse(_cosh(y)))
_holomorphic("cacosh", lambda z, y: _inverse(_sinh(y)))
_holomorphic("catanh", lambda z, y: _inverse(_one_plus(_neg(_square(z)))))


def _cpow(a: Expr, b: Expr, c: Expr, d: Expr, y: C) -> tuple[tuple[Expr, ...], ...]:
    """w z^w / z and z^w log z."""
    return _jacobian(_mul((c, d), _mul(y, _inverse((a, b)))), _mul(y, _log((a, b))))


row("cpow", "ffff", _cpow, outputs=STRUCT, libm="", exact=_spellings("cpow"), domain=(0.3, 1.5))
row("carg", "ff", lambda a, b, y: (-((b / hypot(a, b)) / hypot(a, b)), (a / hypot(a, b)) / hypot(a, b)), libm="",
    exact=[("carg", "f64"), ("cargf", "f32")], domain=(0.2, 2))  # fmt: skip
