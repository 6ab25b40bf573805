"""Kernels that call BLAS and LAPACK routines, and derivatives of them to compare with.

Every routine gets a C function of the same parameters, in C's convention (`cblas_dgemm`) and Fortran's (`dgemm_`). The
library is the one that SciPy brings along. What derivatives are compared with are five-point differences of the
compiled call itself, entry by entry, so gaps between rows, unread triangles and NaN in what BLAS does not read are
covered.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import irgrad
from irgrad.engine import jvp, vjp
from irgrad.rules.blas.spelling import FLAGS, Spelling

C_FLAGS = {"order": (102, 101), "trans": (111, 112), "uplo": (121, 122), "diag": (131, 132), "side": (141, 142)}
LETTERS = {"trans": "NT", "uplo": "UL", "diag": "NU", "side": "LR", "jobz": "VN"}


def library() -> str:
    """The BLAS and LAPACK of SciPy."""
    import scipy

    return str(next(Path(scipy.__file__).parent.parent.glob("scipy.libs/libscipy_openblas*.so")))


def flag_values(name: str, c: bool) -> tuple[int, ...]:
    """The values of a flag."""
    kind = "trans" if name.startswith("trans") else name
    return C_FLAGS[kind] if c else tuple(map(ord, LETTERS[kind]))


def source(spelling: Spelling, constants: dict[str, int] | None = None) -> str:
    """C code of a function that hands its arguments on."""
    real = "float" if spelling.dtype == "f32" else "double"
    types, params, args, setup = [], [], [], ""
    for p in spelling.prototype.params:
        base = real if p.dtype.startswith("f") else {"i8": "char", "i32": "int", "i64": "long"}[p.dtype]
        types.append(base if p.by_value else f"{base} *")
        if p.name in (constants or {}):
            args.append(f"{constants[p.name]}")  # type: ignore[index]
            continue
        params.append(f"{'int' if p.name in FLAGS else base} {'*' if p.kind == 'pointer' else ''}{p.name}")
        if p.kind == "reference":
            setup += f"{base} {p.name}_ = {p.name}; "
        args.append(f"&{p.name}_" if p.kind == "reference" else p.name)
    returns = real if spelling.prototype.returns != "void" else "void"
    call = f"{'return ' if returns != 'void' else ''}{spelling.symbol}({', '.join(args)});"
    return (f"{returns} {spelling.symbol}({', '.join(types)});\n"
            f"{returns} test_{spelling.symbol}({', '.join(params)}) {{ {setup}{call} }}\n")  # fmt: skip


def signature(spelling: Spelling, constants: tuple[str, ...] = ()) -> str:
    """Its signature: memory as flat buffers."""
    parts, sizes = [], []
    for p in spelling.prototype.params:
        if p.name in constants:
            continue
        if p.kind == "pointer":
            parts.append(f"{'inout' if p.writes else ''} {p.dtype}[n_{p.name}] {p.name}".strip())
            sizes.append(f"i64 n_{p.name}")
        else:
            parts.append(f"{'i32' if p.name in FLAGS else p.dtype} {p.name}")
    return f"{spelling.prototype.returns}({', '.join(parts + sizes)})"


@cache
def kernel(spelling: Spelling, constants: tuple[tuple[str, int], ...] = ()) -> Any:
    """The function as a Kernel; its buffers' sizes follow from the arrays."""
    fixed = dict(constants)
    text = source(spelling, fixed)
    sizes = "".join(f", long n_{p.name}" for p in spelling.prototype.params if p.kind == "pointer")
    text = text.replace(") {", f"{sizes}) {{")
    lib = irgrad.load(text, link=[library()])
    return lib.kernel(f"test_{spelling.symbol}", signature(spelling, tuple(fixed)))


def outputs(values: Any) -> list[np.ndarray[Any, Any]]:
    """What a kernel returns, its floats as arrays."""
    listed = values if isinstance(values, tuple) else (values,)
    return [np.asarray(v, float) for v in listed if np.asarray(v).dtype.kind == "f"]


