"""A call like an earlier one is planned once, and gives what a call of its own gives."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.batches import batched, repeats

SOURCE = """
#include <math.h>
double pair(const double *x, const double *y, double s, int n)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += s * x[i] * sin(y[i]) + n * x[i];
    return sum;
}
int root(double x, double *y) { if (x < 0) return 3; *y = sqrt(x); return 0; }
double wave(double x, double k) { return sin(k * x); }
"""


@pytest.fixture(scope="module")
def lib() -> irgrad.Library:
    return irgrad.load(SOURCE, language="c")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Samples of each call that was planned anew."""
    made: list[int] = []
    plan = batched.make_plan

    def counted(*args: object) -> object:
        made.append(args[2])  # type: ignore[arg-type]
        return plan(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(batched, "make_plan", counted)
    yield made


PAIR = "f64(f64[3] x, f64[3] y, f64 s, i32 n)"


@pytest.mark.parametrize("reduce", [None, "sum"])
@pytest.mark.parametrize("samples", [1, 7, 9000])
def test_other_arrays_and_numbers(lib: irgrad.Library, plans: list[int], samples: int, reduce: str | None) -> None:
    """Also where the first call took one array twice; y is shared."""
    kernel, rng = lib.kernel("pair", PAIR), np.random.default_rng(samples)
    f = engine.batch_value_and_grad(kernel, ("x", "y", "s"), in_axes=(0, 0, None, None), reduce=reduce)
    memory = rng.normal(size=(4, samples, 3))
    f(memory[0], memory[0], 0.5, 2)
    first = len(plans)
    for x, y, s in ((memory[1], memory[2], 0.7), (memory[3], memory[0], -1.5)):
        value, (dx, dy, ds) = f(x, y, s, 2)
        assert np.allclose(value, (s * x * np.sin(y) + 2 * x).sum(1 if reduce is None else None))
        assert np.allclose(dx, s * np.sin(y) + 2) and np.allclose(dy, s * x * np.cos(y))
        wanted = (x * np.sin(y)).sum(1)
        assert np.allclose(ds, wanted if reduce is None else wanted.sum())
    assert len(plans) == first  # the arrays lie alike in their cache lines
    assert np.allclose(f(memory[1], memory[2], 0.7, 3)[1][0], 0.7 * np.sin(memory[2]) + 3)
    assert len(plans) == first + 1  # an integer is part of the kind


def test_what_wants_conversion_is_converted(lib: irgrad.Library, plans: list[int]) -> None:
    f = engine.batch_grad(lib.kernel("pair", PAIR), in_axes=(0, None, None, None))
    x, y = np.arange(12.0).reshape(4, 3), np.array([0.1, 0.2, 0.3])
    wanted = f(x, y, 0.5, 2)
    others = [(np.asfortranarray(x), y, 0.5, 2), (x, y.tolist(), 0.5, 2), (x, y, np.float64(0.5), 2),
              (x, y, 0.5, np.int64(2)), (np.repeat(x, 2, 1)[:, ::2], y, 0.5, 2)]  # fmt: skip
    for again in others:
        assert np.array_equal(f(*again), wanted)
    with pytest.raises(irgrad.DTypeError):
        f(x.astype("f4"), y, 0.5, 2)
    made = len(plans)
    assert np.array_equal(f(x, y, s=0.5, n=2), wanted) and np.array_equal(f(x, y, 0.5, 2), wanted)
    assert len(plans) == made + 1  # named arguments


def test_a_failed_sample_raises_each_time(lib: irgrad.Library) -> None:
    f = engine.batch(lib.kernel("root", "status i32(f64 x, out f64 y)", errors={3: "negative"}))
    good = np.array([1.0, 4.0])
    assert np.array_equal(f(good), [1, 2])
    for _ in range(2):
        with pytest.raises(irgrad.KernelError, match="negative"):
            f(np.array([1.0, -4.0]))
        assert np.array_equal(f(good), [1, 2])


def test_arrays_are_not_kept(lib: irgrad.Library) -> None:
    f = engine.batch_grad(lib.kernel("pair", PAIR), in_axes=(0, None, None, None))
    x = np.ones((5, 3))
    gone = weakref.ref(x)
    f(x, np.ones(3), 1.0, 1)
    del x
    gc.collect()
    assert gone() is None


def test_a_rule_that_is_added_counts(lib: irgrad.Library) -> None:
    kernel = lib.kernel("wave", "f64(f64 x, f64 k)")
    f, x = engine.batch_grad(kernel), np.array([0.3, 0.4])
    assert np.allclose(f(x, 2.0), 2 * np.cos(2 * x))
    with irgrad.rules.layer():
        @irgrad.rule("sin")
        def _(x: object) -> object:
            return 7.0

        assert np.allclose(f(x, 2.0), 14)
    assert np.allclose(f(x, 2.0), 2 * np.cos(2 * x))


def test_many_threads(lib: irgrad.Library) -> None:
    f = engine.batch(lib.kernel("wave", "f64(f64 x, f64 k)"))
    xs = np.random.default_rng(0).normal(size=(200, 50))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: f(xs[n], float(n % 5)), range(len(xs))))
    assert all(np.allclose(row, np.sin(n % 5 * x)) for n, (row, x) in enumerate(zip(found, xs, strict=True)))


def test_no_more_kinds_than_are_kept(lib: irgrad.Library) -> None:
    f = engine.batch(lib.kernel("wave", "f64(f64 x, f64 k)"))
    for n in range(1, repeats.KEPT + 10):
        assert f(np.zeros(n), 1.0).shape == (n,)
    assert len(f._repeats) == repeats.KEPT
