"""Parallel constructs on NumPy arrays: values against folds in Python, derivatives against differences."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.functions.checking import check

SOURCE = r"""
#include <math.h>
#include <stdint.h>
double add(double a, double b) { return a + b; }
double mul(double a, double b) { return b * a; }
double largest(double a, double b) { return a > b ? a : b; }
double smooth(double a, double b) { double m = fmax(a, b); return m + log(exp(a - m) + exp(b - m)); }
float addf(float a, float b) { return a + b; }
int16_t most(int16_t a, int16_t b) { return a > b ? a : b; }
void linear(double a0, double b0, double a1, double b1, double *a, double *b) { *a = a0 * a1; *b = b0 * a1 + b1; }
void product(const double *a, const double *b, double *c) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++) c[2 * i + j] += a[2 * i + k] * b[2 * k + j];
}
void where(double a, long i, double b, long j, double *c, long *k) { *c = a >= b ? a : b; *k = a >= b ? i : j; }
double bent(double a, double b, const double *w, long p) { return a + b + w[p - 1] * a * b; }
struct moments { double count, mean, square; };
void together(const struct moments *a, const struct moments *b, struct moments *c) {
    double n = a->count + b->count, d = b->mean - a->mean;
    c->count = n;
    c->mean = a->mean + d * b->count / n;
    c->square = a->square + b->square + d * d * a->count * b->count / n;
}
double wave(double x, double a, const double *w, long p) { return sin(a * x) * w[p - 1]; }
int failing(double a, double b, double *c) { *c = a; return 0; }
double shift(double *a, double b) { return *a += b; }
"""
LIB = ig.load(SOURCE)
P = ig.parallel
RNG = np.random.default_rng(3)
X = RNG.normal(size=37)
MATRICES = RNG.normal(size=(37, 2, 2))
AT = RNG.integers(-1, 6, size=37)  # -1 and 5 are no bins
OPERATORS: dict[str, tuple[str | None, Any, tuple[np.ndarray[Any, Any], ...], Any]] = {
    "add": (None, 0.0, (X,), lambda a, b: (a[0] + b[0],)),
    "mul": (None, 1.0, (X,), lambda a, b: (a[0] * b[0],)),
    "largest": (None, -9.0, (X,), lambda a, b: (max(a[0], b[0]),)),
    "smooth": (None, -9.0, (X,), lambda a, b: (np.logaddexp(a[0], b[0]),)),
    "linear": ("void(f64 a0, f64 b0, f64 a1, f64 b1, out f64 a, out f64 b)", (1.0, 0.0), (X, X[::-1].copy()),
               lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])),
    "product": ("void(f64[2,2] a, f64[2,2] b, out f64[2,2] c)", np.eye(2), (MATRICES,), lambda a, b: (a[0] @ b[0],)),
    "together": ("struct moments { f64 count; f64 mean; f64 square; }; "
                 "void(moments[] a, moments[] b, out moments[] c)", (0.0, 0.0, 0.0), (1 + X * X, X, X * X),
                 lambda a, b: (a[0] + b[0], a[1] + (b[1] - a[1]) * b[0] / (a[0] + b[0]),
                               a[2] + b[2] + (b[1] - a[1]) ** 2 * a[0] * b[0] / (a[0] + b[0]))),
}  # fmt: skip


def _operator(name: str) -> Any:
    return LIB.kernel(name, OPERATORS[name][0])


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _close(got: Any, want: Any) -> None:
    for one, other in zip(_tuple(got), _tuple(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-300)


def _folds(name: str, rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The folds of the first elements, in Python."""
    apply = OPERATORS[name][3]
    found: list[tuple[Any, ...]] = []
    for element in zip(*rows, strict=True):
        found.append(apply(found[-1], element) if found else element)
    return found


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("count", [37, pytest.param(1, marks=pytest.mark.long)])
def test_folds(name: str, count: int) -> None:
    _, neutral, arrays, _ = OPERATORS[name]
    rows = tuple(array[:count] for array in arrays)
    folds = _folds(name, rows)
    _close(P.reduce(_operator(name), neutral)(*rows), folds[-1])
    _close(P.scan(_operator(name))(*rows), tuple(np.array(row) for row in zip(*folds, strict=True)))
    back = _folds(name, tuple(row[::-1] for row in rows))
    _close(P.scan(_operator(name), reverse=True)(*rows),
           tuple(np.array(row)[::-1] for row in zip(*back, strict=True)))  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_histograms(name: str) -> None:
    _, neutral, arrays, _ = OPERATORS[name]
    got = _tuple(P.histogram(_operator(name), neutral, 5)(AT, *arrays))
    for b in range(5):
        chosen = tuple(array[b == AT] for array in arrays)
        _close(tuple(row[b] for row in got), _folds(name, chosen)[-1])
    empty = P.histogram(_operator(name), neutral, 2)(np.full(37, 7), *arrays)
    neutrals = neutral if isinstance(neutral, tuple) else (neutral,)
    for row, value in zip(_tuple(empty), neutrals, strict=True):
        np.testing.assert_array_equal(row, np.broadcast_to(value, row.shape))


