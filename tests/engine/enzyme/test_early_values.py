"""Values of a function that are known where another one with the same arguments begins."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.engine.analyses.evolution import trips
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.enzyme.early_values import EarlyValues, UnknownError
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read

TEXT = """
define void @f(ptr %x, ptr %n) {
  %count = load i64, ptr %n
  %sum = add nsw i64 %count, 3
  %twice = mul nuw nsw i64 %sum, 2
  %other = load i64, ptr %x
  %late = add i64 %other, 1
  %third = sdiv i64 %sum, 3
  %share = sdiv i64 100, %sum
  %small = trunc i64 %sum to i8
  ret void
}
"""


def _asked(name: str) -> Module:
    """A module of `i64 @g(ptr, ptr)`, which returns a value of @f plus 1."""
    module = read(TEXT, roots=["f"])
    fn = module.functions["f"]
    value = next(instr for instr in fn.instructions() if instr.name == name)
    made = Function("g", ty.function(ty.I64, (ty.PTR, ty.PTR)))
    made.blocks = [Block("entry")]
    at = Builder(made.blocks[0])
    early = EarlyValues(at, made.args, frozenset([1]))
    expr = early.expr(trips.make("add", ("value", value), trips.const(1)))
    at.ret(trips.TripCount(expr).emit(at))
    module.functions = {"g": made}
    return module


def test_arithmetic_of_numbers_is_computed_there() -> None:
    text = to_text(_asked("twice"))
    assert "nsw" not in text and "nuw" not in text  # what was promised where it is used
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    assert function(compile_module(text, ["g"]).address("g"))(None, ctypes.byref(ctypes.c_int64(7))) == 21


def test_quotients_by_a_constant_are_too() -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    for name, given, want in (("third", 7, 4), ("small", 133, -119)):
        made = compile_module(to_text(_asked(name)), ["g"])
        assert function(made.address("g"))(None, ctypes.byref(ctypes.c_int64(given))) == want


@pytest.mark.parametrize("name", ["late", "share"])
def test_memory_that_somebody_may_write_and_what_may_trap_is_not(name: str) -> None:
    with pytest.raises(UnknownError):
        _asked(name)
