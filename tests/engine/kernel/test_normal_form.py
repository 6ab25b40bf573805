"""Normal forms and entries are IR that LLVM accepts."""

from __future__ import annotations

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.kernel.normal_form import entry_name, entry_text, normal_name, normal_text
from irgrad.engine.signature.signature import Signature

CASES = {
    "f64(f64[n] x, f64 a, i64 n)": "double @f(ptr, double, i64)",
    "void(inout f32[2] x, u8 k, i16 m)": "void @f(ptr, i8 zeroext, i16 signext)",
    "bool(bool b)": "i1 @f(i1 zeroext)",
    "bf16(f16 h, bf16 b)": "bfloat @f(half, bfloat)",
    "void()": "void @f()",
}


@pytest.mark.parametrize("text", CASES)
def test_llvm_accepts_them(text: str) -> None:
    signature = Signature(text)
    slots = len(signature.parameters) + (signature.returns is not None)
    module = f"declare {CASES[text]}\n{normal_text('f', signature)}{entry_text(normal_name('f'), slots)}"
    functions = {f.name for f in parse(module).functions}
    assert {"f", "f.normal", "irgrad.entry.f.normal"} == functions
    assert entry_name("f.normal") in functions


def test_every_pointer_is_noalias() -> None:
    text = normal_text("f", Signature("f64(f64[n] x, f64 a, i64 n)"))
    assert text.splitlines()[0].count("ptr noalias") == 4


def test_numbers_are_said_to_be_no_addresses() -> None:
    """Integers that are arguments of their own; an array of integers may hold addresses."""
    text = normal_text("f", Signature("f64(i64[n] x, f64 a, i64 n, bool b)")).splitlines()[0]
    assert ['"irgrad-number"' in argument for argument in text.split(", ")[:4]] == [False, False, True, True]
    assert [f'"irgrad-by-value" %a{i}' in text for i in range(4)] == [False, False, True, True]


def test_floats_are_said_to_be_floats() -> None:
    text = normal_text("f", Signature("f64(i64[n] x, f64 a, f32[n] y, i64 n)")).splitlines()[0]
    assert [f'"irgrad-float" %a{i}' in text for i in range(4)] == [False, True, True, False]
