"""Vectorised calls of exp, sin, pow, ... go to glibc's libmvec.

LLVM vectorises loops over `llvm.sin.f64` into `<8 x double> @llvm.sin.v8f64`, and then takes the vector apart again: it
knows no vector library by default. libmvec has those functions (at most 4 ulp off, about ten times faster). Two steps:

annotate, before optimisation: every scalar call says which vector variants exist (`vector-function-abi-variant`), so
    that the vectorisers' cost model prefers them, for functions without an intrinsic (erf, log1p, ...) as well. In a
    whole program only the calls that may be approximated (LLVM's flags `afn` and `fast`: those of derivatives whose
    values nobody is told, and those of a program built with -ffast-math);
rewrite, after optimisation: vector intrinsics that remain become small internal functions that call libmvec, splitting
    or padding vectors to the widths that exist.

Names follow the x86-64 vector function ABI: `_ZGV<isa>N<lanes><v per argument>_<name>`, isa b = SSE4, d = AVX2,
e = AVX-512. Functions with b run on every CPU: glibc chooses by itself what they use of SSE.
"""

from __future__ import annotations

import re
from functools import cache

from irgrad.engine.codegen.llvm import host_features
from irgrad.engine.codegen.symbols import lookup, open_library
from irgrad.engine.ir.text.outline import outline
from irgrad.rules.table import rows

__all__ = ["annotate", "available", "rewrite"]

_ROWS = [row for row in rows().values() if row.libmvec]
# Intrinsics with a libmvec function: name -> number of arguments.
_INTRINSICS = {row.intrinsics[0]: len(row.signature) for row in _ROWS if row.intrinsics}
# Functions of libm without an intrinsic that libmvec has.
_CALLS = {row.libm[0]: len(row.signature) for row in _ROWS if not row.intrinsics}
_LIBRARY = "libmvec.so.1"
_VECTOR = re.compile(rf"@llvm\.({'|'.join(_INTRINSICS)})\.v(\d+)f(32|64)\b")
_ARGUMENTS = r"\((?:[^()\n]|\([^()\n]*\))*\)"
_CALL = re.compile(
    rf"( call [^@\n]*\b(?P<type>double|float) @(?:llvm\.(?P<intrinsic>{'|'.join(_INTRINSICS)})\.f(?:32|64)"
    rf"|(?P<call>{'|'.join(_CALLS)})(?P<f>f?)){_ARGUMENTS})"
)
_USED = re.compile(r"^@llvm\.compiler\.used = appending global \[(\d+) x ptr\] \[(.*?)\](.*)$", re.M)
_ISA = (("e", 512, "avx512f"), ("d", 256, "avx2"), ("b", 128, "sse2"))
_APPROXIMATE = re.compile(r"\b(?:afn|fast)\b")


@cache
def available() -> bool:
    """Whether this process can use libmvec (x86-64 glibc)."""
    return open_library(_LIBRARY) and bool(lookup("_ZGVbN2v_sin"))


@cache
def _isas(features: str = "") -> tuple[tuple[str, int], ...]:
    """(letter, bits) of the vector instruction sets of a CPU (this one by default), widest first."""
    there = {"sse2": "+"}  # every x86-64 CPU has it
    there.update((word[1:], word[0]) for word in (features or host_features()).split(",") if word)
    return tuple((letter, bits) for letter, bits, feature in _ISA if there.get(feature) == "+")


