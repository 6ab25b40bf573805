"""The number types that the interpreter computes with.

    FloatDomain    Python floats; f32, half and bfloat results are rounded, as the hardware does
    ComplexDomain  complex step: perturb an input by 1e-30j, read the derivative off the imaginary part
    MpfDomain      mpmath.mpf, nothing rounded to the format of the type
    DualDomain     (value, tangent) over floats (rounded like FloatDomain) or over mpf; the tangent may be a NumPy
                   array, which gives a whole Jacobian in one run

A value without a tangent may be a plain base number. Decisions (comparisons, conversions to integers) follow the real
part. The derivative formulas below are this file's own: nothing is imported from the rules.
"""

from __future__ import annotations

import cmath
import math
import struct
from collections.abc import Callable
from fractions import Fraction
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


def _pow_float(x: float, y: float) -> float:
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
    exp10 = staticmethod(lambda x: _pow_float(10.0, x))
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
    pow = staticmethod(_pow_float)

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


class Dual:
    """value + tangent * eps. The tangent may be an array (one entry per direction)."""

    __slots__ = ("t", "v")
    __array_ufunc__ = None

    def __init__(self, v: Number, t: Any) -> None:
        self.v = v
        self.t = t

    def __repr__(self) -> str:
        return f"Dual({self.v}, {self.t})"

    def __add__(self, o: Any) -> Dual:
        return Dual(self.v + o.v, self.t + o.t) if type(o) is Dual else Dual(self.v + o, self.t)

    def __radd__(self, o: Any) -> Dual:
        return Dual(o + self.v, self.t)

    def __sub__(self, o: Any) -> Dual:
        return Dual(self.v - o.v, self.t - o.t) if type(o) is Dual else Dual(self.v - o, self.t)

    def __rsub__(self, o: Any) -> Dual:
        return Dual(o - self.v, -self.t)

    def __mul__(self, o: Any) -> Dual:
        if type(o) is Dual:
            return Dual(self.v * o.v, self.t * o.v + o.t * self.v)
        return Dual(self.v * o, self.t * o)

    def __rmul__(self, o: Any) -> Dual:
        return Dual(o * self.v, self.t * o)

    def __neg__(self) -> Dual:
        return Dual(-self.v, -self.t)


def _scaled(t: Any, partial: Any) -> Any:
    """t * partial where a zero tangent never meets an infinite partial."""
    if hasattr(t, "dtype"):
        if mpmath.isfinite(partial):
            return t * partial
        out = t * 0
        mask = t != 0
        out[mask] = t[mask] * partial
        return out
    return t * 0 if t == 0 else t * partial


# ---------------------------------------------------------------- domains


class Domain:
    """What the interpreter asks of numbers. The operators + - * and unary - work on every number."""

    rounds = False

    def lift(self, x: float) -> Number:
        """A literal or an integer as a number."""
        return float(x)

    def real(self, x: Number) -> Any:
        """The real part, a base number: what decisions follow."""
        return x

    def rounder(self, t: ty.Type) -> Callable[[Number], Number] | None:
        """How results of float type `t` are rounded; None: not at all."""
        return ROUNDING.get(str(t)) if self.rounds else None

    def div(self, x: Number, y: Number) -> Number:
        """x / y."""
        raise NotImplementedError

    def call(self, name: str, *args: Number) -> Number:
        """A smooth function of FORMULAS."""
        raise NotImplementedError

    def bessel(self, name: str, n: int, x: Number) -> Number:
        """jn or yn of integer order."""
        raise NotImplementedError

    # ---- piecewise functions, the same for every number
    def negative(self, x: Number) -> bool:
        """Sign bit of the real part."""
        return math.copysign(1.0, float(self.real(x))) < 0

    def fabs(self, x: Number) -> Number:
        """|x|, with derivative +-1 by the sign bit."""
        return -x if self.negative(x) else x

    def nan(self, x: Number) -> bool:
        """The real part is NaN."""
        r = self.real(x)
        return bool(r != r)

    def quotient(self, x: Number, y: Number, mode: str) -> int:
        """The integer n of fmod (`trunc`) or remainder (`even`), exact."""
        q = Fraction(float(self.real(x))) / Fraction(float(self.real(y)))
        return math.trunc(q) if mode == "trunc" else round(q)

    def remainder(self, x: Number, y: Number, mode: str) -> Number:
        """x - n*y, NaN where C gives NaN."""
        rx, ry = float(self.real(x)), float(self.real(y))
        if math.isnan(rx) or math.isnan(ry) or math.isinf(rx) or ry == 0:
            return self.lift(NAN)
        if math.isinf(ry):
            return x
        return self.exact_remainder(x, y, mode, self.quotient(x, y, mode))

    def exact_remainder(self, x: Number, y: Number, mode: str, n: int) -> Number:
        """x - n*y in this domain."""
        return x - y * self.lift(n)


