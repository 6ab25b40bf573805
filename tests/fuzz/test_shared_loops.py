"""Random kernels on a team of threads: the values and gradients that they have without."""

from __future__ import annotations

import os

import pytest

from fuzz.shared_loops import check

COUNT = int(os.environ.get("IRGRAD_FUZZ", "10"))


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, max(COUNT // 25, 8), 8))
def test_kernels(start: int) -> None:
    found = {seed: said for seed in range(start, start + 8) if not (said := check(seed)).startswith("right")}
    assert not found
