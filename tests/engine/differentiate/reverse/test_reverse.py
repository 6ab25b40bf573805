"""The contract of reverse mode: shadows are the adjoint of the memory, before and after."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient, make

SQUARES = "void f(double *x, long *n, double *y) { for (long i = 0; i < *n; i++) y[i] = x[i] * x[i]; }"
IN_PLACE = "void f(double *x, long *n) { for (long i = 1; i < *n; i++) x[i] = x[i - 1] * x[i]; }"


def test_inputs_accumulate_and_outputs_are_consumed() -> None:
    made = make(SQUARES, "f", "reverse", ["dup", "const", "dup"])
    x, dx = np.array([1.0, 2.0, 3.0]), np.full(3, 100.0)
    y, dy = np.zeros(3), np.array([1.0, 10.0, 0.5])
    made(x, dx, np.array([3]), y, dy)
    assert y.tolist() == [1, 4, 9]
    assert dx.tolist() == [102, 140, 103]
    assert not dy.any(), "what was overwritten had no influence before"
    made(x, dx, np.array([3]), y, dy)
    assert dx.tolist() == [102, 140, 103], "no cotangent, no gradient"


def test_an_inout_argument_holds_the_cotangent_first_and_the_gradient_after() -> None:
    made = make(IN_PLACE, "f", "reverse", ["dup", "const"])
    x, w = np.array([1.1, 0.7, -2.0, 0.4]), np.array([0.3, -1.0, 2.0, 0.9])
    value, shadow = x.copy(), w.copy()
    made(value, shadow, np.array([4]))
    np.testing.assert_allclose(value, np.cumprod(x), rtol=1e-15)
    jacobian = np.array([[np.cumprod(x)[i] / x[j] if j <= i else 0 for j in range(4)] for i in range(4)])
    np.testing.assert_allclose(shadow, jacobian.T @ w, rtol=1e-14)


@pytest.mark.parametrize("strict", [False, True])
def test_both_modes_give_one_number(strict: bool) -> None:
    """<w, J v> = <J^T w, v> to rounding."""
    source = """
    void f(double *x, long *n, double *y) {
        for (long i = 0; i < *n; i++) {
            double s = x[i];
            for (long j = 0; j < i; j++) s += sin(x[j] * s) / (1 + y[j] * y[j]);
            y[i] = s > 0 ? s * x[0] : exp(s);
        }
    }"""
    rng = np.random.default_rng(0)
    x, v, w = rng.uniform(-1, 1, (3, 12))
    n = np.array([12])
    forward = make(source, "f", "forward", ["dup", "const", "dup"], strict_fp=strict)
    y, ty = np.zeros(12), np.zeros(12)
    forward(x, v, n, y, ty)
    reverse = make(source, "f", "reverse", ["dup", "const", "dup"], strict_fp=strict)
    y2, gx, gy = np.zeros(12), np.zeros(12), w.copy()
    reverse(x, gx, n, y2, gy)
    np.testing.assert_array_equal(y, y2)
    assert abs(w @ ty - gx @ v) < 1e-13 * max(1, np.abs(w * ty).sum())


def test_strict_derivatives_keep_the_order_of_sums() -> None:
    text = make(SQUARES, "f", "reverse", ["dup", "const", "dup"], strict_fp=True).text
    assert "reassoc" not in text[text.index("@f.vjp") :].split("\n}\n")[0]
    assert "reassoc" in make(SQUARES, "f", "reverse", ["dup", "const", "dup"]).text


def test_a_constant_argument_gets_no_derivative_code() -> None:
    source = "void f(double *x, double *w, double *o) { *o = x[0] * w[0] + x[0] * exp(w[1]); }"
    (dx, _), made = gradient(source, "f", "dcd", np.array([2.0]), np.array([3.0, 0.0]), OUT)
    assert dx.tolist() == [4.0]
    assert len(made.function.args) == 5


def test_a_function_that_never_returns_normally() -> None:
    source = "void f(double *x, double *o) { *o = x[0]; if (x[0] < 0) abort(); *o = x[0] * x[0]; }"
    (dx, _), _made = gradient(source, "f", "dd", np.array([3.0]), OUT)
    assert dx.tolist() == [6.0]


def test_divisions_by_one_root_share_its_reciprocal() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) s += x[0] / sqrt(x[i] * x[i] + 1);
        *o = s;
    }"""
    x, n = np.linspace(0.2, 2, 30), np.array([30])
    for strict in (False, True):
        (dx, _), made = gradient(source, "f", "dcd", x, n, OUT, strict_fp=strict, discard=[2])
        want = -x[0] * x * (x * x + 1) ** -1.5
        want[0] += ((x * x + 1) ** -0.5).sum()
        np.testing.assert_allclose(dx, want, rtol=1e-13)
        reverse = [i for b in made.function.blocks if (b.name or "").startswith("r.") for i in b.instructions]
        assert (sum(i.opcode == "fdiv" for i in reverse) == 1) != strict


def test_a_quotient_in_front_of_a_loop_is_not_made_one_in_each_iteration() -> None:
    source = """
    void f(double *x, double *y, long *n, double *o) {
        double s = 0, t = 0;
        for (long i = 0; i < *n; i++) s += x[i] * y[i];
        for (long i = 0; i < *n; i++) t += x[i] / (1 + y[i]);
        *o = t + log(s);
    }"""
    x, y, n = np.linspace(0.2, 2, 30), np.linspace(1, 3, 30), np.array([30])
    (dx, _), made = gradient(source, "f", "dccd", x, y, n, OUT, discard=[3])
    np.testing.assert_allclose(dx, 1 / (1 + y) + y / (x @ y), rtol=1e-13)
    reverse = [i for b in made.function.blocks if (b.name or "").startswith("r.") for i in b.instructions]
    flags = ["reassoc" in i.flags for i in reverse if i.opcode == "fdiv"]
    assert sorted(flags) == [False, True], "that of the logarithm and that of the second loop"