class FloatDomain(Domain):
    """IEEE doubles; narrower types are rounded."""

    rounds = True
    math = FloatMath

    def div(self, x: float, y: float) -> float:
        return FloatMath.div(x, y)

    def call(self, name: str, *args: float) -> float:
        return FORMULAS[name][0](FloatMath, *args)

    def bessel(self, name: str, n: int, x: float) -> float:
        return FloatMath.besselj(n, x) if name == "jn" else FloatMath.bessely(n, x)

    def exact_remainder(self, x: float, y: float, mode: str, n: int) -> float:
        return math.fmod(x, y) if mode == "trunc" else math.remainder(x, y)


class MpfDomain(Domain):
    """mpmath numbers. Set mpmath.mp.dps (or use `workdps`) around the run."""

    def __init__(self) -> None:
        self.math = MpMath()

    def lift(self, x: float) -> Any:
        return mpmath.mpf(x)

    def div(self, x: Any, y: Any) -> Any:
        return MpMath.div(x, y)

    def call(self, name: str, *args: Any) -> Any:
        return FORMULAS[name][0](self.math, *args)

    def bessel(self, name: str, n: int, x: Any) -> Any:
        return self.math.besselj(n, x) if name == "jn" else self.math.bessely(n, x)


class DualDomain(Domain):
    """Directional derivatives along the run. `base` is a FloatDomain or an MpfDomain."""

    def __init__(self, base: FloatDomain | MpfDomain | None = None) -> None:
        self.base: Any = base if base is not None else FloatDomain()
        self.math = self.base.math

    def lift(self, x: float) -> Any:
        return self.base.lift(x)

    def real(self, x: Any) -> Any:
        return x.v if type(x) is Dual else x

    def rounder(self, t: ty.Type) -> Callable[[Any], Any] | None:
        inner = self.base.rounder(t)
        if inner is None:
            return None
        return lambda x: Dual(inner(x.v), x.t) if type(x) is Dual else inner(x)

    def div(self, x: Any, y: Any) -> Any:
        div = self.base.div
        if type(y) is not Dual:
            if type(x) is not Dual:
                return div(x, y)
            return Dual(div(x.v, y), _scaled(x.t, div(self.lift(1), y)))
        q = div(self.real(x), y.v)
        t = _scaled(y.t, -div(q, y.v))
        if type(x) is Dual:
            t = t + _scaled(x.t, div(self.lift(1), y.v))
        return Dual(q, t)

    def call(self, name: str, *args: Any) -> Any:
        formula = FORMULAS[name]
        plain = [a.v if type(a) is Dual else a for a in args]
        value = formula[0](self.math, *plain)
        tangent = None
        for i, a in enumerate(args):
            if type(a) is Dual:
                term = _scaled(a.t, formula[i + 1](self.math, *plain))
                tangent = term if tangent is None else tangent + term
        return value if tangent is None else Dual(value, tangent)

    def bessel(self, name: str, n: int, x: Any) -> Any:
        if type(x) is not Dual:
            return self.base.bessel(name, n, x)
        low, high = self.base.bessel(name, n - 1, x.v), self.base.bessel(name, n + 1, x.v)
        return Dual(self.base.bessel(name, n, x.v), x.t * ((low - high) / 2))

    def exact_remainder(self, x: Any, y: Any, mode: str, n: int) -> Any:
        value = self.base.exact_remainder(self.real(x), self.real(y), mode, n)
        tangent: Any = 0.0
        if type(x) is Dual:
            tangent = x.t
        if type(y) is Dual:
            tangent = tangent - y.t * n
        return Dual(value, tangent) if type(x) is Dual or type(y) is Dual else value


