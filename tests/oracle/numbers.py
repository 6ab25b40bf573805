"""The number types that the interpreter computes with.

    FloatDomain    Python floats; f32, half and bfloat results are rounded, as the hardware does
    ComplexDomain  complex step: perturb an input by 1e-30j, read the derivative off the imaginary part
    MpfDomain      mpmath.mpf, nothing rounded to the format of the type
    DualDomain     (value, tangent) over floats (rounded like FloatDomain) or over mpf; the tangent may be a NumPy
                   array, which gives a whole Jacobian in one run

A value without a tangent may be a plain base number. Decisions (comparisons, conversions to integers) follow the real
part. The functions and their derivatives are in formulas.py.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath

from irgrad.engine.ir import types as ty

from .formulas import FORMULAS, NAN, ROUNDING, FloatMath, MpMath, Number, pow_float


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
            return complex(pow_float(0.0, y.real), x.imag if y.real == 1 else 0.0)
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
