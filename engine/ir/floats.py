"""Float literals of LLVM's text: reading any spelling into bits, printing bits exactly.

LLVM prints `double` and `float` in decimal when six digits are exact, else as the sixteen hexadecimal digits of the
value as a double; the other formats have a letter each: 0xH half, 0xR bfloat, 0xK x86_fp80, 0xL fp128, 0xM ppc_fp128
(these two with their low word first). Versions after 22 write `f0x...`, the bits in the type's own format.
"""

from __future__ import annotations

import struct
from math import isinf, isnan

from irgrad.engine.ir import model
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import Type

_DOUBLE = struct.Struct("<d")
_WORD = struct.Struct("<Q")
_FIELDS = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23)}  # exponent bits, mantissa bits
_LETTERS = {"half": "H", "bfloat": "R", "x86_fp80": "K", "fp128": "L", "ppc_fp128": "M"}


def parse_float(type_: Type, token: str) -> int | None:
    """Bits of a literal in the format of `type_`; None when the literal does not fit the type."""
    kind = type_.text
    if token.startswith("0x"):
        letter = token[2:3]
        if letter in "KLMHR":
            return _parse_lettered(kind, letter, token[3:])
        raw = int(token, 16)
        return _narrow(kind, raw) if raw < 1 << 64 and kind in ("double", *_FIELDS) else None
    if token.lstrip("+-").startswith("f0x"):
        bits = int(token[token.index("x") + 1 :], 16)
        total = ty.FLOAT_BITS[kind]
        if token[0] == "-":
            bits |= 1 << (total - 1)
        return bits if bits < 1 << total else None
    if "." not in token:
        return None
    value = float(token)
    raw = _WORD.unpack(_DOUBLE.pack(value))[0]
    if kind == "double":
        return int(raw)
    if kind in _FIELDS:
        # LLVM refuses a decimal literal that the type cannot hold; what underflows becomes zero there.
        return _narrow(kind, raw)
    return None


def _parse_lettered(kind: str, letter: str, digits: str) -> int | None:
    if _LETTERS.get(kind) != letter or not digits:
        return None
    if letter in "LM":
        digits = digits.rjust(32, "0")
        digits = digits[16:] + digits[:16]
    bits = int(digits, 16)
    return bits if bits < 1 << ty.FLOAT_BITS[kind] else None


def _narrow(kind: str, raw: int) -> int | None:
    """Bits of a double in a narrower format; None if that is not exact."""
    if kind == "double":
        return raw
    exponent_bits, mantissa_bits = _FIELDS[kind]
    value = _DOUBLE.unpack(_WORD.pack(raw))[0]
    sign = raw >> 63 << (exponent_bits + mantissa_bits)
    if isnan(value) or isinf(value):
        drop = 52 - mantissa_bits
        fraction = raw & ((1 << 52) - 1)
        if fraction & ((1 << drop) - 1):
            return None
        return sign | ((1 << exponent_bits) - 1) << mantissa_bits | fraction >> drop
    bits = model.float_to_bits(ty.float_(kind), value)
    return bits if model.bits_to_float(ty.float_(kind), bits) == value else None


def _widen(kind: str, bits: int) -> int:
    """Bits of the double that equals a float of a narrower format (NaN payloads kept)."""
    exponent_bits, mantissa_bits = _FIELDS[kind]
    if bits >> mantissa_bits & ((1 << exponent_bits) - 1) == (1 << exponent_bits) - 1:
        sign = bits >> (exponent_bits + mantissa_bits) << 63
        return sign | 0x7FF << 52 | (bits & ((1 << mantissa_bits) - 1)) << (52 - mantissa_bits)
    return int(_WORD.unpack(_DOUBLE.pack(model.bits_to_float(ty.float_(kind), bits)))[0])


def float_text(type_: Type, bits: int) -> str:
    """The literal as LLVM prints it."""
    kind = type_.text
    letter = _LETTERS.get(kind)
    if letter is not None:
        width = ty.FLOAT_BITS[kind] // 4
        digits = f"{bits:0{width}X}"
        if letter in "LM":
            digits = digits[16:] + digits[:16]
        return f"0x{letter}{digits}"
    raw = bits if kind == "double" else _widen(kind, bits)
    value = _DOUBLE.unpack(_WORD.pack(raw))[0]
    if not (isnan(value) or isinf(value)):
        text = f"{value:.6e}"
        if float(text) == value:
            return text
    return f"0x{raw:016X}"