class ComplexDomain(Domain):
    """Complex step. Plain floats stay plain."""

    rounds = True
    _MP: dict[str, Callable[..., Any]] = {  # noqa: RUF012
        "exp2": lambda x: mpmath.mpf(2) ** x, "exp10": lambda x: mpmath.mpf(10) ** x, "expm1": mpmath.expm1,
        "log2": lambda x: mpmath.log(x) / mpmath.mp.ln2, "log1p": mpmath.log1p, "erf": mpmath.erf,
        "erfc": mpmath.erfc, "tgamma": mpmath.gamma, "lgamma": mpmath.loggamma,
        "j0": lambda x: mpmath.besselj(0, x), "j1": lambda x: mpmath.besselj(1, x),
        "y0": lambda x: mpmath.bessely(0, x), "y1": lambda x: mpmath.bessely(1, x),
    }  # fmt: skip

    def real(self, x: Any) -> float:
        return x.real

    def rounder(self, t: ty.Type) -> Callable[[Any], Any] | None:
        inner = ROUNDING.get(str(t))
        if inner is None:
            return None
        return lambda x: complex(inner(x.real), x.imag) if type(x) is complex else inner(x)

    def div(self, x: Any, y: Any) -> Any:
        if type(x) is complex or type(y) is complex:
            try:
                return x / y
            except ZeroDivisionError:
                return complex(NAN, NAN)
        return FloatMath.div(x, y)

    def _mp(self, f: Callable[..., Any], *args: Any) -> complex:
        with mpmath.workdps(60):
            try:
                return complex(f(*(mpmath.mpmathify(a) for a in args)))
            except (ValueError, ZeroDivisionError):
                return complex(NAN, NAN)

    def call(self, name: str, *args: Any) -> Any:
        if not any(type(a) is complex for a in args):
            return FORMULAS[name][0](FloatMath, *args)
        if name == "hypot":
            return self.call("sqrt", args[0] * args[0] + args[1] * args[1])
        if name == "atan2":
            return self._atan2(*args)
        if name == "pow":
            return self._pow(*args)
        x = args[0]
        if name == "cbrt":
            root = self._mp(mpmath.cbrt, -x if x.real < 0 else x)
            return -root if x.real < 0 else root
        if name == "lgamma" and x.real < 0:
            # the real function is log|gamma|: reflect, so that no branch of the logarithm is crossed
            s = self.fabs(cmath.sin(math.pi * x))
            return math.log(math.pi) - cmath.log(s) - self.call("lgamma", 1 - x)
        if name in self._MP:
            return self._mp(self._MP[name], x)
        try:
            return getattr(cmath, name)(x)
        except (ValueError, OverflowError):
            return complex(NAN, NAN)

    def _atan2(self, y: Any, x: Any) -> complex:
        if abs(y.real) < abs(x.real):
            shift = 0.0 if x.real > 0 else math.copysign(math.pi, y.real)
            return cmath.atan(y / x) + shift
        return math.copysign(math.pi / 2, y.real) - cmath.atan(x / y)

    def _pow(self, x: Any, y: Any) -> complex:
        if x.real == 0:
            return complex(_pow_float(0.0, y.real), x.imag if y.real == 1 else 0.0)
        sign = 1.0
        if x.real < 0:
            if type(y) is complex or y != math.floor(y):
                return complex(NAN, NAN)
            x, sign = -x, -1.0 if y % 2 else 1.0
        return sign * cmath.exp(y * cmath.log(x))

    def bessel(self, name: str, n: int, x: Any) -> Any:
        f = mpmath.besselj if name == "jn" else mpmath.bessely
        if type(x) is complex:
            return self._mp(lambda z: f(n, z), x)
        return FloatMath.besselj(n, x) if name == "jn" else FloatMath.bessely(n, x)
