"""Kernels that report failure: the status in signatures and tables, runs, derivatives and batches that raise."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.signature.status import sentence, status_table

SOURCE = r"""
#include <math.h>
int solve(const double *a, const double *b, double *x, int n) {   /* elimination without pivoting */
    double m[64];
    if (n > 8) return 2;
    for (int i = 0; i < n * n; i++) m[i] = a[i];
    for (int i = 0; i < n; i++) x[i] = b[i];
    for (int k = 0; k < n; k++) {
        if (fabs(m[k * n + k]) < 1e-12) return 1;
        for (int i = k + 1; i < n; i++) {
            double f = m[i * n + k] / m[k * n + k];
            for (int j = k; j < n; j++) m[i * n + j] -= f * m[k * n + j];
            x[i] -= f * x[k];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) x[i] -= m[i * n + j] * x[j];
        x[i] /= m[i * n + i];
    }
    return 0;
}
void root(double x, double *y, long *info) { *info = x < 0 ? -7 : 0; *y = sqrt(x); }
double square(double x) { return x * x; }
int valid(const double *x, int n) { for (int i = 0; i < n; i++) if (x[i] < 0) return i + 1; return 0; }
"""
ERRORS = {1: "matrix is singular", 2: 'too large: "n" is > 8, 100 %'}
GOOD, BAD, RIGHT = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 2.0])


@cache
def library() -> Any:
    return irgrad.load(SOURCE)


def solver() -> Any:
    return library().kernel("solve", "i32(f64[n,n] a, f64[n] b, out f64[n] x, i32 n)", errors=ERRORS)


def root() -> Any:
    return library().kernel("root", "void(f64 x, out f64 y, status i64 info)")


def test_a_status_is_no_output() -> None:
    kernel = solver()
    assert kernel.output_names == ("x",) and str(kernel.signature).startswith("status i32(")
    np.testing.assert_allclose(kernel(GOOD, RIGHT), np.linalg.solve(GOOD, RIGHT))
    assert irgrad.Signature(str(kernel.signature)) == kernel.signature
    assert root()(4.0) == 2.0 and root().output_names == ("y",)


def test_another_status_than_0_is_an_error_with_its_message() -> None:
    with pytest.raises(irgrad.KernelError) as caught:
        solver()(BAD, RIGHT)
    error = caught.value
    assert error.what == "`solve` failed with status 1: matrix is singular" and error.status == 1
    assert isinstance(error, irgrad.IRGradError)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.what, copy.status, copy.samples) == (error.what, 1, ())
    with pytest.raises(irgrad.KernelError, match='status 2: too large: "n" is > 8, 100 %'):
        solver()(np.eye(9), np.ones(9))
    with pytest.raises(irgrad.KernelError, match="`root` failed with status -7\n"):
        root()(-1.0)


def test_derivatives_raise_as_well_and_are_right_where_they_do_not() -> None:
    kernel, ones, inverse = solver(), np.ones(2), np.linalg.inv(GOOD)
    x = kernel(GOOD, RIGHT)
    derivatives = {
        "jvp": lambda a: engine.jvp(kernel, (a, RIGHT), (np.eye(2), ones))[1],
        "vjp": lambda a: engine.vjp(kernel, a, RIGHT, wrt="b")[1](ones),
        "jacfwd": lambda a: engine.jacfwd(kernel, wrt="b")(a, RIGHT),
        "jacrev": lambda a: engine.jacrev(kernel, wrt="b")(a, RIGHT),
        "multi_jvp": lambda a: engine.multi_jvp(kernel, (a, RIGHT), (None, np.eye(2)))[1],
    }  # fmt: skip
    wanted = {"jvp": inverse @ (ones - x), "vjp": inverse.T @ ones, "jacfwd": inverse, "jacrev": inverse,
              "multi_jvp": inverse.T}  # fmt: skip
    for name, derivative in derivatives.items():
        np.testing.assert_allclose(derivative(GOOD), wanted[name], atol=1e-14, err_msg=name)
        with pytest.raises(irgrad.KernelError, match="matrix is singular"):
            derivative(BAD)


def test_gradients_without_the_value_raise() -> None:
    gradient = engine.grad(root())
    assert gradient(4.0) == 0.25
    with pytest.raises(irgrad.KernelError, match="-7"):
        gradient(-4.0)
    prepared = gradient.prepare(-4.0)
    with pytest.raises(irgrad.KernelError, match="-7"):
        prepared()
    with pytest.raises(irgrad.KernelError, match="-7"):
        engine.hvp(root(), (-4.0,), 1.0)


@pytest.mark.parametrize("count", [3, 100])
def test_batches_name_the_samples_that_failed(count: int) -> None:
    many = np.stack([GOOD, 2 * GOOD, BAD] * count)
    with pytest.raises(irgrad.KernelError) as caught:
        engine.batch(solver())(many, RIGHT)
    assert caught.value.samples == tuple(range(2, 3 * count, 3)) and caught.value.status == 1
    assert "matrix is singular (samples 2, 5, 8" in caught.value.what
    x = np.arange(1.0, count + 1)
    np.testing.assert_allclose(engine.batch_grad(root())(x), 0.5 / np.sqrt(x))
    assert engine.batch(root(), reduce="sum")(x) == pytest.approx(np.sqrt(x).sum())
    with pytest.raises(irgrad.KernelError, match=r"status -7 \(sample 1\)"):
        engine.batch_grad(root())(np.where(x == 2, -1, x))


def test_a_kernel_may_return_nothing_but_its_status() -> None:
    kernel = library().kernel("valid", "status i32(f64[n] x, i32 n)")
    assert kernel(np.ones(3)) is None
    with pytest.raises(irgrad.KernelError, match="`valid` failed with status 2\n"):
        kernel(np.array([1.0, -1.0]))


def test_what_messages_mean_does_not_change_the_code() -> None:
    same = library().kernel("solve", "status i32(f64[n,n] a, f64[n] b, out f64[n] x, i32 n)")
    assert same.primal.key == solver().primal.key
    assert same.content_digest != solver().content_digest


@pytest.mark.parametrize(("errors", "message"), [
    ("singular", "`errors` is no table"), ({0: "fine"}, "`errors` has a message for 0"),
    ({"1": "x"}, "`errors` maps '1' to 'x'"), ({1: None}, "`errors` maps 1 to None"),
    ({True: "x"}, "`errors` maps True to 'x'"), ({1 << 64: "x"}, "`errors` maps"),
])  # fmt: skip
def test_bad_tables_are_refused(errors: Any, message: str) -> None:
    with pytest.raises(irgrad.SignatureError, match=message):
        status_table(errors)


def test_errors_without_a_status_are_refused() -> None:
    with pytest.raises(irgrad.SignatureError, match="`square` returns no status"):
        library().kernel("square", errors={1: "negative"})
    with pytest.raises(irgrad.SignatureError, match="a status that is no integer"):
        irgrad.Signature("status f64(f64 x)")
    with pytest.raises(irgrad.SignatureError, match="a status that is not one integer"):
        irgrad.Signature("void(f64 x, status i32[n] info, i32 n)")
    with pytest.raises(irgrad.SignatureError, match="two statuses"):
        irgrad.Signature("status i32(f64 x, status i32 info)")


def test_sentences() -> None:
    table = status_table({3: "too steep", -1: "no memory"})
    assert table == ((-1, "no memory"), (3, "too steep"))
    assert sentence("f", 3, table) == "`f` failed with status 3: too steep"
    assert sentence("f", 4, table) == "`f` failed with status 4"
