"""Strips of directions: their width, their lanes, and the transposition of results."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad.engine import jacfwd
from irgrad.engine.functions import strips
from irgrad.engine.functions.strips import Spares, Strips, choose_width, lanes_first
from irgrad.engine.kernel.binding import Bound
from irgrad.rules import layer, rule

X = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize(
    ("directions", "lane_bytes", "width"),
    [
        (0, 8, 1), (1, 8, 1), (2, 8, 2), (3, 8, 4), (26, 2500, 16), (100, 64_000, 16), (100, 80_000, 8),
        (100, 10**6, 4), (3, 10**7, 4),
    ],
)
def test_width_by_default(directions: int, lane_bytes: int, width: int) -> None:
    assert choose_width("auto", directions, lane_bytes) == width


def test_width_that_is_asked_for() -> None:
    assert choose_width(7, 2, 10**9) == 7
    for wrong in (0, 65, "all", 2.0, True):
        with pytest.raises(irgrad.SignatureError, match='"auto" or an integer from 1 to 64'):
            choose_width(wrong, 4, 8)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_unit_directions(width: int) -> None:
    """Every direction once, in order, also where the last strip is not full."""
    kernel = sample("scale")
    bound = kernel.bind((X, 3.0), {})
    names = [p.name for p in kernel.signature.parameters]
    x, outputs = names.index("x"), kernel.output_positions
    results = [(o, 0) for o in outputs]
    strips = Strips(lambda w: kernel.primal.jvp_only((x, *outputs), w), bound, [(x, 0)], results, width)
    rows = np.empty((3, 3))
    seen = []
    for first, count, values in strips.units():
        seen += range(first, first + count)
        rows[:, first : first + count] = values[0][:, :count]
    assert seen == [0, 1, 2] and strips.seed(0).any() == (width >= 3)  # one strip for all keeps its directions
    np.testing.assert_allclose(rows, 3 * np.eye(3), atol=1e-14)
    strips.rebind(kernel.bind((2 * X, 5.0), {}))
    again = np.concatenate([values[1][:, :count].copy() for _, count, values in strips.units()], axis=1)
    np.testing.assert_allclose(again, np.diag(2 * 25 * 2 * X), atol=1e-13)


def test_lanes_first() -> None:
    lanes = np.arange(1000.0 * 4).reshape(1000, 4)
    target = np.empty((3, 1000))
    lanes_first(target, lanes)
    assert (target == lanes.T[:3]).all()


def test_lanes_begin_at_a_cache_line() -> None:
    kernel = sample("scale")
    program = kernel.primal.jvp_only((0, *kernel.output_positions), 4)
    for n in (1, 3, 1000):
        bound = kernel.bind((np.ones(n), 3.0), {})
        buffers = program.fill([None] * len(program.slots), bound.sizes)
        lanes = [b for b, s in zip(buffers, program.slots, strict=True) if s.lanes]
        assert lanes and all(b.ctypes.data % 64 == 0 and b.shape[-1] == 4 and not b.any() for b in lanes)


def _made(kernel: Any, made: list[Strips]) -> Spares:
    """Spares of the derivatives of `scale` by x, which list what they make."""
    outputs = kernel.output_positions

    def make(bound: Bound) -> Strips:
        results = [(o, 0) for o in outputs]
        made.append(Strips(lambda w: kernel.primal.jvp_only((0, *outputs), w), bound, [(0, 0)], results, 4))
        return made[-1]

    return Spares(make)


def test_strips_are_used_again() -> None:
    kernel, made = sample("scale"), list[Strips]()
    spares = _made(kernel, made)
    for n, count in ((3, 1), (3, 1), (4, 2), (3, 2)):
        key, used = spares.take(kernel.bind((np.ones(n), 2.0), {}))
        assert used.directions == n and len(made) == count
        spares.give(key, used)
    (first, one), (second, other) = (spares.take(kernel.bind((np.ones(3), 2.0), {})) for _ in range(2))
    assert first == second and one is not other and len(made) == 3  # both at once
    with layer():
        rule("strips_test_unused")(lambda x: x)
        assert spares.take(kernel.bind((np.ones(4), 2.0), {}))[0] != key and len(made) == 4


def test_what_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, made = sample("scale"), list[Strips]()
    spares = _made(kernel, made)
    for sizes, limit in (([3, 3], 0), ([3, 4, 3], 1 << 18)):
        monkeypatch.setattr(strips, "SPARE_BYTES", limit)
        monkeypatch.setattr(strips, "SPARE_SIZES", 1)
        made.clear()
        for n in sizes:
            spares.give(*spares.take(kernel.bind((np.ones(n), 2.0), {})))
        assert len(made) == len(sizes)
    monkeypatch.setattr(strips, "SPARES", 1)
    taken = [spares.take(kernel.bind((np.ones(5), 2.0), {})) for _ in range(2)]
    for pair in taken:
        spares.give(*pair)
    before = len(made)
    for _ in range(2):
        spares.take(kernel.bind((np.ones(5), 2.0), {}))
    assert len(made) == before + 1


def test_results_and_arguments_belong_to_the_caller() -> None:
    jacobian, x = jacfwd(sample("two")), np.array([1.0, 2.0])
    first = jacobian(x)
    wanted = [part.copy() for part in first]
    jacobian(np.array([5.0, 6.0]))
    for got, part in zip(first, wanted, strict=True):
        assert np.array_equal(got, part)
    class Array(np.ndarray[Any, Any]):  # one that can be watched
        pass
    large = np.ones(2).view(Array)
    jacobian(large)
    seen = weakref.ref(large)
    del large
    gc.collect()
    assert seen() is None


def test_threads_with_one_jacobian() -> None:
    jacobian, wrong, n = jacfwd(sample("scale")), list[int](), 8
    barrier = threading.Barrier(n)

    def work(k: int) -> None:
        x = np.array([1.0, 2.0, 3.0]) * (k + 1)
        barrier.wait()
        for _ in range(100):
            moved, squares = jacobian(x, float(k))
            if not (np.array_equal(moved, k * np.eye(3)) and np.allclose(squares, np.diag(2.0 * k * k * x))):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
