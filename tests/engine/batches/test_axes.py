"""Which arguments are batched, and where their samples are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import sample

from irgrad.engine.batches.axes import data_of, operands_of, strides_of


@pytest.mark.parametrize(("shape", "axis", "wanted"), [
    ((5,), 0, (8, 8)), ((5, 2, 3), 0, (48, 8)), ((2, 3, 5), 2, (8, 40)), ((0, 3), 0, (24, 8)),
])  # fmt: skip
def test_strides(shape: tuple[int, ...], axis: int, wanted: tuple[int, int]) -> None:
    assert strides_of(shape, axis, 8) == wanted


def test_first_and_last_axes_are_not_copied() -> None:
    x = np.zeros((4, 3, 5))
    assert data_of(x, 0).array is x and data_of(x, 2).array is x
    moved = data_of(x + np.arange(3.0)[:, None], 1)
    assert moved.array.shape == (3, 4, 5) and (moved.sample, moved.element) == (160, 8)
    assert np.array_equal(moved.array[2], np.full((4, 5), 2.0))


@pytest.mark.parametrize("axes", [(0, None), [0, None], {"x": 0}, {"x": -2, "a": None}, None])
def test_spellings_of_axes(axes: Any) -> None:
    given = operands_of(sample("cubes"), [np.ones((4, 3)), 2.0], axes, "aos")
    assert given.samples == 4 and given.axes == {0: 0} and given.bound.sizes["n"] == 3
    assert given.data[0].sample == 24 and given.data[1].sample == 0 and given.data[2].array == 3


def test_layout_says_where_the_default_axis_is() -> None:
    given = operands_of(sample("cubes"), [np.ones((3, 4)), np.ones(4)], None, "soa")
    assert given.samples == 4 and given.axes == {0: 1, 1: 0}
    assert (given.data[0].sample, given.data[0].element) == (8, 32)
