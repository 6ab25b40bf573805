"""libm for the interpreter: piecewise functions, results through pointers, complex.h."""


from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .undefined import filled, meet, undefined_in

M64 = (1 << 64) - 1
External = Callable[[Any, Any, list[Any]], Any]  # (machine, function, arguments) -> value

# ---------------------------------------------------------------- piecewise mathematics


def _pick(better: Callable[[Any, Any], bool], propagate: bool) -> Callable[..., Any]:
    def run(m: Any, x: Any, y: Any) -> Any:
        d = m.domain
        if d.nan(x):
            return x if propagate else y
        if d.nan(y):
            return y if propagate else x
        rx, ry = d.real(x), d.real(y)
        if rx == ry == 0 and propagate:
            return x if d.negative(x) == better(-1, 1) else y
        return x if better(rx, ry) or rx == ry else y

    return run


def _rounding(f: Callable[[float], float]) -> Callable[..., Any]:
    def run(m: Any, x: Any) -> Any:
        r = float(m.domain.real(x))
        if not math.isfinite(r):
            return m.domain.lift(r)
        return m.domain.lift(math.copysign(f(r), r))

    return run


def _half_away(x: float) -> float:
    return math.floor(abs(x) + 0.5) if abs(x) != 0.49999999999999994 else 0.0


def _to_int(f: Callable[[float], float]) -> Callable[..., int]:
    return lambda m, x: int(f(float(m.domain.real(x)))) & M64


def _copysign(m: Any, x: Any, y: Any) -> Any:
    d = m.domain
    return -x if d.negative(x) != d.negative(y) else x


def _powi(m: Any, x: Any, n: int) -> Any:
    n = signed32(n)
    if n == 0:
        return m.domain.lift(1.0)
    out = x
    for _ in range(abs(n) - 1):
        out = out * x
    return m.domain.div(m.domain.lift(1.0), out) if n < 0 else out


def signed32(n: int) -> int:
    """The signed reading of 32 bits."""
    n = int(n) & 0xFFFFFFFF
    return n - (1 << 32) if n >> 31 else n


def _ldexp(m: Any, x: Any, n: int) -> Any:
    n = max(min(signed32(n), 1000), -1000)
    return x * m.domain.lift(2.0) ** n if abs(n) < 1000 else x * m.domain.lift(0.0)


def _fdim(m: Any, x: Any, y: Any) -> Any:
    d = m.domain
    return m.domain.lift(0.0) if d.real(x) <= d.real(y) else x - y


def _nextafter(m: Any, x: Any, y: Any) -> Any:
    rx, ry = float(m.domain.real(x)), float(m.domain.real(y))
    return x + m.domain.lift(math.nextafter(rx, ry) - rx)


def _logb(m: Any, x: Any) -> Any:
    return m.domain.lift(math.frexp(float(m.domain.real(x)))[1] - 1)


PIECEWISE: dict[str, Callable[..., Any]] = {
    "fabs": lambda m, x: m.domain.fabs(x),
    "fmin": _pick(lambda a, b: a < b, False),
    "fmax": _pick(lambda a, b: a > b, False),
    "minimum": _pick(lambda a, b: a < b, True),
    "maximum": _pick(lambda a, b: a > b, True),
    "minimumnum": _pick(lambda a, b: a < b, False),
    "maximumnum": _pick(lambda a, b: a > b, False),
    "floor": _rounding(math.floor),
    "ceil": _rounding(math.ceil),
    "trunc": _rounding(math.trunc),
    "rint": _rounding(round),
    "nearbyint": _rounding(round),
    "roundeven": _rounding(round),
    "round": _rounding(_half_away),
    "lround": _to_int(lambda x: math.copysign(_half_away(x), x)),
    "llround": _to_int(lambda x: math.copysign(_half_away(x), x)),
    "lrint": _to_int(round),
    "llrint": _to_int(round),
    "fma": lambda m, x, y, z: x * y + z,
    "fmod": lambda m, x, y: m.domain.remainder(x, y, "trunc"),
    "remainder": lambda m, x, y: m.domain.remainder(x, y, "even"),
    "drem": lambda m, x, y: m.domain.remainder(x, y, "even"),
    "copysign": _copysign,
    "powi": _powi,
    "ldexp": _ldexp,
    "scalbn": _ldexp,
    "scalbln": _ldexp,
    "fdim": _fdim,
    "nextafter": _nextafter,
    "nexttoward": _nextafter,
    "logb": _logb,
    "ilogb": lambda m, x: (math.frexp(float(m.domain.real(x)))[1] - 1) & 0xFFFFFFFF,
    "canonicalize": lambda m, x: x,
    "arithmetic.fence": lambda m, x: x,
    "nan": lambda m, p: m.domain.lift(math.nan),
    "jn": lambda m, n, x: m.domain.bessel("jn", signed32(n), x),
    "yn": lambda m, n, x: m.domain.bessel("yn", signed32(n), x),
    "abs": lambda m, n: abs(signed32(n)) & 0xFFFFFFFF,
    "gamma": lambda m, x: m.domain.call("lgamma", x),
    "pow10": lambda m, x: m.domain.call("exp10", x),
}


# ---------------------------------------------------------------- mathematics with results through pointers


def frexp(m: Any, x: Any) -> tuple[Any, int]:
    """(mantissa, exponent)."""
    r = float(m.domain.real(x))
    if r == 0 or not math.isfinite(r):
        return x, 0
    e = math.frexp(r)[1]
    return x * m.domain.lift(2.0) ** -e, e


