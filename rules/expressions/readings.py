"""Readings of an expression that compute: floats of one type, complex numbers, mpmath.

The float reading calls the C library, so it rounds as compiled code does; the mpmath reading is the oracle.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from irgrad.rules.expressions.expr import Expr, emit

__all__ = ["ComplexReading", "FloatReading", "MpReading", "evaluate"]

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "iadd1": lambda n: n + 1,
    "isub1": lambda n: n - 1,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
_SECOND_IS_INT = frozenset(("ldexp", "scalbln"))
_FIRST_IS_INT = frozenset(("jn", "yn"))


def _holds(pred: str, a: Any, b: Any) -> bool:
    """LLVM's float predicates: `o..` is false and `u..` true when an operand is NaN."""
    unordered = bool(a != a) or bool(b != b)
    if pred in ("uno", "ord"):
        return unordered == (pred == "uno")
    return pred[0] == "u" if unordered else bool(_COMPARE[pred[1:]](a, b))


def evaluate(
    expr: Expr,
    args: Sequence[Any],
    results: Sequence[Any] = (),
    reading: Literal["f32", "f64", "complex", "mp"] = "f64",
) -> Any:
    """The value of `expr` at `args` (and at the primal `results`, which the caller computes).

    "f32"/"f64" compute in that type, with the C library and without raising; "complex" is for analytic expressions (the
    complex step); "mp" uses mpmath at its current precision.
    """
    context: Any = {"complex": ComplexReading, "mp": MpReading}.get(reading)
    return emit(expr, context() if context else FloatReading(reading), args, results)


@cache
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


@cache
def _c_function(name: str, dtype: str) -> Callable[..., float]:
    """The function of the C library for float ("f32") or double. Raises AttributeError when it has none."""
    function = getattr(_libm(), name + ("f" if dtype == "f32" else ""))
    real = ctypes.c_float if dtype == "f32" else ctypes.c_double
    function.restype = real
    count = 2 if name in ("pow", "hypot", "atan2", "copysign", "fmod", "fmin", "fmax") else 3 if name == "fma" else 1
    function.argtypes = [real] * count
    if name in _SECOND_IS_INT:
        function.argtypes = [real, ctypes.c_long if name == "scalbln" else ctypes.c_int]
    elif name in _FIRST_IS_INT:
        function.argtypes = [ctypes.c_int, real]
    return function  # type: ignore[no-any-return]


