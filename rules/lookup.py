"""From the symbol of a call to its row: dictionary look-ups in tables built on first use.

Spellings are generated from the rows, never written out: sin, sinf, sinl, __sin_finite, __nv_sinf, __ocml_sin_f32,
llvm.sin.v4f64 and llvm.experimental.constrained.sin.f64 all find the row `sin`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from irgrad.rules.expressions.row import Row
from irgrad.rules.table import rows

__all__ = ["Match", "Reduction", "find", "float_intrinsics", "opcode_row", "reduction", "spellings"]

_TYPE = re.compile(r"(?:nx)?(?:v\d+)?(?:f16|bf16|f32|f64|f80|f128|ppcf128|i\d+|p\d+)")
_FLOAT = re.compile(r"(?:nx)?(?:v\d+)?(?:b?f\d+|ppcf128)")
_LIBM_SUFFIXES = (("", "f64"), ("f", "f32"), ("l", "f80"), ("f16", "f16"), ("f32", "f32"), ("f64", "f64"))


@dataclass(frozen=True, slots=True)
class Match:
    """A symbol's row and the float type it works on.

    dtype   "f16", "bf16", "f32", "f64", "f80", "v4f64", ... as LLVM suffixes its intrinsics; None where the symbol
            does not tell
    packed  complex numbers travel as <2 x float>: each argument stands for two places of the signature
    errno   the function may write errno
    """

    row: Row
    dtype: str | None
    packed: bool = False
    errno: bool = False

    @property
    def key(self) -> str:
        return self.row.key


@dataclass(frozen=True, slots=True)
class Reduction:
    """llvm.vector.reduce.*: `key` is the operation between lanes (an opcode or the key of a row); `start` tells
    whether argument 0 is a start value and the vector is argument 1."""

    key: str
    start: bool
    dtype: str


@cache
def _symbols() -> dict[str, Match]:
    table: dict[str, Match] = {}

    def add(symbol: str, match: Match) -> None:
        # The first row in table order keeps a name: spellings such as j0f16 cannot take a name that is written out.
        table.setdefault(symbol, match)

    for row in rows().values():
        for symbol, dtype in row.exact:
            packed = dtype == "f32" and "f" in row.signature and _is_complex(row) and symbol[:1] == "c"
            add(symbol, Match(row, dtype, packed, errno=not symbol.startswith("__")))
    # hypot of the parts of one packed argument
    add("cabsf", Match(rows()["hypot"], "f32", packed=True, errno=True))
    for row in rows().values():
        for base in row.libm:
            for suffix, dtype in _LIBM_SUFFIXES[:3]:
                add(base + suffix, Match(row, dtype, errno=True))
    for row in rows().values():
        for base in row.libm:
            for suffix, dtype in _LIBM_SUFFIXES:
                add(base + suffix, Match(row, dtype, errno=True))
                add(f"__{base}{suffix}_finite", Match(row, dtype))
            for suffix, dtype in _LIBM_SUFFIXES[:2]:
                add(f"__nv_{base}{suffix}", Match(row, dtype))
                add(f"__nv_fast_{base}{suffix}", Match(row, dtype))
                add(f"__ocml_{base}_{dtype}", Match(row, dtype))
                add(f"__ocml_native_{base}_{dtype}", Match(row, dtype))
            add(f"__{base}", Match(row, "f64", errno=True))
            add(f"__{base}f", Match(row, "f32", errno=True))
    return table


def _is_complex(row: Row) -> bool:
    return row.key.startswith("c") and row.signature in ("ff", "ffff") and bool(row.exact) and not row.libm


@cache
def _intrinsics() -> dict[str, Row]:
    return {base: row for row in rows().values() for base in row.llvm}


@cache
def _opcodes() -> dict[str, Row]:
    return {row.opcode: row for row in rows().values() if row.opcode}


def opcode_row(opcode: str) -> Row | None:
    """The row of a float opcode of LLVM (fadd, fsub, fmul, fdiv, frem, fneg), else None."""
    return _opcodes().get(opcode)


@cache
def float_intrinsics() -> dict[str, tuple[str, int]]:
    """Function of the C library -> (intrinsic of LLVM of the same meaning, without `llvm.`; number of arguments), for
    functions of floats alone. The intrinsic cannot write errno."""
    return {
        base: (intrinsic, len(row.signature))
        for row in rows().values() if row.lanewise and set(row.signature) == {"f"}
        for base, intrinsic in zip(row.libm, row.intrinsics, strict=False)
    }  # fmt: skip


def _split(symbol: str) -> tuple[str, str | None]:
    """`llvm.lround.i64.f64` -> ("lround", "f64"): the name, and the first float type among the overload suffixes."""
    parts = symbol.split(".")[1:]
    end = len(parts)
    while end > 1 and _TYPE.fullmatch(parts[end - 1]):
        end -= 1
    dtype = next((part for part in parts[end:] if _FLOAT.fullmatch(part)), None)
    return ".".join(parts[:end]), dtype


@lru_cache(maxsize=4096)
def find(symbol: str) -> Match | None:
    """The row for a call to `symbol`, or None. Reductions have no row: see `reduction`."""
    if not symbol.startswith(("llvm.", "irgrad.")) or symbol.startswith("irgrad.parts."):
        return _symbols().get(symbol)
    base, dtype = _split(symbol)
    base = base if symbol.startswith("llvm.") else f"irgrad.{base}"
    row = _intrinsics().get(base)
    return None if row is None else Match(row, dtype)


_REDUCTIONS = {"fadd": True, "fmul": True, "fmin": False, "fmax": False, "fminimum": False, "fmaximum": False}
_BETWEEN = {"fminimum": "minimum", "fmaximum": "maximum"}


@lru_cache(maxsize=256)
def reduction(symbol: str) -> Reduction | None:
    """The reading of `llvm.vector.reduce.*` on floats, else None."""
    if not symbol.startswith("llvm.vector.reduce."):
        return None
    base, dtype = _split(symbol)
    kind = base.rpartition(".")[2]
    if kind not in _REDUCTIONS or dtype is None:
        return None
    return Reduction(_BETWEEN.get(kind, kind), _REDUCTIONS[kind], dtype)


def spellings(key: str) -> tuple[str, ...]:
    """Every library symbol, and every intrinsic's base name, that finds the row `key`. Raises KeyError."""
    row = rows()[key]
    named = [symbol for symbol, match in _symbols().items() if match.row is row]
    return (*named, *(base if base.startswith("irgrad.") else f"llvm.{base}" for base in row.llvm))
