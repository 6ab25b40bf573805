"""No races in jobs, by the thread sanitiser; `sanitised.py` runs all cases."""

from __future__ import annotations

import pytest

from fuzz.sanitised import available, check

pytestmark = pytest.mark.skipif(not available(), reason="gcc with its thread sanitiser is not there")


@pytest.mark.parametrize("name", ["gather", pytest.param("of_calls", marks=pytest.mark.long)])
def test_no_race(name: str) -> None:
    assert check(name) == ""


def test_a_race_would_be_found() -> None:
    """Where chunks add to the same memory."""
    said = check("gather", lambda text: text.replace("%skip = mul i64 %c, %bytes", "%skip = mul i64 0, %bytes"))
    assert "data race" in said
