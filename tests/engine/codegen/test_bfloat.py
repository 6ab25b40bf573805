"""Conversions to bfloat16 against ml_dtypes, bit for bit."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from irgrad.engine.codegen.bfloat import BFLOAT_TEXT
from irgrad.engine.codegen.jit import compile_module

WRAPPERS = """
define void @convert.f32(ptr %in, ptr %out) {
  %x = load float, ptr %in
  %y = call bfloat @__truncsfbf2(float %x)
  store bfloat %y, ptr %out
  ret void
}

define void @convert.f64(ptr %in, ptr %out) {
  %x = load double, ptr %in
  %y = call bfloat @__truncdfbf2(double %x)
  store bfloat %y, ptr %out
  ret void
}
"""


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_rounds_to_nearest_even(dtype: str) -> None:
    unit = compile_module(BFLOAT_TEXT + WRAPPERS, ["convert.f32", "convert.f64"])
    convert = unit.function(f"convert.{dtype}", None, ctypes.c_void_p, ctypes.c_void_p)
    numpy_type = {"f32": np.float32, "f64": np.float64}[dtype]
    rng = np.random.default_rng(3)
    values = np.concatenate([
        rng.standard_normal(500) * 10.0 ** rng.integers(-30, 30, 500),
        [0.0, -0.0, np.inf, -np.inf, 3.4e38, -3.4e38, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1e-40, 1 + 2.0**-8 + 2.0**-9],
    ]).astype(numpy_type)  # fmt: skip
    got = np.zeros(1, np.uint16)
    for value in values:
        cell = np.array([value])
        convert(cell.ctypes.data, got.ctypes.data)
        want = np.array(np.float32(value)).astype(ml_dtypes.bfloat16)
        assert got[0] == want.view(np.uint16), value


def test_double_is_rounded_once() -> None:
    """1 + 2^-8 + 2^-40 lies above the tie between 1 and the next bfloat16, but in float it is the tie."""
    unit = compile_module(BFLOAT_TEXT + WRAPPERS, ["convert.f64"])
    convert = unit.function("convert.f64", None, ctypes.c_void_p, ctypes.c_void_p)
    cell, got = np.array([1 + 2.0**-8 + 2.0**-40]), np.zeros(1, np.uint16)
    convert(cell.ctypes.data, got.ctypes.data)
    assert got.view(ml_dtypes.bfloat16)[0] == np.float32(1 + 2.0**-7)


def test_nan_stays_nan() -> None:
    unit = compile_module(BFLOAT_TEXT + WRAPPERS, ["convert.f32"])
    convert = unit.function("convert.f32", None, ctypes.c_void_p, ctypes.c_void_p)
    cell, got = np.array([np.nan], np.float32), np.zeros(1, np.uint16)
    convert(cell.ctypes.data, got.ctypes.data)
    assert np.isnan(got.view(ml_dtypes.bfloat16)[0].astype(np.float32))
