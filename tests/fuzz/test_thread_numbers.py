"""Random regions whose threads know their numbers, against real threads (see `thread_numbers.py`)."""

from __future__ import annotations

import shutil

import pytest

from fuzz.thread_numbers import failure


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler with an OpenMP library is here")
@pytest.mark.parametrize("seed", [6, *(pytest.param(seed, marks=pytest.mark.long) for seed in (5, 13, 18))])
def test_values_and_derivatives(seed: int) -> None:
    assert failure(seed) == ""