def differences(call: Any, args: tuple[Any, ...], seeds: list[np.ndarray[Any, Any]], h: float = 2e-3) -> list[Any]:
    """Gradients of <seeds, outputs> with respect to every float argument: five-point differences."""
    result: list[Any] = []
    for number, arg in enumerate(args):
        value = np.asarray(arg)
        if value.dtype.kind != "f":
            continue
        gradient = np.zeros(value.size)
        for i in range(value.size):
            total = 0.0
            for step, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
                moved = value.astype(float).copy().reshape(-1)
                moved[i] += step * h
                given = moved.reshape(value.shape)
                out = outputs(call(*args[:number], given if value.ndim else float(given), *args[number + 1 :]))
                total += weight * sum(float(np.nansum(s * o)) for s, o in zip(seeds, out, strict=True))
            gradient[i] = total / (12 * h)
        result.append(gradient.reshape(value.shape))
    return result


def check(
    spelling: Spelling, args: dict[str, Any], rng: np.random.Generator, rtol: float = 1e-8,
    garbage: tuple[str, ...] = ("work",),
) -> None:  # fmt: skip
    """Reverse against differences, forward against reverse. `garbage`: outputs that mean nothing."""
    k = kernel(spelling)
    given = tuple(args.values())
    values, pull = vjp(k, *given)
    shown = values if isinstance(values, tuple) else (values,)
    written = [p.name for p in spelling.prototype.params if p.writes and p.dtype.startswith("f")] or ["result"]
    seeds = [rng.normal(size=np.shape(v)) * np.isfinite(v) * (name not in garbage)
             for name, v in zip(written, outputs(values), strict=True)]  # fmt: skip
    every = iter(seeds)
    full = tuple(next(every) if np.asarray(v).dtype.kind == "f" else None for v in shown)
    got = [g for g in pull(full if isinstance(values, tuple) else full[0]) if g is not None]
    want = differences(k, given, seeds)
    assert len(got) == len(want)
    names = [n for n, v in args.items() if np.asarray(v).dtype.kind == "f"]
    unread = args.get("beta") == 0  # and NaN: the derivative with respect to beta is NaN as well
    for name, g, w in zip(names, got, want, strict=True):
        if unread and name == "beta":
            assert np.isnan(g) or g == 0
            continue
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol, err_msg=f"{spelling.symbol} {name}")
    tangents = tuple(rng.normal(size=np.shape(v)) * (n != "beta" or not unread) if np.asarray(v).dtype.kind == "f"
                     else None for n, v in args.items())  # fmt: skip
    _, moved = jvp(k, given, tangents)
    moving = outputs(moved) if isinstance(moved, tuple) else [np.asarray(moved, float)]
    left = sum(float(np.nansum(s * t)) for s, t in zip(seeds, moving, strict=True))
    right = sum(float(np.nansum(g * t)) for g, t in zip(got, [t for t in tangents if t is not None], strict=True))
    assert math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9), f"{spelling.symbol}: {left} {right}"


def flag_cases(spelling: Spelling) -> list[dict[str, int]]:
    """All combinations of the flags of a routine."""
    names = [n for n in spelling.names if n in FLAGS]
    rows = itertools.product(*(flag_values(n, spelling.c) for n in names))
    return [dict(zip(names, row, strict=True)) for row in rows]


def arguments(spelling: Spelling, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments in the routine's order."""
    real = np.float32 if spelling.dtype == "f32" else np.float64
    return {n: given[n].astype(real) if getattr(given[n], "dtype", None) == np.float64 else given[n]
            for n in spelling.names}  # fmt: skip


def check_single(
    spelling: Spelling, args: dict[str, Any], rng: np.random.Generator, garbage: tuple[str, ...] = ()
) -> None:
    """Single precision against double precision of the same numbers."""
    double = replace(spelling, letter="d")
    seeds: list[Any] = []
    found = []
    for one in (spelling, double):
        real = np.float32 if one.dtype == "f32" else np.float64
        given = tuple(v.astype(real) if getattr(v, "dtype", None) in (np.float32, np.float64) else v
                      for v in args.values())  # fmt: skip
        values, pull = vjp(kernel(one), *given)
        shown = values if isinstance(values, tuple) else (values,)
        names = [p.name for p in spelling.prototype.params if p.writes] or ["result"]
        seeds = seeds or [rng.normal(size=np.shape(v)) * (name not in garbage)
                          for name, v in zip(names, shown, strict=True)]  # fmt: skip
        cast = [s.astype(np.asarray(v).dtype)[()] if np.asarray(v).dtype.kind == "f" else None
                for s, v in zip(seeds, shown, strict=True)]  # fmt: skip
        found.append([g for g in pull(tuple(cast) if isinstance(values, tuple) else cast[0]) if g is not None])
    assert found[0]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=spelling.symbol)
