"""LLVM intrinsics for the interpreter, apart from mathematics."""


from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .mathematics import M64, PIECEWISE, External, frexp, modf
from .undefined import POISON, UNDEF, Fault, Misused, Undefined, guarded, meet, undefined_in


def _int_width(f: Any) -> int:
    t = f.ftype.params[0].scalar
    return t.bits if isinstance(t, ty.IntType) else 64


def _ints(impl: Callable[..., int]) -> External:
    """`impl(width, *ints)` over vectors too."""

    def run(m: Any, f: Any, args: list[Any]) -> Any:
        w = _int_width(f)
        one = guarded(lambda *a: impl(w, *a))
        n = next((len(a) for a in args if isinstance(a, tuple)), None)
        if n is None:
            return one(*args)
        return tuple(one(*(a[i] if isinstance(a, tuple) else a for a in args)) for i in range(n))

    return run


def _s(x: int, w: int) -> int:
    return int(x) - (1 << w) if x >> (w - 1) else int(x)


def _overflow(op: Callable[[int, int], int], is_signed: bool) -> External:
    def impl(w: int, a: int, b: int) -> Any:
        exact = op(_s(a, w), _s(b, w)) if is_signed else op(int(a), int(b))
        low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if is_signed else (0, (1 << w) - 1)
        return exact & ((1 << w) - 1), int(not low <= exact <= high)

    def run(m: Any, f: Any, args: list[Any]) -> Any:
        lost = meet(*args)
        return guarded(lambda *a: impl(_int_width(f), *a), lambda *_: (lost, lost))(*args)

    return run


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

        return _mapped(one, args[0])

    return run


def _mapped(one: Callable[[Any], Any], value: Any) -> Any:
    """A function of scalars, over a vector too; undefined where its argument is."""
    lane = guarded(one)
    return tuple(map(lane, value)) if isinstance(value, tuple) else lane(value)


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

    return _mapped(one, args[0])


def reduction(op: str) -> External:
    """`llvm.vector.reduce.*`."""
    def run(m: Any, f: Any, args: list[Any]) -> Any:
        from functools import reduce

        lost = undefined_in(tuple(args))
        if lost is not None:
            return meet(*args[0], *args[1]) if op in ("fadd", "fmul") and isinstance(args[0], tuple) else meet(lost)
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
        one = guarded(lambda x: pair(m, x), lambda x: (x, x))
        if isinstance(args[0], tuple):
            return tuple(zip(*map(one, args[0]), strict=True))
        return one(args[0])

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


def _assume(m: Any, f: Any, args: list[Any]) -> None:
    if type(args[0]) is Undefined:
        raise Misused("a fact")
    if not args[0]:
        raise Fault("what is assumed does not hold")


def _begin(m: Any, f: Any, args: list[Any]) -> None:
    """The lifetime of a variable begins, or ends: it holds nothing."""
    _variable(m, args[-1], UNDEF)


def _end(m: Any, f: Any, args: list[Any]) -> None:
    _variable(m, args[-1], POISON)


def _variable(m: Any, p: Any, now: Undefined) -> None:
    if type(p) is not Undefined:  # `llvm.lifetime` of poison does nothing
        m.memory.forget(p, m.memory.find(p)[0].size, now)


def _frexp_pair(m: Any, x: Any) -> tuple[Any, int]:
    y, e = frexp(m, x)
    return y, e & 0xFFFFFFFF


INTRINSICS: dict[str, External] = {
    "llvm.memcpy": _copy, "llvm.memmove": _copy, "llvm.memcpy.inline": _copy,
    "llvm.memset": _fill, "llvm.memset.inline": _fill,
    "llvm.sincos": _lanes(lambda m, x: (m.domain.call("sin", x), m.domain.call("cos", x))),
    "llvm.modf": _lanes(modf),
    "llvm.frexp": _lanes(_frexp_pair),
    "llvm.fptosi.sat": _to_int_saturating(True), "llvm.fptoui.sat": _to_int_saturating(False),
    "llvm.lround": lambda m, f, a: PIECEWISE["lround"](m, a[0]) & ((1 << f.ftype.ret.bits) - 1),
    "llvm.is.fpclass": _is_fpclass,
    "llvm.abs": _ints(lambda w, a, strict: POISON if strict and a == 1 << (w - 1) else abs(_s(a, w)) & ((1 << w) - 1)),
    **{f"llvm.{k}": _ints(v) for k, v in MINMAX.items()},
    "llvm.ctpop": _ints(lambda w, a: int(a).bit_count()),
    "llvm.ctlz": _ints(lambda w, a, strict: w - int(a).bit_length() if a or not strict else POISON),
    "llvm.cttz": _ints(lambda w, a, strict: (int(a) & -int(a)).bit_length() - 1 if a else POISON if strict else w),
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
    "llvm.assume": _assume, "llvm.lifetime.start": _begin, "llvm.lifetime.end": _end,
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
