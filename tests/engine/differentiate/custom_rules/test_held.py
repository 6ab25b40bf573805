"""Derivatives of numbers by lanes: held in memory while a body runs lane after lane."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.coded import coded

from irgrad.engine.differentiate.custom_rules.held import Held, lane_view
from irgrad.engine.differentiate.custom_rules.symbols import Code, Scalar
from irgrad.engine.differentiate.custom_rules.views import for_range
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value

START = np.array([1.0, 10.0, 100.0, 1000.0])


@pytest.mark.parametrize(("given", "steps"), [(False, 3), (True, 3), (True, 1)])
def test_values_of_lanes_survive_a_loop(given: bool, steps: int) -> None:
    """Each step of the loop adds to all lanes what lies there, times the number of the lane."""

    def body(code: Code, pointers: list[Value]) -> None:
        start, out = pointers
        wide = ty.vector(4, ty.F64)
        held = Held(code, ty.F64, 4, code.b.load(wide, start, align=8) if given else None)
        with for_range(code, 0, steps) as i, for_range(code, 0, 4) as lane:
            held.view[lane] = held.view[lane] + (i + 1) * (lane + 1.0)
        assert held.value.type is wide is held.type
        code.b.store(held.value, out, align=8)

    out = np.full(4, np.nan)
    coded(body, START.copy(), out)
    np.testing.assert_array_equal(out, given * START + np.arange(1.0, 5.0) * sum(range(1, steps + 1)))


def test_one_lane_is_a_number() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        held = Held(code, ty.F32, 1, None)
        assert held.type is ty.F32
        held.view[0] = held.view[0] + 2.5
        code.b.store(held.value, pointers[0])

    out = np.full(1, np.nan, np.float32)
    coded(body, out)
    assert out[0] == 2.5


def test_they_lie_on_the_stack_where_the_function_starts() -> None:
    """Not in the loop that they are asked for in."""

    def body(code: Code, pointers: list[Value]) -> None:
        with for_range(code, 0, 2):
            held = Held(code, ty.F64, 4, None)
            assert held.slot.block is code.fn.blocks[0] is not code.b.block
            assert (held.slot.opcode, held.slot.elem) == ("alloca", ty.vector(4, ty.F64))
            code.b.store(held.value, pointers[0], align=8)

    out = np.full(4, np.nan)
    coded(body, out)
    assert not out.any(), "zeros where nothing was given"


def test_lanes_are_the_last_axis_of_shadow_memory() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        rows = Scalar(code, code.b.load(ty.I64, pointers[1]))
        view = lane_view(code, pointers[0], ty.F64, (rows,), 4)
        assert view.ndim == 2 and view.lanes
        with for_range(code, 0, view.shape[0]) as i, for_range(code, 0, view.shape[1]) as lane:
            view[i, lane] = 10.0 * i + lane

    out = np.zeros((3, 4))
    coded(body, out, np.array([3]))
    np.testing.assert_array_equal(out, 10.0 * np.arange(3.0)[:, None] + np.arange(4.0))
