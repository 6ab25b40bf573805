"""Random functions with OpenMP's constructs: values, both modes, differences, and threads."""

from __future__ import annotations

import os

import pytest

from fuzz.region_programs import check_program
from fuzz.region_shapes import Shaped
from fuzz.regions import failures

COUNT = int(os.environ.get("IRGRAD_FUZZ", "10"))


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, max(COUNT // 20, 6), 3))
def test_functions(start: int) -> None:
    assert not failures(range(start, start + 3))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_programs(seed: int) -> None:
    assert check_program(seed) == "right"


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, max(COUNT // 20, 6), 2))
def test_functions_of_memory_elsewhere(start: int) -> None:
    assert not failures(range(start, start + 2), kind=Shaped)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(max(COUNT // 20, 6)))
def test_programs_of_memory_elsewhere(seed: int) -> None:
    assert check_program(seed, shapes=True) == "right"
