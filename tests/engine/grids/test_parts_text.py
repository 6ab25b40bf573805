"""The kernels of a program in parts: sums of rows in order, and the check of addresses."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.grid_text import GridParameter
from irgrad.engine.grids.parts_text import Rows, kernels_text, sums_text
from irgrad.engine.grids.regions import Column, Region
from irgrad.engine.grids.resume import Stop
from irgrad.engine.ir import types as ty
from irgrad.engine.signature.dtypes import DTYPES

ONE = """
define internal double @k.region.0.one(i64 %i, ptr %x, ptr %row, ptr %tape, i64 %t, i64 %n) {
  %p = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %p, align 8
  %o = load double, ptr %row, align 8
  %s = fadd double %o, 1.0
  store double %s, ptr %row, align 8
  ret double %v
}
define internal void @k.resume(ptr %x, ptr %state, ptr %room) { ret void }
"""
REGION = Region("k.region.0", [ty.I64, ty.PTR, ty.PTR], [Column(ty.F64), Column(ty.F64, 1, 2)])
STOP = Stop(1, "k.region.0", [(64, ty.I64), (80, ty.PTR), (96, ty.PTR)])


def _text(*, device: bool, threads: int = 5, folded: int = 2) -> str:
    rows = Rows(48, 16, threads, folded)
    x = GridParameter("x", DTYPES["f64"])
    return ONE + kernels_text("k", [x], [], ["x"], [(STOP, REGION)], rows, device=device)


@pytest.mark.parametrize("last", [0, 3, 4, 12])
def test_threads_share_and_fold(last: int) -> None:
    """Each iteration is run once, by the thread of its number; rows are added up by remainders."""
    unit = compile_module(_text(device=False), ["k_share", "k_fold"], strict_fp=True)
    kinds = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2
    x, state, room = np.arange(1.0, 20), np.zeros(32, np.int64), np.full(64, np.nan)
    state[[0, 8, 10]] = 1, last, x.ctypes.data
    state[2:5] = x.ctypes.data, state.ctypes.data, room.ctypes.data  # noted by the first launch
    given = [a.ctypes.data for a in (x, state, room, state, room)]
    for thread in (4, 0, 2, 1, 3):
        unit.function("k_share", None, *kinds)(*given, thread, 5)
    rows = room[6:16].reshape(5, 2)
    for thread in range(5):
        own = x[thread : last + 1 : 5]
        assert list(rows[thread]) == [own.sum(), len(own)]
    for thread in range(2):
        unit.function("k_fold", None, *kinds)(*given, thread, 2)
    assert rows[:2].sum(axis=0).tolist() == [x[: last + 1].sum(), last + 1]


def test_sums_of_rows() -> None:
    text = sums_text("k", "double").replace("internal ", "")
    unit = compile_module(text, ["k.total.double", "k.gather.double"], strict_fp=True)
    rows, to = np.arange(12.0).reshape(4, 3), np.array([10.0, 20])
    total = unit.function("k.total.double", ctypes.c_double, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    assert total(rows.ctypes.data, 24, 4) == 18 and total(rows.ctypes.data, 24, 2) == 3
    gather = unit.function("k.gather.double", None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    gather(to.ctypes.data, rows[0, 1:].ctypes.data, 24, 2, 4)
    assert list(to) == [10 + rows[:, 1].sum(), 20 + rows[:, 2].sum()]


def test_a_launch_with_other_addresses_traps() -> None:
    """Addresses are in memory from launch to launch: where an array has moved the launch fails."""
    text = _text(device=False)
    check = text[text.index("@k.check(") : text.index("@k.part.share")]
    assert check.count("call void @llvm.trap()") == check.count("icmp ne ptr") == 3  # x, state, room
    assert re.search(r"define void @k_next\(.*?k\.check\([^)]*i1 false\)", text, re.S)
    assert re.search(r"define void @k_first\(.*?k\.check\([^)]*i1 true\)", text, re.S)


def test_kernels_of_a_device() -> None:
    text = _text(device=True)
    assert re.findall(r"define ptx_kernel void @(\w+)\(", text) == ["k_first", "k_next", "k_share", "k_fold"]
