"""Products of sums as sums of products: the same numbers, and linear forms where there were none."""

from __future__ import annotations

import ctypes
import itertools

import pytest

from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.enzyme.products import distribute
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read

PRODUCTS = {
    "volume": "%r = add i64 %i, %a\n  %s = mul i64 %r, %b\n  %t = add i64 %s, %i\n  %u = mul i64 %t, %c",
    "difference": "%r = mul i64 %a, %i\n  %s = sub i64 %r, %c\n  %t = mul i64 %b, %s\n  %u = mul i64 %t, %a",
    "constants": "%r = sub i64 %i, 3\n  %s = mul i64 %r, %a\n  %t = add i64 %s, 5\n  %u = mul i64 7, %t",
    "shared": "%r = mul i64 %i, %b\n  %s = add i64 %r, %i\n  %t = mul i64 %s, %a\n  %u = add i64 %t, %s",
}
TEXT = """
define i64 @f(i64 %n, i64 %a, i64 %b, i64 %c) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %total = phi i64 [ 0, %entry ], [ %sum, %loop ]
  {}
  %mixed = mul i64 %total, 31
  %sum = add i64 %mixed, %u
  %next = add nuw nsw i64 %i, 1
  %over = icmp eq i64 %next, %n
  br i1 %over, label %out, label %loop
out:
  ret i64 %sum
}}
"""


def _made(name: str) -> Function:
    module = read(TEXT.format(PRODUCTS[name]), roots=["f"])
    distribute(module.functions["f"])
    return module.functions["f"]


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_same_numbers(name: str) -> None:
    module = read(TEXT.format(PRODUCTS[name]), roots=["f"])
    texts = [to_text(module)]
    distribute(module.functions["f"])
    texts.append(to_text(module))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
    kept = [compile_module(text, ["f"]) for text in texts]
    for given in itertools.product((1, 4), (0, -2, 9), (3, 2**61), (-5, 1)):
        one, two = (kind(made.address("f"))(*given) for made in kept)
        assert one == two, given


@pytest.mark.parametrize("name", PRODUCTS)
def test_linear_forms(name: str) -> None:
    fn = _made(name)
    sum_ = next(instr for instr in fn.instructions() if instr.name == "sum")
    form = Induction(fn).form(sum_.operands[1])
    assert form.loops() and not any(getattr(symbol, "opcode", "") == "phi" for symbol in form.terms)
