"""Internal procedures of Fortran that are passed on as arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from toolchains import needs_flang

import irgrad
from irgrad import engine
from irgrad.interop.loaders.fortran_internal import bound

X = np.array([0.7, 1.2, 0.9, 1.1])


@needs_flang
def test_they_see_the_variables_of_the_one_that_they_stand_in() -> None:
    kernel = irgrad.load(Path(__file__).with_name("internal.f90")).kernel("m::g", "f64(f64[n] x)")
    wave = _simpson(lambda t: np.sin(X[0] * t) * np.exp(-X[1] * t * t), X[2], 10)
    np.testing.assert_allclose(kernel(X), wave + _simpson(_square, X[1], 6), rtol=1e-12)
    assert engine.check(kernel, X).ok
    assert engine.check(kernel, X[::-1].copy()).ok


def _square(t: float) -> float:
    return X[3] * _simpson(lambda s: np.cos(X[0] * s), t, 4)


def _simpson(f, b, n):  # type: ignore[no-untyped-def]
    weights = [1, *(4 if i % 2 else 2 for i in range(1, n)), 1]
    return b / n / 3 * sum(w * f(i * b / n) for i, w in enumerate(weights))


@needs_flang
def test_two_activations_at_a_time_are_refused() -> None:
    """Knuth's `man or boy`: a procedure of an activation is called while another one runs."""
    kernel = irgrad.load(Path(__file__).with_name("internal.f90")).kernel("m::man", "f64(f64[n] x)")
    with pytest.raises(irgrad.KernelError, match=r"internal procedure of a recursive one.*make it a module procedure"):
        engine.grad(kernel)(X)


HOST = """
define void @host(ptr %0) {{
  %2 = alloca [32 x i8], align 1
  call void @llvm.init.trampoline(ptr nonnull %2, ptr nonnull @inner, ptr nonnull %0)
{taken}  {call}
  ret void
}}
define internal double @inner(ptr %0, ptr nest noalias %1) {{
  ret double 0.0
}}
declare void @llvm.init.trampoline(ptr, ptr, ptr)
declare ptr @llvm.adjust.trampoline(ptr)
declare void @other(ptr)
"""
TAKEN = "  %3 = call ptr @llvm.adjust.trampoline(ptr nonnull %2)\n"


def test_what_is_passed_on_is_a_function_of_its_own() -> None:
    made = bound(HOST.format(taken=TAKEN, call="call void @other(ptr %3)"))
    assert "trampoline" not in made and "nest" not in made
    assert "store ptr %0, ptr @inner.frame" in made and "store ptr %inner.before, ptr @inner.frame\n  ret void" in made
    assert "call double @inner(ptr %0, ptr %irgrad.frame)" in made
    again = bound(HOST.format(taken=TAKEN, call="call void @host(ptr %0)"))
    assert "@_QQirgradNest" in again and "call double @inner" not in again
    unused = bound(HOST.format(taken="", call="call void @host(ptr %0)"))
    assert "trampoline" not in unused and "frame" not in unused
    assert bound("define void @f() {\n  ret void\n}\n") == "define void @f() {\n  ret void\n}\n"