def test_nothing_gives_the_neutral_element() -> None:
    assert P.reduce(_operator("smooth"), -np.inf)(np.zeros(0)) == -np.inf
    np.testing.assert_array_equal(P.reduce(_operator("product"), np.eye(2))(np.zeros((0, 2, 2))), np.eye(2))
    assert P.scan(_operator("add"))(np.zeros(0)).shape == (0,)
    assert P.histogram(_operator("add"), 0.0, 0)(AT, X).shape == (0,)
    assert ig.grad(P.reduce(_operator("smooth"), -np.inf))(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("construct", ["reduce", "scan", "reverse", "histogram"])
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name == "product" else pytest.mark.long) for name in OPERATORS])  # fmt: skip
def test_derivatives(name: str, construct: str) -> None:
    """Forward against reverse against differences, and second derivatives along a direction."""
    _, neutral, arrays, _ = OPERATORS[name]
    make = {"reduce": lambda op: P.reduce(op, neutral), "scan": P.scan,
            "reverse": lambda op: P.scan(op, reverse=True), "histogram": lambda op: P.histogram(op, neutral, 5)}
    kernel = make[construct](_operator(name))
    rows = tuple(array[:9] for array in arrays)
    assert check(kernel, *((AT[:9],) if construct == "histogram" else ()), *rows).ok


def test_zeros_in_products() -> None:
    """Products of the others, with none, one and two zeros: no division."""
    x = X[:6].copy()
    for zeros in ((), (2,), (1, 4)):
        x[list(zeros)] = 0.0
        want = [np.prod(np.delete(x, i)) for i in range(6)]
        np.testing.assert_allclose(ig.grad(P.reduce(_operator("mul"), 1.0))(x), want, rtol=1e-14)


def test_no_derivative_at_the_neutral_element_is_asked_for() -> None:
    """exp(-inf - m) has none that is a number."""
    kernel = P.histogram(_operator("smooth"), -np.inf, 3)
    value, pullback = ig.vjp(kernel, AT, X)
    (by_x,) = pullback(np.array([1.0, 2.0, 3.0]))
    for b in range(3):
        chosen = np.exp(X[b == AT])
        np.testing.assert_allclose(by_x[b == AT], (b + 1) * chosen / chosen.sum(), rtol=1e-12)
    assert not by_x[(AT < 0) | (AT > 2)].any()
    np.testing.assert_allclose(value, [np.logaddexp.reduce(X[b == AT]) for b in range(3)], rtol=1e-13)


def test_extrema_with_their_place() -> None:
    where = LIB.kernel("where", "void(f64 a, i64 i, f64 b, i64 j, out f64 c, out i64 k)")
    kernel = P.reduce(where, (-np.inf, -1))
    value, place = kernel(X, np.arange(37))
    assert (value, place) == (X.max(), X.argmax())
    assert kernel(np.zeros(0), np.zeros(0, np.int64)) == (-np.inf, -1)
    np.testing.assert_array_equal(ig.grad(kernel, wrt="b", of="c")(X, np.arange(37)), np.eye(37)[place])
    small = P.reduce(LIB.kernel("most"), -7)
    assert small(np.array([-3, -2, -5], np.int16)) == -2
    assert small(np.zeros(0, np.int16)) == -7


def test_what_all_calls_share() -> None:
    bent = LIB.kernel("bent", "f64(f64 a, f64 b, f64[p] w, i64 p)")
    kernel, w = P.reduce(bent, 0.0), np.array([9.0, 0.3])
    want = functools.reduce(lambda a, b: a + b + w[1] * a * b, X)
    np.testing.assert_allclose(kernel(X, w), want, rtol=1e-12)
    assert check(kernel, X[:5], w).ok
    by_w = ig.grad(kernel, wrt="w")(X, w)
    assert by_w[0] == 0.0
    assert by_w[1] != 0.0
    assert check(P.scan(bent), X[:5], w).ok
    assert check(P.histogram(bent, 0.0, 5), AT[:9], X[:9], w).ok


