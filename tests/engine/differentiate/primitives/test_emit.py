"""Expressions of the rule tables as instructions, run as machine code against Python's own maths."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
import scipy.special
from analysed import facts_of

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.differentiate.primitives.emit import Emitter
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.intrinsics import type_suffix
from irgrad.engine.ir.model import Block, Value
from irgrad.engine.ir.printer import to_text

EMPTY = "define void @f(ptr %p) {\n  ret void\n}\n"


def _run(type_: ty.Type, dtype: Any, arguments: list[Any], build: Any, integers: int = 0) -> Any:
    """Build an expression of arguments of one type (the last `integers` are i32) and evaluate it."""
    facts = facts_of(EMPTY, "f", {0})
    unit = Unit(facts.module, facts.root, facts, Request("f", "jvp"))
    target = unit.new_function("expression", ty.function(ty.VOID, (ty.PTR,)))
    target.head = ""
    block = Block("entry")
    block.function = target
    target.blocks.append(block)
    b = Builder(block)
    size = ty.size_of(type_)
    values: list[Value] = []
    for i in range(len(arguments)):
        kind = ty.I32 if i >= len(arguments) - integers else type_
        values.append(b.load(kind, b.gep(ty.I8, target.args[0], (i + 1) * max(size, 16)), 4))
    b.store(build(Emitter(unit, b, type_), *values), target.args[0], 4)
    b.ret()
    memory = np.zeros((len(arguments) + 1) * max(size, 16), np.uint8)
    for i, argument in enumerate(arguments):
        raw = np.asarray(argument, np.int32 if i >= len(arguments) - integers else dtype).tobytes()
        at = (i + 1) * max(size, 16)
        memory[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
    name = target.name or ""
    compile_module(to_text(unit.module), [name], cache=False).function(name, None, ctypes.c_void_p)(memory.ctypes.data)
    return memory[:size].view(dtype)


CASES = [
    ("exp", (0.7,), math.exp), ("log", (0.7,), math.log), ("sin", (0.7,), math.sin), ("cos", (0.7,), math.cos),
    ("sqrt", (0.7,), math.sqrt), ("pow", (0.7, 2.2), math.pow), ("atan2", (0.7, -2.2), math.atan2),
    ("tanh", (0.7,), math.tanh), ("fabs", (-0.7,), abs), ("copysign", (0.7, -0.0), math.copysign),
    ("floor", (-0.7,), math.floor), ("add", (0.7, 2.0), lambda a, b: a + b), ("sub", (0.7, 2.0), lambda a, b: a - b),
    ("mul", (0.7, 2.0), lambda a, b: a * b), ("div", (0.7, 2.0), lambda a, b: a / b), ("neg", (0.7,), lambda a: -a),
    ("erf", (0.7,), math.erf), ("lgamma", (3.7,), math.lgamma), ("cbrt", (0.7,), np.cbrt),
    ("j0", (0.7,), scipy.special.j0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "want"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize(("type_", "dtype", "rtol"), [(ty.F64, np.float64, 1e-15), (ty.F32, np.float32, 3e-7)])
def test_operations(
    name: str, arguments: tuple[float, ...], want: Any, type_: ty.Type, dtype: Any, rtol: float
) -> None:
    got = _run(type_, dtype, list(arguments), lambda e, *a: e.op(name, *a))
    np.testing.assert_allclose(got, [want(*arguments)], rtol=rtol)


@pytest.mark.parametrize("name", ["exp", "erf", "mul"])
def test_vectors_lane_by_lane(name: str) -> None:
    x = np.array([0.1, -0.4, 1.2, 2.0])
    got = _run(ty.vector(4, ty.F64), np.float64, [x, x] if name == "mul" else [x], lambda e, *a: e.op(name, *a))
    want = {"exp": np.exp, "erf": scipy.special.erf, "mul": np.square}[name](x)
    np.testing.assert_allclose(got, want, rtol=1e-15)


def test_half_precision_computes_in_single() -> None:
    got = _run(ty.float_("half"), np.float16, [0.7], lambda e, x: e.op("erf", x))
    np.testing.assert_allclose(got, [math.erf(float(np.float16(0.7)))], rtol=1e-3)


@pytest.mark.parametrize(("name", "want"), [("ldexp", 0.7 * 8), ("powi", 0.7**3)])
def test_integer_arguments(name: str, want: float) -> None:
    got = _run(ty.F64, np.float64, [0.7, 3], lambda e, x, n: e.op(name, x, n), integers=1)
    np.testing.assert_allclose(got, [want], rtol=1e-15)
    got = _run(ty.F64, np.float64, [0.7, 3], lambda e, x, n: e.op("mul", x, e.op("sitofp", n)), integers=1)
    np.testing.assert_allclose(got, [2.1], rtol=1e-15)


@pytest.mark.parametrize("pred", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_are_false_for_nan_except_ne(pred: str) -> None:
    def build(e: Emitter, x: Value, y: Value) -> Value:
        return e.where(e.cmp(pred, x, y), e.const(1.0), e.const(0.0))

    for x, y in ((1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (math.nan, 1.0)):
        want = {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "eq": x == y, "ne": x != y}[pred]
        assert _run(ty.F64, np.float64, [x, y], build)[0] == float(want)


def test_suffixes_of_overloads() -> None:
    types = [ty.F64, ty.F32, ty.vector(4, ty.F32), ty.I32, ty.PTR, ty.float_("bfloat"), ty.float_("x86_fp80")]
    assert [type_suffix(t) for t in types] == ["f64", "f32", "v4f32", "i32", "p0", "bf16", "f80"]
