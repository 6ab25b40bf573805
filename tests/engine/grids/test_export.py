"""Gradients as kernels of a device: parameters in order, shared arguments, the header of a launch."""

from __future__ import annotations

from typing import Any

import pytest

import irgrad
from irgrad import engine
from irgrad.engine.grids.export import arranged, gradient_grid, gradient_header
from irgrad.rules.errors import SignatureError

SOURCE = r"""
#include <math.h>
double f(const double *x, const float *w, double a, int n, double *y) {
  double s = 0;
  for (int i = 0; i < n; i++) { y[i] = a * x[i] * w[i]; s += sin(y[i]); }
  return s;
}
"""


def _gradient() -> Any:
    kernel = irgrad.load(SOURCE).kernel("f", "f64(f64[n] x, f32[n] w, f64 a, i32 n, out f64[n] y)")
    return engine.grad(kernel, wrt=("x", "a")).valued()


def test_parameters_are_the_arguments_with_their_gradients() -> None:
    parameters, _ = arranged(_gradient(), ())
    assert [p.name for p in parameters] == ["x", "x_grad", "w", "a", "a_grad", "n", "y", "value"]
    assert [p.name for p in parameters if p.by_value] == ["n"]
    shared, _ = arranged(_gradient(), ("w",))
    assert [p.name for p in shared] == [p.name for p in parameters]


def test_the_header_says_how_to_launch() -> None:
    header = gradient_header(_gradient(), "f_grad", "sm_90", ("w",), "16*n bytes")
    for row in ("x: [samples][n]", "w: all samples share it: [n]", "a: [samples]", "y: [samples][n]",
                "a sample needs 16*n bytes", "for sm_90"):
        assert row in header
    assert "const double *x, double *x_grad, const float *w, const double *a, double *a_grad, int32_t n," in header
    assert 'extern "C" __global__ void f_grad(' in header and "tape_bytes);" in header


def test_the_kernel_has_those_parameters() -> None:
    text = gradient_grid(_gradient(), "f_grad", ("w",))
    assert ("define ptx_kernel void @f_grad(ptr noalias %x, ptr noalias %x_grad, ptr noalias %w, ptr noalias %a, "
            "ptr noalias %a_grad, i32 %n, ptr noalias %y, ptr noalias %value, i64 %samples, ptr %tape, "
            "i64 %tape_bytes)") in text


def test_arguments_that_cannot_be_shared() -> None:
    with pytest.raises(SignatureError, match="no argument is named `q`"):
        gradient_grid(_gradient(), "f_grad", ("q",))
    with pytest.raises(SignatureError, match="`x` is differentiated, and cannot be shared"):
        gradient_grid(_gradient(), "f_grad", ("x",))


def test_sizes_that_come_first() -> None:
    source = "double f(int n, const double *a, double q, const double *b) { double s = 0; " \
        "for (int i = 0; i < n; i++) s += a[i] * a[i] + q * b[i]; return s; }\n"  # fmt: skip
    gradient = engine.grad(irgrad.load(source).kernel("f", "f64(i32 n, f64[n] a, f64 q, f64[n] b)"), wrt=("b", "q"))
    parameters, _ = arranged(gradient.valued(), ())
    assert [p.name for p in parameters] == ["n", "a", "q", "q_grad", "b", "b_grad", "value"]
    text = gradient_grid(gradient, "g")
    assert "ptr noalias %q_grad, ptr noalias %b, ptr noalias %b_grad, ptr noalias %value" in text
