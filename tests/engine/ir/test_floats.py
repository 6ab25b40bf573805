"""Float literals: every spelling that LLVM reads gives the bits that LLVM gives, and is printed as LLVM prints it."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.floats import float_text, parse_float

SPELLINGS = [
    ("double", "1.0"), ("double", "-0.0"), ("double", "1.0e-1"), ("double", "5.0e-324"), ("double", "1.0e400"),
    ("double", "0x7FF0000000000001"), ("double", "0x3FF"), ("double", "0x7FF8000000000000"), ("double", "1."),
    ("double", "123456789.0"), ("double", "0.1e1"), ("double", "3.141592653589793"),
    ("float", "0.5"), ("float", "0x3FB99999A0000000"), ("float", "0x7FF8000000000000"), ("float", "0x7FF4000000000000"),
    ("float", "0xFFF0000000000000"), ("float", "0x36A0000000000000"),
    ("half", "1.0"), ("half", "0xH3C01"), ("half", "0xH7E00"), ("half", "0x3FF8000000000000"), ("half", "0xH3C"),
    ("bfloat", "0xR3F80"), ("bfloat", "1.5"), ("bfloat", "0xR7FC0"),
    ("x86_fp80", "0xK3FFF8000000000000000"), ("x86_fp80", "0xKFFFFC000000000000000"),
    ("fp128", "0xL00000000000000004000000000000000"), ("ppc_fp128", "0xM3FF00000000000000000000000000001"),
]  # fmt: skip
REFUSED = [
    ("float", "0.1"), ("float", "0x3FB999999999999A"), ("half", "0.1"), ("double", "1"), ("x86_fp80", "1.5"),
    ("fp128", "0xK3FFF8000000000000000"), ("half", "0xR3F80"), ("float", "0xH3C00"),
]  # fmt: skip


def as_llvm_prints(kind: str, token: str) -> str:
    text = str(llvm.parse_assembly(f"@x = global {kind} {token}", llvm.create_context()))
    return next(line for line in text.splitlines() if line.startswith("@x")).split(" ")[-1]


@pytest.mark.parametrize(("kind", "token"), SPELLINGS)
def test_spelling(kind: str, token: str) -> None:
    bits = parse_float(ty.float_(kind), token)
    assert bits is not None
    # Through LLVM, for it prints subnormal numbers with a digit less.
    assert as_llvm_prints(kind, float_text(ty.float_(kind), bits)) == as_llvm_prints(kind, token)
    assert parse_float(ty.float_(kind), float_text(ty.float_(kind), bits)) == bits


@pytest.mark.parametrize(("kind", "token"), REFUSED)
def test_what_llvm_refuses_is_refused(kind: str, token: str) -> None:
    assert parse_float(ty.float_(kind), token) is None
    with pytest.raises(RuntimeError):
        as_llvm_prints(kind, token)


def test_newer_spelling() -> None:
    assert parse_float(ty.F64, "f0x3FF0000000000000") == 0x3FF0000000000000
    assert parse_float(ty.F32, "-f0x3F800000") == 0xBF800000
    assert parse_float(ty.HALF, "f0x13C00") is None
