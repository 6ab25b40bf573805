"""Sizes and alignments of shadows of allocations: those of the call, whatever function allocates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, gradient, make

from irgrad.engine.differentiate.shadow.allocations import allocation_alignment, allocation_bytes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction
from irgrad.engine.ir.text.reader import read

CALLS = """
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare ptr @aligned_alloc(i64, i64)
declare ptr @memalign(i64, i64)
declare ptr @_Znwm(i64)
declare ptr @_ZnwmSt11align_val_t(i64, i64)
declare ptr @irgrad.kept.new(ptr, ptr, i64, i64)
declare ptr @mystery(i64)
define void @f(i64 %n, i64 %m, i32 %k, ptr %p) {
  %malloc = call ptr @malloc(i64 %n)
  %calloc = call ptr @calloc(i64 %n, i64 %m)
  %rows = call ptr @calloc(i64 %n, i64 8)
  %realloc = call ptr @realloc(ptr %p, i64 %n)
  %aligned = call ptr @aligned_alloc(i64 64, i64 %n)
  %memalign = call ptr @memalign(i64 %m, i64 %n)
  %new = call ptr @_Znwm(i64 %n)
  %over = call ptr @_ZnwmSt11align_val_t(i64 %n, i64 32)
  %kept = call ptr @irgrad.kept.new(ptr %p, ptr %p, i64 %n, i64 128)
  %mystery = call ptr @mystery(i64 %n)
  %through = call ptr %p(i64 %n)
  ret void
}
"""
USABLE = "declare i64 @malloc_usable_size(ptr)\n"


def _sweep(text: str = CALLS) -> tuple[Any, dict[str, Any]]:
    """What stands for a sweep that copies into itself, and the values of `f` by name."""
    module = read(text)
    fn = module.functions["f"]
    values: dict[str, Any] = {str(v.name): v for v in (*fn.args, *fn.instructions())}
    sweep = SimpleNamespace(unit=SimpleNamespace(module=module), b=Builder(Block()), value=lambda value: value)
    return sweep, values


@pytest.mark.parametrize("call", ["malloc", "realloc", "aligned", "memalign", "new", "over"])
def test_as_many_bytes_as_the_call_asks_for(call: str) -> None:
    sweep, values = _sweep()
    assert allocation_bytes(sweep, values[call]) is values["n"]
    assert not sweep.b.block.instructions


@pytest.mark.parametrize(("call", "factor"), [("calloc", "m"), ("rows", 8)])
def test_or_as_many_as_two_arguments_say(call: str, factor: object) -> None:
    sweep, values = _sweep()
    size = allocation_bytes(sweep, values[call])
    assert isinstance(size, Instruction) and sweep.b.block.instructions == [size]
    first, second = size.operands
    assert (size.opcode, first) == ("mul", values["n"]) and size.flags == ()  # the product of a program may wrap
    assert (second.value if isinstance(second, ConstInt) else second.name) == factor


def test_short_numbers_have_no_sign() -> None:
    text = CALLS.replace("ptr @malloc(i64)", "ptr @malloc(i32)").replace("@malloc(i64 %n)", "@malloc(i32 %k)")
    sweep, values = _sweep(text)
    size = allocation_bytes(sweep, values["malloc"])
    assert isinstance(size, Instruction) and size.opcode == "zext" and size.type is ty.I64


@pytest.mark.parametrize("call", ["mystery", "through"])
def test_of_other_calls_nothing_is_known(call: str) -> None:
    sweep, values = _sweep()
    assert allocation_bytes(sweep, values[call]) is None


@pytest.mark.parametrize(("call", "usable"), [
    ("malloc", True), ("calloc", True), ("aligned", False), ("new", False),
])  # fmt: skip
def test_where_realloc_copies_whole_blocks_as_many_as_are_usable(call: str, usable: bool) -> None:
    sweep, values = _sweep(USABLE + CALLS)
    size = allocation_bytes(sweep, values[call])
    asked = isinstance(size, Instruction) and size.is_call and size.callee_name == "malloc_usable_size"
    assert asked is usable
    if usable:
        assert isinstance(size, Instruction) and size.args == [values[call]]


@pytest.mark.parametrize(("call", "wanted"), [
    ("malloc", 16), ("calloc", 16), ("realloc", 16), ("new", 16), ("aligned", 64), ("over", 32), ("kept", 128),
])  # fmt: skip
def test_the_alignment_of_the_call_or_of_malloc(call: str, wanted: int) -> None:
    sweep, values = _sweep()
    found = allocation_alignment(sweep, values[call])
    assert isinstance(found, ConstInt) and found.value == wanted


def test_an_alignment_that_the_program_computes_is_that_of_the_copy() -> None:
    sweep, values = _sweep()
    copy = ConstInt(ty.I64, 256)
    sweep.value = {values["m"]: copy}.__getitem__
    assert getattr(allocation_alignment(sweep, values["memalign"]), "value", None) == 256


FILLED = """
void f(double *x, long *n, double *o) {{
    double *t = {allocated};
    for (long i = 0; i < *n; i++) t[i] = x[i] * x[i];
    {more}
    double s = 0;
    for (long i = 0; i < *n; i++) s += t[i] * t[*n - 1 - i];
    *o = s;
    free(t);
}}"""
GROWN = "t = realloc(t, 2 * *n * 8); for (long i = *n; i < 2 * *n; i++) t[i] = x[i - *n];"


@pytest.mark.parametrize(("allocated", "more"), [
    ("malloc(*n * 8)", ""), ("calloc(*n, 8)", ""), ("aligned_alloc(64, (*n * 8 + 63) / 64 * 64)", ""),
    ("realloc(malloc(8), *n * 8)", ""), ("malloc(*n * 8)", GROWN),
])  # fmt: skip
def test_derivatives_through_allocated_memory(allocated: str, more: str) -> None:
    """The shadow is as long as the memory: a longer run of it would meet what lies behind."""
    source = FILLED.format(allocated=allocated, more=more)
    n = 41
    x = np.linspace(0.5, 1.5, n)
    (dx, _), _made = gradient(source, "f", "dcd", x, np.array([n]), OUT)
    want = 4 * x * (x * x)[::-1]
    np.testing.assert_allclose(dx, want, rtol=1e-13)
    forward = make(source, "f", "forward", ["dup", "const", "dup"])
    o, tangent = np.zeros(1), np.zeros(1)
    forward(x, np.ones(n), np.array([n]), o, tangent)
    np.testing.assert_allclose(tangent, [want.sum()], rtol=1e-13)


def test_the_shadow_of_calloc_has_both_factors() -> None:
    made = make(FILLED.format(allocated="calloc(*n, 8)", more=""), "f", "forward", ["dup", "const", "dup"])
    allocations = [i for i in made.function.instructions() if i.is_call and i.callee_name in ("calloc", "malloc")]
    assert len(allocations) == 2, [i.callee_name for i in allocations]
    assert isinstance(allocations[0].callee, Function)
