"""Random kernels that keep a tape on threads (see `chunk_tapes.py`)."""

from __future__ import annotations

import os

import pytest

from fuzz.chunk_tapes import check

COUNT = int(os.environ.get("IRGRAD_FUZZ", "10"))


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, max(COUNT // 50, 4), 4))
def test_kernels(start: int) -> None:
    found = {seed: check(seed) for seed in range(start, start + 4)}
    assert not [said for said in found.values() if not said.startswith(("right", "none"))], found
    assert "right" in found.values()
