"""The primal functions in mpmath, written from their definitions and independently of every rule.

`primal` gives the list of float results of a row at mpmath arguments. `slope` takes derivatives by central differences
at 60 digits with a step of 1e-20: their error is far below double precision, and unlike a complex step they also serve
functions that are not analytic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp

Number = Any
Primal = Callable[..., Any]


def _round_even(x: Number) -> Number:
    return mp.nint(x)


def _trunc(x: Number) -> Number:
    return mp.floor(x) if x >= 0 else mp.ceil(x)


def _round_away(x: Number) -> Number:
    return mp.floor(x + mp.mpf(1) / 2) if x >= 0 else mp.ceil(x - mp.mpf(1) / 2)


def _mantissa(x: Number) -> Number:
    return mp.frexp(x)[0]


def _parts(z: Number) -> list[Number]:
    z = mp.mpc(z)
    return [z.real, z.imag]


def _of_complex(function: Primal) -> Primal:
    return lambda a, b: _parts(function(mp.mpc(a, b)))


FUNCTIONS: dict[str, Primal] = {
    "fneg": lambda x: -x,
    "fadd": lambda a, b: a + b,
    "fsub": lambda a, b: a - b,
    "fmul": lambda a, b: a * b,
    "fdiv": lambda a, b: a / b,
    **{f"approximate_rsqrt{digits}": lambda x: 1 / mp.sqrt(x) for digits in ("", "14")},
    **{f"approximate_rcp{digits}": lambda x: 1 / x for digits in ("", "14")},
    "strong_mul": lambda a, b: a * b,
    "strong_mul_both": lambda a, b: a * b,
    "fmod": lambda a, b: a - b * _trunc(a / b),
    "remainder": lambda a, b: a - b * _round_even(a / b),
    "remquo": lambda a, b: a - b * _round_even(a / b),
    "fma": lambda a, b, c: a * b + c,
    "ldexp": lambda x, n: x * mp.mpf(2) ** n,
    "scalbln": lambda x, n: x * mp.mpf(2) ** n,
    "identity": lambda x: x,
    "sqrt": mp.sqrt,
    "cbrt": lambda x: mp.cbrt(x),
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "exp10": lambda x: mp.mpf(10) ** x,
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": mp.log10,
    "log1p": lambda x: mp.log(1 + x),
    "pow": lambda a, b: mp.exp(b * mp.log(a)),
    "powi": lambda x, n: x**n,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "atan2": mp.atan2,
    "sinpi": lambda x: mp.sin(mp.pi * x),
    "cospi": lambda x: mp.cos(mp.pi * x),
    "tanpi": lambda x: mp.tan(mp.pi * x),
    "asinpi": lambda x: mp.asin(x) / mp.pi,
    "acospi": lambda x: mp.acos(x) / mp.pi,
    "atanpi": lambda x: mp.atan(x) / mp.pi,
    "hypot": lambda a, b: mp.sqrt(a * a + b * b),
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "tgamma": mp.gamma,
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "lgamma_r": lambda x: mp.log(abs(mp.gamma(x))),
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "jn": mp.besselj,
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "yn": mp.bessely,
    "fabs": lambda x: abs(x),
    "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a),
    "fmax": max,
    "fmin": min,
    "maximum": max,
    "minimum": min,
    "fdim": lambda a, b: max(a - b, mp.mpf(0)),
    "floor": mp.floor,
    "ceil": mp.ceil,
    "trunc": _trunc,
    "round": _round_away,
    "roundeven": _round_even,
    "rint": _round_even,
    "nearbyint": _round_even,
    "logb": lambda x: mp.mpf(mp.frexp(x)[1] - 1),
    "significand": lambda x: 2 * _mantissa(x),
    # at infinite precision the neighbour of x is x
    "nextafter": lambda a, b: a,
    "sincos": lambda x: [mp.sin(x), mp.cos(x)],
    "sincos.pair": lambda x: [mp.sin(x), mp.cos(x)],
    "sincospi": lambda x: [mp.sin(mp.pi * x), mp.cos(mp.pi * x)],
    "sincospi.pair": lambda x: [mp.sin(mp.pi * x), mp.cos(mp.pi * x)],
    "modf": lambda x: [x - _trunc(x), _trunc(x)],
    "modf.pair": lambda x: [x - _trunc(x), _trunc(x)],
    "frexp": _mantissa,
    "frexp.pair": _mantissa,
    "complex.mul": lambda a, b, c, d: _parts(mp.mpc(a, b) * mp.mpc(c, d)),
    "complex.div": lambda a, b, c, d: _parts(mp.mpc(a, b) / mp.mpc(c, d)),
    "cpow": lambda a, b, c, d: _parts(mp.exp(mp.mpc(c, d) * mp.log(mp.mpc(a, b)))),
    "carg": lambda a, b: mp.atan2(b, a),
    **{
        "c" + name: _of_complex(getattr(mp, name))
        for name in "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
    },
}


def primal(key: str, args: Sequence[Number]) -> list[Number]:
    """Every float result of row `key` at mpmath arguments (integers stay Python integers)."""
    got = FUNCTIONS[key](*args)
    return got if isinstance(got, list) else [got]


def slope(key: str, args: Sequence[Number], i: int) -> list[Number]:
    """d results / d argument i at the current precision, which has to be 60 digits or more."""
    step = mp.mpf(10) ** -20
    ahead, behind = list(args), list(args)
    ahead[i] += step
    behind[i] -= step
    return [(up - down) / (2 * step) for up, down in zip(primal(key, ahead), primal(key, behind), strict=True)]
