"""libm, libc and LLVM intrinsics for the interpreter: `external(name)` is a callable (machine, function, args) -> value."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .formulas import FORMULAS
from .intrinsics import INTRINSICS, reduction
from .libc import LIBC, OF_VALUES
from .mathematics import COMPLEX, PIECEWISE, POINTERS, External, complex_function
from .tape import TAPE
from .undefined import Fault, Misused, Undefined, meet, undefined_in

SMOOTH = set(FORMULAS)
SILENT = set(
    "printf puts putchar fprintf fflush fputs fputc fwrite perror setvbuf srand "
    "__assert_rtn llvm.donothing llvm.prefetch llvm.var.annotation llvm.sideeffect "
    "llvm.experimental.noalias.scope.decl llvm.dbg.value llvm.dbg.declare llvm.dbg.label llvm.stackrestore "
    "llvm.invariant.end llvm.pseudoprobe".split()
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
        return _ignored
    if base in TAPE:
        return TAPE[base]
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
    if base in OF_VALUES:
        return _elementwise(LIBC[base])
    if base in LIBC:
        return lambda m, f, a: LIBC[base](m, *a)
    if base.startswith("llvm.vector.reduce."):
        return reduction(base.removeprefix("llvm.vector.reduce."))
    if base in INTRINSICS:
        return INTRINSICS[base]
    if base in COMPLEX or (name[-1:] == "f" and name[:-1] in COMPLEX):
        return complex_function(name)
    return None


def _ignored(m: Any, f: Any, args: list[Any]) -> int:
    """Nothing happens, but the system may look at what it is given; a debugger does not."""
    if not (f.name or "").startswith("llvm.") and undefined_in(tuple(args)) is not None:
        raise Misused("an argument of the system")
    return 0


def _elementwise(f: Callable[..., Any]) -> External:
    """`f(machine, *scalars)` over vectors too; the result is rounded to the declared type."""

    def run(m: Any, fn: Any, args: list[Any]) -> Any:
        rounder = m.domain.rounder(fn.ftype.ret.scalar) if fn is not None and fn.ftype.ret.is_fp else None

        def one(*scalars: Any) -> Any:
            if any(type(a) is Undefined for a in scalars):
                return meet(*scalars)
            out = f(m, *scalars)
            return out if rounder is None else rounder(out)

        n = next((len(a) for a in args if isinstance(a, tuple)), None)
        if n is None:
            return one(*args)
        return tuple(one(*(a[i] if isinstance(a, tuple) else a for a in args)) for i in range(n))

    return run
