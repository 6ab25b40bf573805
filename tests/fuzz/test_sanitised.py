"""No races in jobs, by the thread sanitiser; `sanitised.py` runs all cases."""

from __future__ import annotations

import pytest

from fuzz.sanitised import available, check, check_program, check_tape

pytestmark = pytest.mark.skipif(not available(), reason="gcc with its thread sanitiser is not there")


@pytest.mark.parametrize("name", ["gather", *(pytest.param(name, marks=pytest.mark.long)
                                              for name in ("extremes", "of_calls"))])  # fmt: skip
def test_no_race(name: str) -> None:
    assert check(name) == ""


@pytest.mark.long
@pytest.mark.parametrize("name", ["of_calls", "single", "in_place"])
def test_no_race_with_a_tape(name: str) -> None:
    assert check_tape(name) == ""


@pytest.mark.long
@pytest.mark.parametrize("seed", [300, 303])
def test_no_race_in_programs(seed: int) -> None:
    assert check_program(seed) == ""


def test_a_race_would_be_found() -> None:
    """Where chunks add to the same memory."""
    said = check("gather", lambda text: text.replace("%skip = mul i64 %c, %bytes", "%skip = mul i64 0, %bytes"))
    assert "data race" in said
