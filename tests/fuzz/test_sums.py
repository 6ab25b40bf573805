"""Random loops over independent iterations: fused where that may be, gradients as those of forward mode."""

from __future__ import annotations

import pytest

from fuzz.sums import choices


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_gradients(seed: int) -> None:
    assert choices(seed)[1] == "right"


def test_one_is_fused() -> None:
    assert choices(11) == (True, "right")