class FloatReading:
    """Arithmetic in float ("f32") or double ("f64"), IEEE throughout: nothing raises."""

    __slots__ = ("dtype", "real")

    def __init__(self, dtype: str) -> None:
        import numpy as np

        self.dtype = dtype
        self.real: Any = np.float32 if dtype == "f32" else np.float64

    def const(self, value: float) -> Any:
        return self.real(value)

    def op(self, name: str, *args: Any) -> Any:
        import numpy as np

        with np.errstate(all="ignore"):
            if name in _ARITHMETIC:
                return _ARITHMETIC[name](*args)
            if name == "sitofp":
                return self.real(args[0])
            if name == "powi":
                return self.real(self._powi(args[0], args[1]))
            if name in ("maximum", "minimum"):  # the C library's fmaximum is too new to rely on
                return self.real(getattr(np, name)(*args))
        return self.real(_c_function(name, self.dtype)(*args))

    def _powi(self, x: Any, n: int) -> Any:
        """As the compiler's run-time library: repeated squaring, inverted at the end."""
        result, factor, k = self.real(1.0), x, abs(n)
        while k:
            result = result * factor if k & 1 else result
            factor = factor * factor
            k >>= 1
        return self.real(1.0) / result if n < 0 else result

    def cmp(self, pred: str, a: Any, b: Any) -> bool:
        return _holds(pred, a, b)

    def where(self, condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b


class ComplexReading:
    """Complex numbers; comparisons look at real parts. For expressions that are analytic near the point."""

    __slots__ = ()

    def const(self, value: float) -> complex:
        return complex(value)

    def op(self, name: str, *args: Any) -> Any:
        import cmath

        if name in _ARITHMETIC:
            return _ARITHMETIC[name](*args)
        if name == "sitofp":
            return complex(args[0])
        if name in ("pow", "powi"):
            return args[0] ** args[1]
        if name == "hypot":
            return cmath.sqrt(args[0] * args[0] + args[1] * args[1])
        if name == "fabs":
            return args[0] if args[0].real >= 0 else -args[0]
        if name in ("ldexp", "scalbln"):
            return args[0] * 2.0 ** args[1]
        if name == "rint":
            return complex(round(args[0].real))
        return getattr(cmath, name)(*args)

    def cmp(self, pred: str, a: Any, b: Any) -> bool:
        return _holds(pred, complex(a).real, complex(b).real)

    def where(self, condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b


class MpReading:
    """mpmath at its current precision; constants are the real numbers that the doubles stand for."""

    __slots__ = ()

    def const(self, value: float) -> Any:
        import mpmath

        return mpmath.mpf(value)

    def exact_const(self, exact: Fraction | str) -> Any:
        """The real number behind a rounded constant."""
        import mpmath as mp

        if isinstance(exact, Fraction):
            return mp.mpf(exact.numerator) / exact.denominator
        named = {
            "pi": +mp.pi,
            "ln2": mp.log(2),
            "ln10": mp.log(10),
            "1/ln2": 1 / mp.log(2),
            "1/ln10": 1 / mp.log(10),
            "2/sqrt(pi)": 2 / mp.sqrt(mp.pi),
        }
        return named[exact]

    def op(self, name: str, *args: Any) -> Any:
        import mpmath as mp

        if name == "div" and args[1] == 0:
            return mp.nan if args[0] == 0 else args[0] * mp.inf
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](*args)
        if name in _MP:
            return _MP[name](mp, *args)
        return getattr(mp, name)(*args)

    def cmp(self, pred: str, a: Any, b: Any) -> bool:
        return _holds(pred, a, b)

    def where(self, condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b


_MP: dict[str, Callable[..., Any]] = {
    "sitofp": lambda mp, n: mp.mpf(n),
    "fabs": lambda mp, x: abs(x),
    "copysign": lambda mp, a, b: abs(a) if b >= 0 else -abs(a),
    "pow": lambda mp, a, b: a**b,
    "powi": lambda mp, a, n: a**n,
    "exp2": lambda mp, x: mp.mpf(2) ** x,
    "exp10": lambda mp, x: mp.mpf(10) ** x,
    "log2": lambda mp, x: mp.log(x, 2),
    "tgamma": lambda mp, x: mp.gamma(x),
    "lgamma": lambda mp, x: mp.log(abs(mp.gamma(x))),
    "rint": lambda mp, x: mp.nint(x),
    "trunc": lambda mp, x: mp.floor(x) if x >= 0 else mp.ceil(x),
    "ldexp": lambda mp, x, n: mp.ldexp(x, int(n)),
    "scalbln": lambda mp, x, n: mp.ldexp(x, int(n)),
    "fma": lambda mp, a, b, c: a * b + c,
    **dict.fromkeys(("maximum", "fmax"), lambda mp, a, b: max(a, b)),
    **dict.fromkeys(("minimum", "fmin"), lambda mp, a, b: min(a, b)),
    "j0": lambda mp, x: mp.besselj(0, x),
    "j1": lambda mp, x: mp.besselj(1, x),
    "jn": lambda mp, n, x: mp.besselj(n, x),
    "y0": lambda mp, x: mp.bessely(0, x),
    "y1": lambda mp, x: mp.bessely(1, x),
    "yn": lambda mp, n, x: mp.bessely(n, x),
}
"""Functions that mpmath spells or defines otherwise."""
