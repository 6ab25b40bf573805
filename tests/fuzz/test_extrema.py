"""Random kernels that look for the largest and the smallest, with its index, among numbers with ties."""

from __future__ import annotations

import pytest

from fuzz.extrema import check


@pytest.mark.parametrize("seed", range(6))
def test_kernels(seed: int) -> None:
    assert check(seed) == "right"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 40))
def test_more_kernels(seed: int) -> None:
    assert check(seed) == "right"