def test_sums_run_in_another_order_unless_strict() -> None:
    x = RNG.normal(size=10_001)
    ordered = functools.reduce(lambda a, b: a + b, x)
    strict = P.reduce(LIB.kernel("add", strict_fp=True), 0.0)
    assert strict(x) == ordered
    np.testing.assert_allclose(P.reduce(LIB.kernel("add"), 0.0)(x), ordered, rtol=1e-11)
    assert P.reduce(LIB.kernel("addf"), 0.0)(x.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("index", ["i64", "u32"])
def test_scatter(index: str) -> None:
    at = np.array([2, 0, 2, 9, 1], index.replace("i", "int").replace("u", "uint"))
    kernel = P.scatter("f64", (2,), index=index)
    target, values = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 2))
    want = target.copy()
    for place, value in zip(at, values, strict=True):
        if place < 4:
            want[place] = value
    np.testing.assert_array_equal(kernel(target, at, values), want)
    assert check(kernel, target, at, values).ok
    _, pullback = ig.vjp(kernel, target, at, values)
    by_target, by_values = pullback(np.ones((4, 2)))
    np.testing.assert_array_equal(by_target[:, 0], [0, 0, 0, 1])
    np.testing.assert_array_equal(by_values[:, 0], [0, 1, 1, 0, 1])


def test_signed_indices_below_zero_are_passed_over() -> None:
    kernel = P.scatter(index="i32")
    np.testing.assert_array_equal(kernel(np.zeros(2), np.array([-1, 1], np.int32), np.array([5.0, 6.0])), [0.0, 6.0])


def test_map() -> None:
    wave = LIB.kernel("wave", "f64(f64 x, f64 a, f64[p] w, i64 p)")
    f, w = P.map(wave), np.array([1.0, 2.0])
    np.testing.assert_allclose(f(X, 0.5, w), 2 * np.sin(0.5 * X), rtol=1e-14)
    value, pullback = f.vjp(X, 0.5, w)
    by_x, by_a, by_w = pullback(np.ones(37))
    np.testing.assert_allclose(by_x, np.cos(0.5 * X), rtol=1e-14)
    np.testing.assert_allclose(by_a, np.sum(2 * X * np.cos(0.5 * X)), rtol=1e-13)
    np.testing.assert_allclose(by_w, [0.0, value.sum() / 2], rtol=1e-13)
    _, tangent = f.jvp((X, 0.5, w), (np.ones(37), None, None))
    np.testing.assert_allclose(tangent, by_x, rtol=1e-14)
    assert "wave" in repr(P.map(wave, in_axes=(0, None, None)))


def test_constructs_are_kernels() -> None:
    """They can be pickled, and those of one operator do not stand in for each other."""
    add = LIB.kernel("add")
    one, other = P.reduce(add, 1.0), P.reduce(add, 2.0)
    assert (one(np.zeros(0)), other(np.zeros(0))) == (1.0, 2.0)
    assert one.content_digest != other.content_digest
    assert pickle.loads(pickle.dumps(P.scan(add)))(X)[-1] == pytest.approx(X.sum())
    np.testing.assert_allclose(ig.batch_grad(one)(np.stack([X, X])), np.ones((2, 37)))


def test_blocks_on_threads_have_the_same_bits() -> None:
    x = RNG.normal(size=(16, 500))
    for kernel in (P.reduce(LIB.kernel("smooth"), -np.inf), P.reduce(LIB.kernel("mul"), 1.0)):
        found = []
        for threads in (1, 2, 4, 16):
            folds, pullback = ig.batch_vjp(kernel, x, threads=threads)
            (back,) = pullback(ig.grad(kernel)(folds))
            found.append((kernel(folds).tobytes(), back.tobytes()))
        assert found.count(found[0]) == len(found)
        np.testing.assert_allclose(np.frombuffer(found[0][1]), ig.grad(kernel)(x.reshape(-1)), rtol=1e-9, atol=1e-300)


def test_rules_of_the_operator_hold() -> None:
    """The operator stays a call, and the rule is its derivative."""
    lib = ig.load("double twist(double a, double b) { return a + b; }")
    with ig.rules.layer():

        @ig.rule(lib.function("twist"))
        def _(a: Any, b: Any) -> Any:
            return 3.0, 5.0

        kernel = P.reduce(lib.kernel("twist"), 0.0)
        np.testing.assert_array_equal(ig.grad(kernel)(X[:3]), [9.0, 15.0, 5.0])
