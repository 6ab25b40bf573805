"""libm, libc and LLVM intrinsics for the interpreter: `external(name)` is a callable (machine, function, args) -> value."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .memory import Fault
from .numbers import FORMULAS

M64 = (1 << 64) - 1
External = Callable[[Any, Any, list[Any]], Any]

SMOOTH = set(FORMULAS)
SILENT = set(
    "printf puts putchar fprintf fflush fputs fputc fwrite perror setvbuf srand "
    "__assert_rtn llvm.assume llvm.donothing llvm.prefetch llvm.var.annotation llvm.sideeffect "
    "llvm.experimental.noalias.scope.decl llvm.dbg.value llvm.dbg.declare llvm.dbg.label llvm.stackrestore "
    "llvm.lifetime.start llvm.lifetime.end llvm.invariant.end llvm.pseudoprobe".split()
)
STOPS = set("abort exit _exit llvm.trap llvm.ubsantrap llvm.debugtrap __assert_fail __assert quick_exit".split())

_SUFFIX = re.compile(r"(\.(v\d+)?(p\d+|i\d+|f\d+|bf16|f80|f128|isVoid|sl_.*))+$")


def base_name(name: str) -> tuple[str, str]:
    """(base, kind): `llvm.sin.v4f64` -> ("llvm.sin", ""), `sinf` -> ("sin", "f")."""
    if name.startswith("llvm."):
        return _SUFFIX.sub("", name), ""
    name = name.removeprefix("__").removesuffix("_finite") if name.endswith("_finite") else name
    known = SMOOTH | PIECEWISE.keys() | POINTERS.keys()
    if name in known or name in LIBC:
        return name, ""
    if name[-1:] in ("f", "l") and name[:-1] in known:
        return name[:-1], name[-1]
    return name, ""


def external(name: str) -> External | None:
    """The implementation of a function without a body; None when there is none."""
    base, _ = base_name(name)
    if base in SILENT:
        return lambda m, f, a: 0
    if base in STOPS:
        def stop(m: Any, f: Any, a: list[Any]) -> Any:
            raise Fault(f"`{name}` was called")
        return stop
    short = {"llvm.fmuladd": "fma", "llvm.minnum": "fmin", "llvm.maxnum": "fmax", "llvm.abs": "llvm.abs"}.get(
        base, base.removeprefix("llvm.") if base.removeprefix("llvm.") in SMOOTH | PIECEWISE.keys() else base
    )
    if short in SMOOTH:
        return _elementwise(lambda m, *a: m.domain.call(short, *a))
    if short in PIECEWISE:
        return _elementwise(PIECEWISE[short])
    if base in POINTERS:
        impl = POINTERS[base]
        t = ty.F32 if base_name(name)[1] == "f" else ty.F80 if base_name(name)[1] == "l" else ty.F64
        return lambda m, f, a: impl(m, t, *a)
    if base in LIBC:
        return lambda m, f, a: LIBC[base](m, *a)
    if base.startswith("llvm.vector.reduce."):
        return _reduction(base.removeprefix("llvm.vector.reduce."))
    if base in INTRINSICS:
        return INTRINSICS[base]
    if base in COMPLEX or (name[-1:] == "f" and name[:-1] in COMPLEX):
        return _complex(name)
    return None


def _elementwise(f: Callable[..., Any]) -> External:
    """`f(machine, *scalars)` over vectors too; the result is rounded to the declared type."""

    def run(m: Any, fn: Any, args: list[Any]) -> Any:
        rounder = m.domain.rounder(fn.ftype.ret.scalar) if fn is not None and fn.ftype.ret.is_fp else None

        def one(*scalars: Any) -> Any:
            out = f(m, *scalars)
            return out if rounder is None else rounder(out)

        n = next((len(a) for a in args if isinstance(a, tuple)), None)
        if n is None:
            return one(*args)
        return tuple(one(*(a[i] if isinstance(a, tuple) else a for a in args)) for i in range(n))

    return run


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
    n = _signed32(n)
    if n == 0:
        return m.domain.lift(1.0)
    out = x
    for _ in range(abs(n) - 1):
        out = out * x
    return m.domain.div(m.domain.lift(1.0), out) if n < 0 else out


def _signed32(n: int) -> int:
    n = int(n) & 0xFFFFFFFF
    return n - (1 << 32) if n >> 31 else n


def _ldexp(m: Any, x: Any, n: int) -> Any:
    n = max(min(_signed32(n), 1000), -1000)
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
    "jn": lambda m, n, x: m.domain.bessel("jn", _signed32(n), x),
    "yn": lambda m, n, x: m.domain.bessel("yn", _signed32(n), x),
    "abs": lambda m, n: abs(_signed32(n)) & 0xFFFFFFFF,
    "gamma": lambda m, x: m.domain.call("lgamma", x),
    "pow10": lambda m, x: m.domain.call("exp10", x),
}


# ---------------------------------------------------------------- mathematics with results through pointers


def _frexp(m: Any, x: Any) -> tuple[Any, int]:
    r = float(m.domain.real(x))
    if r == 0 or not math.isfinite(r):
        return x, 0
    e = math.frexp(r)[1]
    return x * m.domain.lift(2.0) ** -e, e


def _modf(m: Any, x: Any) -> tuple[Any, Any]:
    whole = PIECEWISE["trunc"](m, x)
    return x - whole, whole


def _p_frexp(m: Any, t: ty.Type, x: Any, p: int) -> Any:
    y, e = _frexp(m, x)
    m.memory.store(p, ty.I32, e & 0xFFFFFFFF)
    return y


def _p_modf(m: Any, t: ty.Type, x: Any, p: int) -> Any:
    fraction, whole = _modf(m, x)
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
    "__mulxc3": _c_mul, "__divxc3": _c_div,
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


def _complex(name: str) -> External:
    impl = COMPLEX[name if name in COMPLEX else name[:-1]]

    def run(m: Any, f: Any, args: list[Any]) -> Any:
        flat: list[Any] = []
        for a in args:
            flat += a if isinstance(a, tuple) else (a,)
        out = impl(m, *flat)
        t = f.ftype.ret
        t = t.fields[0] if isinstance(t, ty.StructType) else t.scalar
        return tuple(_round_to(m, t, x) for x in out) if isinstance(out, tuple) else _round_to(m, t, out)

    return run


# ---------------------------------------------------------------- libc


def _memcpy(m: Any, to: int, source: int, n: int, *_: Any) -> int:
    m.memory.copy(to, source, int(n))
    return to


def _memset(m: Any, to: int, byte: int, n: int, *_: Any) -> int:
    m.memory.fill(to, byte, int(n))
    return to


def _realloc(m: Any, p: int, n: int) -> int:
    new = m.memory.allocate(n, heap=True)
    if p:
        m.memory.copy(new, p, min(m.memory.find(p)[0].size, n))
        m.memory.free(p)
    return new


def _posix_memalign(m: Any, where: int, align: int, n: int) -> int:
    m.memory.store(where, ty.PTR, m.memory.allocate(n, heap=True))
    return 0


def _strlen(m: Any, p: int) -> int:
    n = 0
    while m.memory.load(p + n, ty.I8):
        n += 1
    return n


def _memcmp(m: Any, a: int, b: int, n: int) -> int:
    for i in range(n):
        x, y = int(m.memory.load(a + i, ty.I8)), int(m.memory.load(b + i, ty.I8))
        if x != y:
            return (x - y) & 0xFFFFFFFF
    return 0


def _qsort(m: Any, base: int, n: int, size: int, compare: int) -> None:
    """Insertion sort through a scratch element: the same result as any stable sort."""
    scratch = m.memory.allocate(size)
    for i in range(1, n):
        m.memory.copy(scratch, base + i * size, size)
        j = i
        while j > 0 and _signed32(m.call_pointer(compare, [base + (j - 1) * size, scratch])) > 0:
            m.memory.copy(base + j * size, base + (j - 1) * size, size)
            j -= 1
        m.memory.copy(base + j * size, scratch, size)


def _malloc(m: Any, n: int, *_: Any) -> int:
    return m.memory.allocate(int(n), heap=True)


LIBC: dict[str, Callable[..., Any]] = {
    "malloc": _malloc, "_Znwm": _malloc, "_Znam": _malloc, "valloc": _malloc,
    "calloc": lambda m, n, s: m.memory.allocate(n * s, 0, heap=True),
    "realloc": _realloc,
    "free": lambda m, p: m.memory.free(p),
    "_ZdlPv": lambda m, p: m.memory.free(p), "_ZdaPv": lambda m, p: m.memory.free(p),
    "_ZdlPvm": lambda m, p, n: m.memory.free(p), "_ZdaPvm": lambda m, p, n: m.memory.free(p),
    "aligned_alloc": lambda m, a, n: m.memory.allocate(n, heap=True),
    "memalign": lambda m, a, n: m.memory.allocate(n, heap=True),
    "posix_memalign": _posix_memalign,
    "memcpy": _memcpy, "memmove": _memcpy, "memset": _memset,
    "__memcpy_chk": _memcpy, "__memmove_chk": _memcpy, "__memset_chk": _memset,
    "strlen": _strlen, "memcmp": _memcmp, "bcmp": _memcmp, "qsort": _qsort,
    "labs": lambda m, n: n if not n >> 63 else -n & M64,
    "llabs": lambda m, n: n if not n >> 63 else -n & M64,
    "__errno_location": lambda m: _errno(m),
    "__fpclassify": lambda m, x: _classify(m, x), "__fpclassifyf": lambda m, x: _classify(m, x),
    "__isnan": lambda m, x: int(m.domain.nan(x)), "__isnanf": lambda m, x: int(m.domain.nan(x)),
    "__isinf": lambda m, x: int(math.isinf(float(m.domain.real(x)))),
    "__signbit": lambda m, x: int(m.domain.negative(x)), "__signbitf": lambda m, x: int(m.domain.negative(x)),
}  # fmt: skip


def _errno(m: Any) -> int:
    if not hasattr(m, "errno"):
        m.errno = m.memory.allocate(4, 0)
    return m.errno


def _classify(m: Any, x: Any) -> int:
    r = float(m.domain.real(x))
    return 0 if math.isnan(r) else 1 if math.isinf(r) else 2 if r == 0 else 3 if abs(r) < 2.3e-308 else 4


# ---------------------------------------------------------------- LLVM intrinsics


def _int_width(f: Any) -> int:
    t = f.ftype.params[0].scalar
    return t.bits if isinstance(t, ty.IntType) else 64


def _ints(impl: Callable[..., int]) -> External:
    """`impl(width, *ints)` over vectors too."""

    def run(m: Any, f: Any, args: list[Any]) -> Any:
        w = _int_width(f)
        n = next((len(a) for a in args if isinstance(a, tuple)), None)
        if n is None:
            return impl(w, *args)
        return tuple(impl(w, *(a[i] if isinstance(a, tuple) else a for a in args)) for i in range(n))

    return run


def _s(x: int, w: int) -> int:
    return int(x) - (1 << w) if x >> (w - 1) else int(x)


def _overflow(op: Callable[[int, int], int], is_signed: bool) -> External:
    def impl(w: int, a: int, b: int) -> Any:
        exact = op(_s(a, w), _s(b, w)) if is_signed else op(int(a), int(b))
        low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if is_signed else (0, (1 << w) - 1)
        return exact & ((1 << w) - 1), int(not low <= exact <= high)

    return lambda m, f, args: impl(_int_width(f), *args)


def _saturate(op: Callable[[int, int], int], is_signed: bool) -> External:
    def impl(w: int, a: int, b: int) -> int:
        exact = op(_s(a, w), _s(b, w)) if is_signed else op(int(a), int(b))
        low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if is_signed else (0, (1 << w) - 1)
        return max(low, min(high, exact)) & ((1 << w) - 1)

    return _ints(impl)


def _to_int_saturating(is_signed: bool) -> External:
    def run(m: Any, f: Any, args: list[Any]) -> Any:
        w = f.ftype.ret.scalar.bits
        low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if is_signed else (0, (1 << w) - 1)

        def one(x: Any) -> int:
            r = float(m.domain.real(x))
            if math.isnan(r):
                return 0
            return (max(low, min(high, int(r))) if math.isfinite(r) else high if r > 0 else low) & ((1 << w) - 1)

        return tuple(map(one, args[0])) if isinstance(args[0], tuple) else one(args[0])

    return run


def _is_fpclass(m: Any, f: Any, args: list[Any]) -> Any:
    def one(x: Any) -> int:
        r = float(m.domain.real(x))
        neg = math.copysign(1, r) < 0
        if math.isnan(r):
            mask = 3
        elif math.isinf(r):
            mask = 4 if neg else 512
        elif r == 0:
            mask = 32 if neg else 64
        elif abs(r) < 2.2250738585072014e-308:
            mask = 16 if neg else 128
        else:
            mask = 8 if neg else 256
        return int(bool(mask & args[1]))

    return tuple(map(one, args[0])) if isinstance(args[0], tuple) else one(args[0])


def _reduction(op: str) -> External:
    def run(m: Any, f: Any, args: list[Any]) -> Any:
        from functools import reduce

        if op in ("fadd", "fmul"):
            step = m._float_op(op, f.ftype.ret)
            return reduce(step, args[1], args[0])
        if op in ("fmin", "fmax", "fminimum", "fmaximum"):
            pick = PIECEWISE[{"fminimum": "minimum", "fmaximum": "maximum"}.get(op, op)]
            return reduce(lambda a, b: pick(m, a, b), args[0])
        if op in ("smin", "smax", "umin", "umax"):
            impl = MINMAX[op]
            w = f.ftype.ret.bits
            return reduce(lambda a, b: impl(w, a, b), args[0])
        return reduce(m._int_op(op, f.ftype.ret, ()), args[0])

    return run


MINMAX: dict[str, Callable[[int, int, int], int]] = {
    "smin": lambda w, a, b: a if _s(a, w) <= _s(b, w) else b,
    "smax": lambda w, a, b: a if _s(a, w) >= _s(b, w) else b,
    "umin": lambda w, a, b: min(a, b),
    "umax": lambda w, a, b: max(a, b),
}


def _funnel(w: int, a: int, b: int, c: int, left: bool) -> int:
    c %= w
    both = int(a) << w | int(b)
    return (both >> (w - c) if left else both >> c) & ((1 << w) - 1)


def _load_relative(m: Any, f: Any, args: list[Any]) -> int:
    p, offset = args
    return (p + _s(m.memory.load((p + offset) & M64, ty.I32), 32)) & M64


def _copy(m: Any, f: Any, args: list[Any]) -> None:
    m.memory.copy(args[0], args[1], int(args[2]))


def _fill(m: Any, f: Any, args: list[Any]) -> None:
    m.memory.fill(args[0], args[1], int(args[2]))


def _first(m: Any, f: Any, args: list[Any]) -> Any:
    return args[0]


def _lanes(pair: Callable[[Any, Any], tuple[Any, Any]]) -> External:
    def run(m: Any, f: Any, args: list[Any]) -> Any:
        if isinstance(args[0], tuple):
            return tuple(zip(*(pair(m, x) for x in args[0]), strict=True))
        return pair(m, args[0])

    return run


def _masked_load(m: Any, f: Any, args: list[Any]) -> Any:
    p, mask, other = args[0], args[-2], args[-1]
    t = f.ftype.ret.elem
    n = ty.store_size(t)
    return tuple(m.memory.load(p + i * n, t) if k else other[i] for i, k in enumerate(mask))


def _masked_store(m: Any, f: Any, args: list[Any]) -> None:
    v, p, mask = args[0], args[1], args[-1]
    t = f.ftype.params[0].elem
    n = ty.store_size(t)
    for i, k in enumerate(mask):
        if k:
            m.memory.store(p + i * n, t, v[i])


def _gather(m: Any, f: Any, args: list[Any]) -> Any:
    pointers, mask, other = args[0], args[-2], args[-1]
    t = f.ftype.ret.elem
    return tuple(m.memory.load(p, t) if k else o for p, k, o in zip(pointers, mask, other, strict=True))


def _scatter(m: Any, f: Any, args: list[Any]) -> None:
    t = f.ftype.params[0].elem
    for v, p, k in zip(args[0], args[1], args[-1], strict=True):
        if k:
            m.memory.store(p, t, v)


def _frexp_pair(m: Any, x: Any) -> tuple[Any, int]:
    y, e = _frexp(m, x)
    return y, e & 0xFFFFFFFF


INTRINSICS: dict[str, External] = {
    "llvm.memcpy": _copy, "llvm.memmove": _copy, "llvm.memcpy.inline": _copy,
    "llvm.memset": _fill, "llvm.memset.inline": _fill,
    "llvm.sincos": _lanes(lambda m, x: (m.domain.call("sin", x), m.domain.call("cos", x))),
    "llvm.modf": _lanes(_modf),
    "llvm.frexp": _lanes(_frexp_pair),
    "llvm.fptosi.sat": _to_int_saturating(True), "llvm.fptoui.sat": _to_int_saturating(False),
    "llvm.lround": lambda m, f, a: PIECEWISE["lround"](m, a[0]) & ((1 << f.ftype.ret.bits) - 1),
    "llvm.is.fpclass": _is_fpclass,
    "llvm.abs": _ints(lambda w, a, *_: abs(_s(a, w)) & ((1 << w) - 1)),
    **{f"llvm.{k}": _ints(v) for k, v in MINMAX.items()},
    "llvm.ctpop": _ints(lambda w, a: int(a).bit_count()),
    "llvm.ctlz": _ints(lambda w, a, *_: w - int(a).bit_length()),
    "llvm.cttz": _ints(lambda w, a, *_: (int(a) & -int(a)).bit_length() - 1 if a else w),
    "llvm.bswap": _ints(lambda w, a: int.from_bytes(int(a).to_bytes(w // 8, "little"), "big")),
    "llvm.bitreverse": _ints(lambda w, a: int(format(int(a), f"0{w}b")[::-1], 2)),
    "llvm.fshl": _ints(lambda w, a, b, c: _funnel(w, a, b, int(c), True)),
    "llvm.fshr": _ints(lambda w, a, b, c: _funnel(w, a, b, int(c), False)),
    "llvm.scmp": lambda m, f, a: ((_s(a[0], _int_width(f)) > _s(a[1], _int_width(f)))
                                  - (_s(a[0], _int_width(f)) < _s(a[1], _int_width(f))))
                                  & ((1 << f.ftype.ret.bits) - 1),
    "llvm.ucmp": lambda m, f, a: ((a[0] > a[1]) - (a[0] < a[1])) & ((1 << f.ftype.ret.bits) - 1),
    **{f"llvm.{s}{n}.with.overflow": _overflow(op, s == "s") for s in "su" for n, op in
       (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b))},
    **{f"llvm.{s}{n}.sat": _saturate(op, s == "s") for s in "su" for n, op in
       (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b))},
    "llvm.expect": _first, "llvm.expect.with.probability": _first, "llvm.launder.invariant.group": _first,
    "llvm.strip.invariant.group": _first, "llvm.ssa.copy": _first, "llvm.ptr.annotation": _first,
    "llvm.threadlocal.address": _first, "llvm.annotation": _first,
    "llvm.ptrmask": lambda m, f, a: a[0] & a[1],
    "llvm.objectsize": lambda m, f, a: (M64 if not a[1] else 0) & ((1 << f.ftype.ret.bits) - 1),
    "llvm.is.constant": lambda m, f, a: 0,
    "llvm.invariant.start": lambda m, f, a: 0,
    "llvm.load.relative": _load_relative,
    "llvm.masked.gather": _gather, "llvm.masked.scatter": _scatter,
    "llvm.masked.load": _masked_load, "llvm.masked.store": _masked_store,
    "llvm.stacksave": lambda m, f, a: 0,
}  # fmt: skip
