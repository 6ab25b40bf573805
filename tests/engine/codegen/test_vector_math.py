"""Vectorised maths goes to libmvec, stays within 4 ulp, and LLVM accepts the rewritten text."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from irgrad.engine.codegen import vector_math
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.optimise import optimise

needs_libmvec = pytest.mark.skipif(not vector_math.available(), reason="no libmvec (not x86-64 glibc)")


def _loop(call: str, scalar: str = "double", size: int = 8, *, binary: bool = False) -> str:
    """`for (i = 0; i < n; i++) o[i] = call(x[i])` as IR text, the call being `callee` with its declaration."""
    arguments = f"{scalar} %v" + (f", {scalar} %v" if binary else "")
    parameters = ", ".join([scalar] * (2 if binary else 1))
    return f"""
declare {scalar} @{call}({parameters})
define void @f(ptr noalias %x, ptr noalias %o, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds {scalar}, ptr %x, i64 %i
  %v = load {scalar}, ptr %p, align {size}
  %r = call {scalar} @{call}({arguments})
  %q = getelementptr inbounds {scalar}, ptr %o, i64 %i
  store {scalar} %r, ptr %q, align {size}
  %next = add nuw nsw i64 %i, 1
  %go = icmp ult i64 %next, %n
  br i1 %go, label %loop, label %done
done:
  ret void
}}
"""


def _run(text: str, x: np.ndarray, *, strict_fp: bool = False) -> np.ndarray:
    unit = compile_module(text, ["f"], strict_fp=strict_fp)
    pointer = ctypes.c_void_p
    function = unit.function("f", None, pointer, pointer, ctypes.c_int64)
    out = np.zeros_like(x)
    function(x.ctypes.data, out.ctypes.data, len(x))
    return out


UNARY = ["sin", "cos", "exp", "log", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp2", "log2", "log10"]
CALLS = ["erf", "erfc", "cbrt", "expm1", "log1p", "asinh", "atanh"]


@needs_libmvec
@pytest.mark.parametrize("name", UNARY + CALLS)
@pytest.mark.parametrize("bits", [64, 32])
def test_loops_are_vectorised_and_right(name: str, bits: int) -> None:
    scalar, size = ("double", 8) if bits == 64 else ("float", 4)
    call = f"llvm.{name}.f{bits}" if name in UNARY else name + ("f" if bits == 32 else "")
    text = _loop(call, scalar, size)
    symbol = f"v_{name}{'f' if bits == 32 else ''}("
    assert symbol in optimise(text, ["f"]).split("define void @f", 1)[1].split("\n}", 1)[0]
    dtype = np.float64 if bits == 64 else np.float32
    x = np.linspace(0.05, 0.95, 1003).astype(dtype)
    got = _run(text, x)
    reference = getattr(math, name, None) or {"exp2": math.exp2, "cbrt": math.cbrt}[name]
    want = np.array([reference(float(value)) for value in x])
    ulp = np.spacing(np.abs(want).astype(dtype)).astype(np.float64)
    assert np.max(np.abs(got.astype(np.float64) - want) / ulp) <= 4.5


@needs_libmvec
def test_two_arguments_and_the_function_at_odd_lengths() -> None:
    text = _loop("llvm.pow.f64", binary=True)
    for length in (1, 2, 3, 7, 8, 9, 31):
        x = np.linspace(0.5, 2.0, length)
        assert np.allclose(_run(text, x), x**x, rtol=1e-15)


def test_strict_fp_keeps_libm() -> None:
    text = _loop("llvm.sin.f64")
    assert "_ZGV" not in optimise(text, ["f"], strict_fp=True)
    x = np.linspace(-3, 3, 100)
    assert np.array_equal(_run(text, x, strict_fp=True), np.array([math.sin(value) for value in x]))


@needs_libmvec
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("scalar,bits", [("double", 64), ("float", 32)])
def test_any_vector_width_is_split_or_padded(lanes: int, scalar: str, bits: int) -> None:
    vector = f"<{lanes} x {scalar}>"
    text = f"""
declare {vector} @llvm.exp.v{lanes}f{bits}({vector})
define void @f(ptr %x, ptr %o, i64 %n) {{
  %v = load {vector}, ptr %x, align 4
  %r = call {vector} @llvm.exp.v{lanes}f{bits}({vector} %v)
  store {vector} %r, ptr %o, align 4
  ret void
}}
"""
    assert "_ZGV" in vector_math.rewrite(text)
    x = np.linspace(-1, 1, lanes).astype(np.float64 if bits == 64 else np.float32)
    assert np.allclose(_run(text, x), np.exp(x), rtol=1e-15 if bits == 64 else 5e-7)


@needs_libmvec
def test_annotation_is_valid_and_idempotent() -> None:
    text = _loop("llvm.sin.f64")
    once = vector_math.annotate(text)
    assert "vector-function-abi-variant" in once
    assert vector_math.annotate(once) == once
    parse(once)


def test_a_function_of_ones_own_is_not_replaced() -> None:
    own = "define double @erf(double %x) noinline {\n  %y = fmul double %x, 3.0\n  ret double %y\n}\n"
    text = _loop("erf").replace("declare double @erf(double)\n", own)
    assert vector_math.annotate(text) == text
    x = np.linspace(0, 1, 64)
    assert np.array_equal(_run(text, x), 3 * x)


def test_text_without_vector_maths_is_returned_as_it_is() -> None:
    text = "define double @f(double %x) {\n  ret double %x\n}\n"
    assert vector_math.rewrite(text) is text
    assert vector_math.annotate(text) is text


@needs_libmvec
def test_of_whole_programs_only_what_may_be_approximated() -> None:
    text = _loop("llvm.sin.f64")
    assert vector_math.annotate(text, "+avx2", approximate=True) == text
    free = text.replace("call double", "call afn double")
    marked = vector_math.annotate(free, "+avx2,-avx512f", approximate=True)
    assert "_ZGVdN4v_sin" in marked and "_ZGVeN8v_sin" not in marked
    assert "_ZGVd" not in vector_math.annotate(free, ",", approximate=True)  # every CPU
    parse(marked)
