"""Random functions of arrays that may overlap, in programs (see `overlaps.py`)."""

from __future__ import annotations

import os

import pytest

from fuzz.overlaps import check

COUNT = int(os.environ.get("IRGRAD_FUZZ", "40"))
FIRST = int(os.environ.get("IRGRAD_FUZZ_SEED", "0"))


@pytest.mark.long
@pytest.mark.parametrize("start", range(FIRST, FIRST + max(COUNT // 40, 1) * 12, 12))
def test_functions(start: int) -> None:
    assert check(range(start, start + 12), "-O2") == []
