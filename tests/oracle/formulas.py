"""The functions that the interpreter knows, over floats and over mpf, and their derivatives.

The derivative formulas are this file's own: nothing is imported from the rules.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import mpmath

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import types as ty

Number = Any
INF = math.inf
NAN = math.nan
_F32 = struct.Struct("<f")
_F16 = struct.Struct("<e")


def round_f32(x: float) -> float:
    """`x` rounded to binary32."""
    try:
        return _F32.unpack(_F32.pack(x))[0]
    except OverflowError:
        return math.copysign(INF, x)


def round_f16(x: float) -> float:
    """`x` rounded to binary16."""
    try:
        return _F16.unpack(_F16.pack(x))[0]
    except OverflowError:
        return math.copysign(INF, x)


def round_bf16(x: float) -> float:
    """`x` rounded to bfloat16."""
    return ir.bits_to_float(ty.BFLOAT, ir.float_to_bits(ty.BFLOAT, x))


ROUNDING = {"float": round_f32, "half": round_f16, "bfloat": round_bf16}


def to_float(x: Number) -> float:
    """A base number as a Python float (mpf is rounded)."""
    return float(x)


# ---------------------------------------------------------------- mathematics over one base type


def _quiet(f: Callable[..., float], pole: Callable[..., float] | None = None) -> Callable[..., float]:
    """`f` of the math module with IEEE results in place of exceptions."""

    def quiet(*args: float) -> float:
        try:
            return f(*args)
        except OverflowError:
            return pole(*args) if pole is not None else INF
        except ValueError:
            return pole(*args) if pole is not None else NAN

    return quiet


def _via_mp(f: Callable[..., Any]) -> Callable[..., float]:
    def via(*args: float) -> float:
        if any(isinstance(a, float) and not math.isfinite(a) for a in args):
            return NAN
        with mpmath.workdps(25):
            try:
                out = f(*args)
            except (ValueError, ZeroDivisionError):
                return NAN
            return float(out.real) if hasattr(out, "real") else float(out)

    return via


def _log_pole(x: float, *_: float) -> float:
    return -INF if x == 0 else NAN


def pow_float(x: float, y: float) -> float:
    """IEEE pow."""
    try:
        return math.pow(x, y)
    except OverflowError:
        odd = y == math.floor(y) and y % 2 == 1
        return -INF if x < 0 and odd else INF
    except ValueError:
        if x == 0 and y < 0:
            odd = y == math.floor(y) and y % 2 == 1
            return math.copysign(INF, x) if odd else INF
        return NAN


def _atanh_pole(x: float) -> float:
    return math.copysign(INF, x) if abs(x) == 1 else NAN


class FloatMath:
    """Functions on Python floats with IEEE results."""

    pi = math.pi
    ln2 = math.log(2.0)
    ln10 = math.log(10.0)
    sin = staticmethod(_quiet(math.sin))
    cos = staticmethod(_quiet(math.cos))
    tan = staticmethod(_quiet(math.tan))
    asin = staticmethod(_quiet(math.asin))
    acos = staticmethod(_quiet(math.acos))
    atan = staticmethod(math.atan)
    atan2 = staticmethod(math.atan2)
    sinh = staticmethod(_quiet(math.sinh, lambda x: math.copysign(INF, x)))
    cosh = staticmethod(_quiet(math.cosh))
    tanh = staticmethod(math.tanh)
    asinh = staticmethod(math.asinh)
    acosh = staticmethod(_quiet(math.acosh))
    atanh = staticmethod(_quiet(math.atanh, _atanh_pole))
    exp = staticmethod(_quiet(math.exp))
    exp2 = staticmethod(_quiet(math.exp2))
    exp10 = staticmethod(lambda x: pow_float(10.0, x))
    expm1 = staticmethod(_quiet(math.expm1))
    log = staticmethod(_quiet(math.log, _log_pole))
    log2 = staticmethod(_quiet(math.log2, _log_pole))
    log10 = staticmethod(_quiet(math.log10, _log_pole))
    log1p = staticmethod(_quiet(math.log1p, lambda x: -INF if x == -1 else NAN))
    sqrt = staticmethod(_quiet(math.sqrt))
    cbrt = staticmethod(math.cbrt)
    erf = staticmethod(math.erf)
    erfc = staticmethod(math.erfc)
    gamma = staticmethod(_quiet(math.gamma))
    lgamma = staticmethod(_quiet(math.lgamma, lambda x: INF))
    digamma = staticmethod(_via_mp(mpmath.digamma))
    besselj = staticmethod(_via_mp(mpmath.besselj))
    bessely = staticmethod(_via_mp(mpmath.bessely))
    hypot = staticmethod(math.hypot)
    pow = staticmethod(pow_float)

    @staticmethod
    def div(x: float, y: float) -> float:
        """IEEE division."""
        try:
            return x / y
        except ZeroDivisionError:
            if x == 0 or x != x:
                return NAN
            return math.copysign(INF, x) * math.copysign(1.0, y)


def _guarded(f: Callable[..., Any], pole: float = NAN) -> Callable[..., Any]:
    def guarded(*args: Any) -> Any:
        try:
            out = f(*args)
        except (ValueError, ZeroDivisionError):
            return mpmath.mpf(pole)
        return out if isinstance(out, mpmath.mpf) else mpmath.mpf(NAN)

    return guarded


class MpMath:
    """Functions on mpf at the working precision."""

    @property
    def pi(self) -> Any:
        """pi at the working precision."""
        return +mpmath.mp.pi

    @property
    def ln2(self) -> Any:
        """log 2."""
        return +mpmath.mp.ln2

    @property
    def ln10(self) -> Any:
        """log 10."""
        return +mpmath.mp.ln10

    sin = staticmethod(_guarded(mpmath.sin))
    cos = staticmethod(_guarded(mpmath.cos))
    tan = staticmethod(_guarded(mpmath.tan))
    asin = staticmethod(_guarded(mpmath.asin))
    acos = staticmethod(_guarded(mpmath.acos))
    atan = staticmethod(_guarded(mpmath.atan))
    atan2 = staticmethod(_guarded(mpmath.atan2))
    sinh = staticmethod(_guarded(mpmath.sinh))
    cosh = staticmethod(_guarded(mpmath.cosh))
    tanh = staticmethod(_guarded(mpmath.tanh))
    asinh = staticmethod(_guarded(mpmath.asinh))
    acosh = staticmethod(_guarded(mpmath.acosh))
    atanh = staticmethod(_guarded(mpmath.atanh))
    exp = staticmethod(_guarded(mpmath.exp))
    exp2 = staticmethod(_guarded(lambda x: mpmath.mpf(2) ** x))
    exp10 = staticmethod(_guarded(lambda x: mpmath.mpf(10) ** x))
    expm1 = staticmethod(_guarded(mpmath.expm1))
    log = staticmethod(_guarded(mpmath.log, -INF))
    log2 = staticmethod(_guarded(lambda x: mpmath.log(x) / mpmath.mp.ln2, -INF))
    log10 = staticmethod(_guarded(mpmath.log10, -INF))
    log1p = staticmethod(_guarded(mpmath.log1p, -INF))
    sqrt = staticmethod(_guarded(mpmath.sqrt))
    cbrt = staticmethod(_guarded(lambda x: mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x)))
    erf = staticmethod(_guarded(mpmath.erf))
    erfc = staticmethod(_guarded(mpmath.erfc))
    gamma = staticmethod(_guarded(mpmath.gamma, INF))
    lgamma = staticmethod(_guarded(lambda x: mpmath.loggamma(x).real, INF))
    digamma = staticmethod(_guarded(mpmath.digamma))
    besselj = staticmethod(_guarded(lambda n, x: mpmath.besselj(n, x)))
    bessely = staticmethod(_guarded(lambda n, x: mpmath.re(mpmath.bessely(n, x))))
    hypot = staticmethod(_guarded(mpmath.hypot))
    pow = staticmethod(_guarded(lambda x, y: mpmath.power(x, y), INF))

    @staticmethod
    def div(x: Any, y: Any) -> Any:
        """Division with infinities in place of an exception."""
        if y == 0:
            return mpmath.mpf(NAN) if x == 0 else mpmath.mpf(INF) * mpmath.sign(x)
        return x / y


# value, then one partial per argument; m is the mathematics of the base type
FORMULAS: dict[str, tuple[Callable[..., Any], ...]] = {
    "sin": (lambda m, x: m.sin(x), lambda m, x: m.cos(x)),
    "cos": (lambda m, x: m.cos(x), lambda m, x: -m.sin(x)),
    "tan": (lambda m, x: m.tan(x), lambda m, x: 1 + m.tan(x) ** 2),
    "asin": (lambda m, x: m.asin(x), lambda m, x: m.div(1, m.sqrt((1 - x) * (1 + x)))),
    "acos": (lambda m, x: m.acos(x), lambda m, x: m.div(-1, m.sqrt((1 - x) * (1 + x)))),
    "atan": (lambda m, x: m.atan(x), lambda m, x: 1 / (1 + x * x)),
    "sinh": (lambda m, x: m.sinh(x), lambda m, x: m.cosh(x)),
    "cosh": (lambda m, x: m.cosh(x), lambda m, x: m.sinh(x)),
    "tanh": (lambda m, x: m.tanh(x), lambda m, x: m.div(1, m.cosh(x)) ** 2),
    "asinh": (lambda m, x: m.asinh(x), lambda m, x: 1 / m.sqrt(1 + x * x)),
    "acosh": (lambda m, x: m.acosh(x), lambda m, x: m.div(1, m.sqrt((x - 1) * (x + 1)))),
    "atanh": (lambda m, x: m.atanh(x), lambda m, x: m.div(1, (1 - x) * (1 + x))),
    "exp": (lambda m, x: m.exp(x), lambda m, x: m.exp(x)),
    "exp2": (lambda m, x: m.exp2(x), lambda m, x: m.exp2(x) * m.ln2),
    "exp10": (lambda m, x: m.exp10(x), lambda m, x: m.exp10(x) * m.ln10),
    "expm1": (lambda m, x: m.expm1(x), lambda m, x: m.exp(x)),
    "log": (lambda m, x: m.log(x), lambda m, x: m.div(1, x)),
    "log2": (lambda m, x: m.log2(x), lambda m, x: m.div(1, x * m.ln2)),
    "log10": (lambda m, x: m.log10(x), lambda m, x: m.div(1, x * m.ln10)),
    "log1p": (lambda m, x: m.log1p(x), lambda m, x: m.div(1, 1 + x)),
    "sqrt": (lambda m, x: m.sqrt(x), lambda m, x: m.div(1, 2 * m.sqrt(x))),
    "cbrt": (lambda m, x: m.cbrt(x), lambda m, x: m.div(1, 3 * m.cbrt(x) ** 2)),
    "erf": (lambda m, x: m.erf(x), lambda m, x: 2 * m.exp(-x * x) / m.sqrt(m.pi)),
    "erfc": (lambda m, x: m.erfc(x), lambda m, x: -2 * m.exp(-x * x) / m.sqrt(m.pi)),
    "tgamma": (lambda m, x: m.gamma(x), lambda m, x: m.gamma(x) * m.digamma(x)),
    "lgamma": (lambda m, x: m.lgamma(x), lambda m, x: m.digamma(x)),
    "j0": (lambda m, x: m.besselj(0, x), lambda m, x: -m.besselj(1, x)),
    "j1": (lambda m, x: m.besselj(1, x), lambda m, x: (m.besselj(0, x) - m.besselj(2, x)) / 2),
    "y0": (lambda m, x: m.bessely(0, x), lambda m, x: -m.bessely(1, x)),
    "y1": (lambda m, x: m.bessely(1, x), lambda m, x: (m.bessely(0, x) - m.bessely(2, x)) / 2),
    "pow": (
        lambda m, x, y: m.pow(x, y),
        lambda m, x, y: 0 * x if y == 0 else y * m.pow(x, y - 1),
        lambda m, x, y: m.pow(x, y) * m.log(x) if x > 0 else 0 * x if x == 0 and y > 0 else x * NAN,
    ),
    "hypot": (
        lambda m, x, y: m.hypot(x, y),
        lambda m, x, y: m.div(x, m.hypot(x, y)),
        lambda m, x, y: m.div(y, m.hypot(x, y)),
    ),
    "atan2": (
        lambda m, y, x: m.atan2(y, x),
        lambda m, y, x: m.div(x, x * x + y * y),
        lambda m, y, x: m.div(-y, x * x + y * y),
    ),
}
