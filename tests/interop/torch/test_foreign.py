"""A function of a source file as a function of torch, in one line."""

from __future__ import annotations

import pytest
from torch_kernels import torch

import irgrad


def test_a_file_a_name_a_tensor_in_a_gradient_out(tmp_path):
    (tmp_path / "test.c").write_text("double f(double x) { return x * x * x; }\n"
                                     "double sum(const double *x, long n) { double s = 0; "
                                     "for (long i = 0; i < n; i++) s += x[i] * x[i]; return s; }\n")  # fmt: skip
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    irgrad.torch.foreign(tmp_path / "test.c", "f")(x).backward()
    assert x.grad == 12
    total = irgrad.torch.foreign(str(tmp_path / "test.c"), "sum", "f64(f64[n] x, i64 n)", opt="O1")
    assert torch.func.grad(total)(torch.ones(3, dtype=torch.float64)).tolist() == [2, 2, 2]


def test_statuses_and_signatures_are_those_of_a_kernel():
    failing = irgrad.torch.foreign("int f(double x) { return x < 0; }\n", "f", "i32(f64 x)", errors={1: "negative"})
    with pytest.raises(irgrad.KernelError, match="negative"):
        failing(torch.tensor(-1.0, dtype=torch.float64))
    with pytest.raises(irgrad.SignatureError):
        irgrad.torch.foreign("double f(const double *x) { return *x; }\n", "f")
