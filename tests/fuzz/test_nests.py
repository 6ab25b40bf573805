"""Random nests of loops around a time loop: gradients with states are those of forward mode, and of a tape."""

from __future__ import annotations

import pytest

from fuzz.nests import check, check_program, kept_states


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_kernels(seed: int) -> None:
    assert check(seed) == "right"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_rows(seed: int) -> None:
    assert check(seed, rows=True) == "right"


@pytest.mark.long
def test_programs() -> None:
    assert set(check_program(range(8), "1kB").values()) == {"right"}


def test_nests_keep_states() -> None:
    assert kept_states(3)
