"""Subscripts in `int` keep their form: what is widened, what is not, and that both give the same numbers."""

from __future__ import annotations

import ctypes
import random

import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.normalise.widen_indices import widen_indices

TEXT = """define i64 @f(i32 %i, i32 %d, i32 %j) {
  %m = mul nsw i32 %i, %d
  %s = add nsw i32 %m, %j
  %t = sub nsw i32 %s, 7
  %x = sext i32 %t to i64
  ret i64 %x
}
"""


def test_the_extension_moves_to_the_operands() -> None:
    lines = [line.strip() for line in widen_indices(TEXT).splitlines()]
    assert "%x = sub nsw i64 %irgrad.wide.4, 7" in lines
    assert "%irgrad.wide.2 = mul nsw i64 %irgrad.wide.0, %irgrad.wide.1" in lines
    assert "nuw nsw i64" not in widen_indices(TEXT.replace("sub nsw", "sub nuw nsw"))  # negative numbers are large ones
    assert "%irgrad.wide.0 = sext i32 %i to i64" in lines


@pytest.mark.parametrize("text", [
    TEXT.replace("sub nsw", "sub"), TEXT.replace("%x = sext", "%x = zext"), TEXT.replace("sub nsw", "xor"),
])  # fmt: skip
def test_what_may_wrap_stays(text: str) -> None:
    assert widen_indices(text) == text


def test_shared_operands_do_not_grow_without_bound() -> None:
    chain = "".join(f"  %a{n + 1} = add nsw i32 %a{n}, %a{n}\n" for n in range(30))
    text = f"define i64 @f(i32 %a0) {{\n{chain}  %x = sext i32 %a30 to i64\n  ret i64 %x\n}}\n"
    assert widen_indices(text).count("\n") < text.count("\n") + 100


def test_the_numbers_are_the_same() -> None:
    rng = random.Random(5)
    units = [compile_module(text, ["f"], cache=False) for text in (TEXT, widen_indices(TEXT))]
    calls = [unit.function("f", ctypes.c_int64, *[ctypes.c_int32] * 3) for unit in units]
    for _ in range(200):
        i, d, j = rng.randint(-30000, 30000), rng.randint(-30000, 30000), rng.randint(-(10**6), 10**6)
        assert [call(i, d, j) for call in calls] == [i * d + j - 7] * 2
