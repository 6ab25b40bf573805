"""Calls with ready frames: the same results, whatever else is under way."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, value_and_grad
from irgrad.engine.kernel.frames import MISSED, Calls
from irgrad.rules.errors import DTypeError, IRGradError, ShapeError

SOURCE = """
double total(const double *x, long n, double scale, int power) {
  double s = 0;
  for (long i = 0; i < n; i++) { double p = 1; for (int k = 0; k < power; k++) p *= x[i]; s += scale * p; }
  return s;
}
void step(double *x, long n, double *out, float dt) {
  for (long i = 0; i < n; i++) { out[i] = x[i]; x[i] += dt * x[(i + 1) % n]; }
}
double last(double *x, long n) { x[0] = 2 * x[n - 1]; return x[0] * x[0]; }
"""
LIBRARY = irgrad.load(SOURCE)
TOTAL = LIBRARY.kernel("total", "f64(f64[n] x, i64 n, f64 scale, i32 power)")
STEP = LIBRARY.kernel("step", "void(inout f64[n] x, i64 n, out f64[n] out, f32 dt)")
LAST = LIBRARY.kernel("last", "f64(inout f64[n] x, i64 n)")
X = np.array([0.5, 1.5, 2.0])


def test_each_call_begins_anew() -> None:
    gradient, both = grad(TOTAL, ("x", "scale")), value_and_grad(TOTAL)
    kept = []
    for n in (3, 3, 5, 3):
        x = np.linspace(0.5, 2, n)
        for scale, power in ((2.0, 3), (0.5, 2), (2.0, 3)):
            kept.append((gradient(x, scale, power), scale * power * x ** (power - 1), (x**power).sum()))
            value, slope = both(x, scale, power)
            assert isinstance(value, np.float64)
            assert value == pytest.approx(scale * (x**power).sum())
            np.testing.assert_allclose(slope, kept[-1][1], rtol=1e-14)
            assert TOTAL(x, scale, power) == value
    for (by_x, by_scale), want, sums in kept:  # results are their caller's
        np.testing.assert_allclose(by_x, want, rtol=1e-14)
        assert by_scale == pytest.approx(sums)
        assert isinstance(by_scale, np.float64)


def test_arguments_that_are_written_are_copied() -> None:
    x = X.copy()
    for _ in range(3):
        moved, before = STEP(x, 0.25)
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(before, X)
        np.testing.assert_array_equal(moved, [0.875, 2.0, 2.0 + 0.25 * 0.875])
        value, after = LAST(x)
        assert (value, after[0]) == (16.0, 4.0)


def test_the_long_way_gives_the_same() -> None:
    """Lists, strides, other dtypes, names and NumPy's numbers are converted or refused by the binder."""
    want, gradient = TOTAL(X, 2.0, 3), grad(TOTAL)
    for args in ((list(X), 2.0, 3), (np.repeat(X, 2)[::2], 2.0, 3), (X, np.float64(2.0), np.int32(3)), (X, 2, 3)):
        assert TOTAL(*args) == want
        np.testing.assert_array_equal(gradient(*args), gradient(X, 2.0, 3))
    assert TOTAL(X, power=3, scale=2.0) == want
    frozen = X.copy()
    frozen.flags.writeable = False
    assert TOTAL(frozen, 2.0, 3) == want
    assert TOTAL(np.zeros(0), 2.0, 3) == 0
    for wrong, error in (((X.astype(np.float32), 2.0, 3), DTypeError), ((X[None], 2.0, 3), ShapeError),
                         ((X, 2.0, 2**31), DTypeError), ((X, 2.0), IRGradError)):  # fmt: skip
        with pytest.raises(error):
            TOTAL(*wrong)


def test_what_is_taken_and_what_is_not() -> None:
    origin = [*range(4), -1]
    calls = Calls(TOTAL.primal, TOTAL.signature, TOTAL.bind, origin, [4])
    assert calls((X, 2.0, 3)) == [TOTAL(X, 2.0, 3)]
    for args in ((X, 2, 3), (X, 2.0, True), (X[::2], 2.0, 3), (X, 2.0), ([1.0], 2.0, 3), (X, 2.0, 2**40)):
        assert calls(args) is MISSED


def test_many_threads_at_once() -> None:
    gradient, wrong = grad(TOTAL), []

    def work(seed: int) -> None:
        rng: Any = np.random.default_rng(seed)
        for _ in range(300):
            x = rng.uniform(0.5, 2, rng.integers(1, 6))
            if not np.allclose(gradient(x, 2.0, 3), 6 * x**2, rtol=1e-13):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_rule_that_comes_later_is_used() -> None:
    library = irgrad.load("double g(double x) { return x * x; } double f(const double *x, long n) { return g(x[0]); }",
                          flags=["-fno-inline"])  # fmt: skip
    gradient = grad(library.kernel("f", "f64(f64[n] x, i64 n)"))
    assert gradient(X)[0] == 1.0
    with irgrad.rules.layer():

        @irgrad.rule(library.function("g"), mode="reverse")
        def _(x: Any) -> Any:
            return 20.0 * x

        assert gradient(X)[0] == 10.0
    assert gradient(X)[0] == 1.0