def modf(m: Any, x: Any) -> tuple[Any, Any]:
    """(fraction, whole)."""
    whole = PIECEWISE["trunc"](m, x)
    return x - whole, whole


def _p_frexp(m: Any, t: ty.Type, x: Any, p: int) -> Any:
    y, e = frexp(m, x)
    m.memory.store(p, ty.I32, e & 0xFFFFFFFF)
    return y


def _p_modf(m: Any, t: ty.Type, x: Any, p: int) -> Any:
    fraction, whole = modf(m, x)
    m.memory.store(p, t, whole)
    return fraction


def _round_to(m: Any, t: ty.Type, x: Any) -> Any:
    rounder = m.domain.rounder(t)
    return x if rounder is None else rounder(x)


def _p_sincos(m: Any, t: ty.Type, x: Any, s: int, c: int) -> None:
    m.memory.store(s, t, _round_to(m, t, m.domain.call("sin", x)))
    m.memory.store(c, t, _round_to(m, t, m.domain.call("cos", x)))


def _p_remquo(m: Any, t: ty.Type, x: Any, y: Any, p: int) -> Any:
    n = m.domain.quotient(x, y, "even")
    m.memory.store(p, ty.I32, (int(math.copysign(abs(n) & 7, n))) & 0xFFFFFFFF)
    return m.domain.remainder(x, y, "even")


def _p_lgamma_r(m: Any, t: ty.Type, x: Any, p: int) -> Any:
    r = float(m.domain.real(x))
    m.memory.store(p, ty.I32, (-1 if r < 0 and math.floor(r) % 2 else 1) & 0xFFFFFFFF)
    return m.domain.call("lgamma", x)


POINTERS: dict[str, Callable[..., Any]] = {
    "frexp": _p_frexp, "modf": _p_modf, "sincos": _p_sincos, "remquo": _p_remquo, "lgamma_r": _p_lgamma_r,
}  # fmt: skip


# ---------------------------------------------------------------- complex.h, in the x86-64 convention


def _c_mul(m: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    return a * c - b * d, a * d + b * c


def _c_div(m: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    n = c * c + d * d
    return m.domain.div(a * c + b * d, n), m.domain.div(b * c - a * d, n)


def _c_exp(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    e = m.domain.call("exp", x)
    return e * m.domain.call("cos", y), e * m.domain.call("sin", y)


def _c_log(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    return m.domain.call("log", m.domain.call("hypot", x, y)), m.domain.call("atan2", y, x)


def _c_sqrt(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    d = m.domain
    r = d.call("hypot", x, y)
    if d.real(x) > 0:
        u = d.call("sqrt", (r + x) * d.lift(0.5))
        return u, d.div(y, u * d.lift(2.0))
    v = d.call("sqrt", (r - x) * d.lift(0.5))
    v = -v if d.negative(y) else v
    return d.div(y, v * d.lift(2.0)), v


def _c_sin(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    c = m.domain.call
    return c("sin", x) * c("cosh", y), c("cos", x) * c("sinh", y)


def _c_cos(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    c = m.domain.call
    return c("cos", x) * c("cosh", y), -(c("sin", x) * c("sinh", y))


def _c_sinh(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    c = m.domain.call
    return c("sinh", x) * c("cos", y), c("cosh", x) * c("sin", y)


def _c_cosh(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    c = m.domain.call
    return c("cosh", x) * c("cos", y), c("sinh", x) * c("sin", y)


COMPLEX: dict[str, Callable[..., Any]] = {
    "__muldc3": _c_mul, "__divdc3": _c_div, "__mulsc3": _c_mul, "__divsc3": _c_div,
    "__mulxc3": _c_mul, "__divxc3": _c_div, "irgrad.complex_product.f64": _c_mul, "irgrad.complex_product.f32": _c_mul,
    "cexp": _c_exp, "clog": _c_log, "csqrt": _c_sqrt, "csin": _c_sin, "ccos": _c_cos,
    "csinh": _c_sinh, "ccosh": _c_cosh,
    "ctan": lambda m, x, y: _c_div(m, *_c_sin(m, x, y), *_c_cos(m, x, y)),
    "ctanh": lambda m, x, y: _c_div(m, *_c_sinh(m, x, y), *_c_cosh(m, x, y)),
    "cpow": lambda m, a, b, c, d: _c_exp(m, *_c_mul(m, *_c_log(m, a, b), c, d)),
    "cabs": lambda m, x, y: m.domain.call("hypot", x, y),
    "carg": lambda m, x, y: m.domain.call("atan2", y, x),
    "creal": lambda m, x, y: x,
    "cimag": lambda m, x, y: y,
    "conj": lambda m, x, y: (x, -y),
}  # fmt: skip


def complex_function(name: str) -> External:
    """A function of complex.h, its arguments and results flat."""
    impl = COMPLEX[name if name in COMPLEX else name[:-1]]

    def run(m: Any, f: Any, args: list[Any]) -> Any:
        flat: list[Any] = []
        for a in args:
            flat += a if isinstance(a, tuple) else (a,)
        if undefined_in(tuple(flat)) is not None:
            return filled(f.ftype.ret, meet(*flat))
        out = impl(m, *flat)
        t = f.ftype.ret
        t = t.fields[0] if isinstance(t, ty.StructType) else t.scalar
        return tuple(_round_to(m, t, x) for x in out) if isinstance(out, tuple) else _round_to(m, t, out)

    return run
