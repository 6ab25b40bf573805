"""Random functions with OpenMP's constructs: values, both modes, differences, and threads."""

from __future__ import annotations

import os

import pytest

from fuzz.regions import failures

COUNT = int(os.environ.get("IRGRAD_FUZZ", "10"))


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, max(COUNT // 20, 6), 3))
def test_functions(start: int) -> None:
    assert not failures(range(start, start + 3))