@cache
def _variants(name: str, arity: int, bits: int, features: str) -> tuple[tuple[str, int], ...]:
    """(symbol, lanes) of the libmvec functions for a scalar function that this CPU and this glibc have."""
    suffix = f"{'v' * arity}_{name}{'f' if bits == 32 else ''}"
    rows = ((f"_ZGV{letter}N{width // bits}{suffix}", width // bits) for letter, width in _isas(features))
    return tuple((symbol, lanes) for symbol, lanes in rows if lookup(symbol))


def annotate(text: str, features: str = "", *, approximate: bool = False) -> str:
    """Tell the vectorisers about libmvec: an attribute on each scalar call it has a vector form of.

    features: those of the CPU that runs the code, as LLVM writes them; empty for this CPU
    approximate: only on calls that may be approximated

    Idempotent, and the text is returned as it is where libmvec is not there.
    """
    if outline(text).has_prefix("_ZGV") or not _CALL.search(text) or not available():
        return text
    declared: dict[str, str] = {}
    own = outline(text).defined

    def mark(found: re.Match[str]) -> str:
        if approximate and not _APPROXIMATE.search(found[0].partition("@")[0]):
            return found[0]
        bits = 64 if found["type"] == "double" else 32
        if found["intrinsic"]:
            name, arity = found["intrinsic"], _INTRINSICS[found["intrinsic"]]
            scalar_name = f"llvm.{name}.f{bits}"
        else:
            name, arity = found["call"], _CALLS[found["call"]]
            scalar_name = name + found["f"]
            if scalar_name in own or (bits == 32) != bool(found["f"]):
                return found[0]
        rows = _variants(name, arity, bits, features)
        if not rows:
            return found[0]
        names = []
        for symbol, lanes in rows:
            vector = f"<{lanes} x {'double' if bits == 64 else 'float'}>"
            declared[symbol] = _declaration(symbol, vector, arity)
            names.append(f"{symbol.partition('_' + name)[0]}_{scalar_name}({symbol})")
        pure = "" if found["intrinsic"] else " nounwind willreturn memory(none)"
        return f'{found[1]}{pure} "vector-function-abi-variant"="{",".join(names)}"'

    text = _CALL.sub(mark, text)
    return _keep_declared(text, declared) if declared else text


def _declaration(symbol: str, vector: str, arity: int) -> str:
    return f"declare {vector} @{symbol}({', '.join([vector] * arity)}) nounwind willreturn memory(none)"


def _keep_declared(text: str, declared: dict[str, str]) -> str:
    """Declare the variants and list them in `llvm.compiler.used`: the vectorisers find only what is declared."""
    rows = [f"ptr @{symbol}" for symbol in declared]
    used = _USED.search(text)
    if used:
        count, others, rest = int(used[1]) + len(rows), used[2], used[3]
        line = f"@llvm.compiler.used = appending global [{count} x ptr] [{', '.join([others, *rows])}]{rest}"
        text = text[: used.start()] + line + text[used.end() :]
    else:
        joined = ", ".join(rows)
        text += f'\n@llvm.compiler.used = appending global [{len(rows)} x ptr] [{joined}], section "llvm.metadata"\n'
    return "\n".join([text, *declared.values(), ""])


def rewrite(text: str) -> str:
    """Redirect vector math intrinsics in optimised IR to libmvec; the text is returned as it is where none is there."""
    wanted = {(found[1], int(found[2]), int(found[3])) for found in _VECTOR.finditer(text)}
    if not wanted or not available():
        return text
    helpers: list[str] = []
    declared: dict[str, str] = {}
    for name, lanes, bits in sorted(wanted):
        helper = _helper(name, lanes, bits, declared)
        if helper is None:
            continue
        intrinsic = f"llvm.{name}.v{lanes}f{bits}"
        text = re.sub(rf"^declare [^@\n]*@{re.escape(intrinsic)}\([^\n]*\n", "", text, flags=re.M)
        text = text.replace(f"@{intrinsic}(", f"@irgrad.{intrinsic[5:]}(")
        helpers.append(helper)
    if not helpers:
        return text
    fresh = [row for symbol, row in declared.items() if f" @{symbol}(" not in text]
    return "\n".join([text, *helpers, *fresh, ""])


def _width(lanes: int, bits: int) -> tuple[str, int] | None:
    """(isa, lanes) of the libmvec function for vectors of `lanes`: the widest that fits, or SSE padded."""
    for letter, width in _isas():
        if lanes % (width // bits) == 0:
            return letter, width // bits
    fits_sse = any(letter == "b" for letter, _ in _isas()) and lanes < 128 // bits
    return ("b", 128 // bits) if fits_sse else None


def _helper(name: str, lanes: int, bits: int, declared: dict[str, str]) -> str | None:
    """An internal function over `lanes` that calls libmvec piece by piece; its declaration goes to `declared`."""
    chosen = _width(lanes, bits)
    if chosen is None:
        return None
    letter, piece = chosen
    arity = _INTRINSICS[name]
    symbol = f"_ZGV{letter}N{piece}{'v' * arity}_{name}{'f' if bits == 32 else ''}"
    if not lookup(symbol):
        return None
    scalar = "double" if bits == 64 else "float"
    whole, part = f"<{lanes} x {scalar}>", f"<{piece} x {scalar}>"
    declared[symbol] = _declaration(symbol, part, arity)
    arguments = [f"%a{index}" for index in range(arity)]
    lines = [f"define internal {whole} @irgrad.{name}.v{lanes}f{bits}({', '.join(f'{whole} {a}' for a in arguments)}) "
             "alwaysinline nounwind willreturn memory(none) {"]
    pieces = []
    for start in range(0, lanes, piece):
        # Padding repeats the last lane: any other value might raise needless exceptions or take slow paths.
        picked = ", ".join(f"i32 {min(start + lane, lanes - 1)}" for lane in range(piece))
        operands = []
        for a in arguments:
            lines.append(f"  {a}.{start} = shufflevector {whole} {a}, {whole} poison, <{piece} x i32> <{picked}>")
            operands.append(f"{part} {a}.{start}")
        lines.append(f"  %r{start} = call {part} @{symbol}({', '.join(operands)})")
        pieces.append((f"%r{start}", start))
    lines += _join(pieces, lanes, piece, scalar)
    return "\n".join([*lines, "}"])


def _join(pieces: list[tuple[str, int]], lanes: int, piece: int, scalar: str) -> list[str]:
    """Put the pieces side by side: each is spread to the full width and blended in."""
    whole, part = f"<{lanes} x {scalar}>", f"<{piece} x {scalar}>"
    lines: list[str] = []
    result = "poison"
    for value, start in pieces:
        spread = ", ".join(
            f"i32 {lane - start}" if start <= lane < start + piece else "i32 poison" for lane in range(lanes)
        )
        lines.append(f"  {value}.s = shufflevector {part} {value}, {part} poison, <{lanes} x i32> <{spread}>")
        if result == "poison":
            result = f"{value}.s"
            continue
        blend = ", ".join(f"i32 {lane + lanes if start <= lane < start + piece else lane}" for lane in range(lanes))
        lines.append(f"  {value}.j = shufflevector {whole} {result}, {whole} {value}.s, <{lanes} x i32> <{blend}>")
        result = f"{value}.j"
    return [*lines, f"  ret {whole} {result}"]
