"""Loops in parts: values to the bit whatever the numbers are, what is known in a part, which loops may be cut."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from handwritten.made import module_of

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Function, Module, Value
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.loop_parts import Part, choose, cut, may_be_cut, place_before

SOURCE = "double f(const double *x, long n, double *y) { double s = 0, h = 1; %s y[0] = h; return s; }"
NEST = "for (long i = 0; i < n; i++) for (long j = i; j < n; j++) { h = h * x[j] + x[i]; s += h; y[j] = s; }"
PLAIN = "for (long i = 0; i < n; i++) { h = h * x[i] + 0.5; s += h; y[i] = s; }"
BRANCH = "for (long i = 0; i < n; i++) { if (n > 5) h = h * x[i] + 0.5; else h = x[i] / h; s += h; y[i] = h; }"


def _outermost(body: str) -> tuple[Module, Function, Loop]:
    module = module_of(SOURCE % body, "f")
    fn = module.functions["f"]
    return module, fn, get(Loops, fn).top[0]


def _run(text: str, n: int) -> tuple[float, list[float]]:
    x, y = np.linspace(0.5, 1.5, 12), np.zeros(12)
    pointer = ctypes.POINTER(ctypes.c_double)
    call = compile_module(text, ["f"], cache=False).function("f", ctypes.c_double, pointer, ctypes.c_long, pointer)
    value = call(x.ctypes.data_as(pointer), n, y.ctypes.data_as(pointer))
    return value, list(y)


@pytest.mark.parametrize("body", [NEST, PLAIN, BRANCH])
def test_values_in_any_parts(body: str) -> None:
    whole = to_text(_outermost(body)[0])
    for at, once in itertools.product([0, 1, 4, 9], [False, True]):
        module, fn, loop = _outermost(body)
        assert may_be_cut(loop, get(Loops, fn), uses_of(fn.blocks), 100)
        zero, one, end = (ConstInt(ty.I64, k) for k in (0, at, 9))
        middle = ConstInt(ty.I64, min(at + 1, 9) if once else min(at + 3, 9))
        headers = cut(fn, loop, [Part(zero, one, {}), Part(one, middle, {}, once=once), Part(middle, end, {})])
        assert len(headers) == (2 if once else 3) and not verify_module(module)
        assert _run(to_text(module), 9) == _run(whole, 9)


@pytest.mark.parametrize("n", [3, 5, 6, 12])
def test_versions_of_a_whole_loop(n: int) -> None:
    whole = to_text(_outermost(BRANCH)[0])
    module, fn, loop = _outermost(BRANCH)
    at = place_before(fn, loop, [fn.args[1]], divides=False)
    assert at.block is fn.entry
    known: dict[Value, Value] = {fn.args[1]: ConstInt(ty.I64, 6)}
    headers = choose(fn, loop, at.icmp("eq", fn.args[1], ConstInt(ty.I64, 6)), known, {})
    assert not verify_module(module) and {loop.header for loop in get(Loops, fn).top} == set(headers)
    assert _run(to_text(module), n) == _run(whole, n)


def test_what_is_never_reached_goes() -> None:
    _, fn, loop = _outermost(BRANCH)
    n, zero, yes = fn.args[1], ConstInt(ty.I64, 0), ConstInt(ty.I1, 1)
    inside = [i for block in loop.blocks for i in block.instructions]
    choices = [i for i in inside if i.opcode == "select" or (len(i.blocks) == 2 and i.opcode == "br")]
    (condition,) = {i.operands[0] for i in choices} - {loop.latches[0].terminator.operands[0]}
    cut(fn, loop, [Part(zero, zero, {condition: yes}), Part(zero, n, {condition: yes})])
    assert not any(condition in i.operands for i in fn.instructions())
    assert all(i.opcode != "select" or i.type is not ty.F64 for block in fn.blocks for i in block.instructions)


def test_loops_with_other_ends() -> None:
    _, fn, loop = _outermost("for (long i = 0; i < n; i++) { if (x[i] > 3) break; s += x[i]; }")
    assert not may_be_cut(loop, get(Loops, fn), uses_of(fn.blocks), 100)
    _, fn, loop = _outermost(PLAIN)
    loops, users = get(Loops, fn), uses_of(fn.blocks)
    assert may_be_cut(loop, loops, users, 100) and not may_be_cut(loop, loops, users, 2)
