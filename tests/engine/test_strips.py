"""Strips of directions: their width, their lanes, and the transposition of results."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad.engine.strips import Strips, choose_width, lanes_first

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
    strips = Strips(lambda w: kernel.primal.T((x, *outputs), w), bound, [(x, 0)], [(o, 0) for o in outputs], width)
    rows = np.empty((3, 3))
    seen = []
    for first, count, values in strips.units():
        seen += range(first, first + count)
        rows[:, first : first + count] = values[0][:, :count]
    assert seen == [0, 1, 2] and not strips.seed(0).any()
    np.testing.assert_allclose(rows, 3 * np.eye(3), atol=1e-14)


def test_lanes_first() -> None:
    lanes = np.arange(1000.0 * 4).reshape(1000, 4)
    target = np.empty((3, 1000))
    lanes_first(target, lanes)
    assert (target == lanes.T[:3]).all()


def test_lanes_begin_at_a_cache_line() -> None:
    kernel = sample("scale")
    program = kernel.primal.T((0, *kernel.output_positions), 4)
    for n in (1, 3, 1000):
        bound = kernel.bind((np.ones(n), 3.0), {})
        buffers = program.fill([None] * len(program.slots), bound.sizes)
        lanes = [b for b, s in zip(buffers, program.slots, strict=True) if s.lanes]
        assert lanes and all(b.ctypes.data % 64 == 0 and b.shape[-1] == 4 and not b.any() for b in lanes)
