"""No races in jobs, by the thread sanitiser; `sanitised.py` runs all cases."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from fuzz.memory_cases import OWN
from fuzz.part_cases import CASES
from fuzz.sanitised import available, check, check_memory, check_parts, check_parts_program, check_program, check_tape

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


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_race_in_loops_in_two_parts(name: str) -> None:
    assert check_parts(name) == ""


@pytest.mark.long
@pytest.mark.parametrize("name", ["the place of the largest", "a captured place", "an array reduction", "members",
                                  "an operator that chooses", "under conditions"])  # fmt: skip
def test_no_race_in_programs_with_such_loops(name: str) -> None:
    assert check_parts_program(name) == ""


@pytest.mark.long
@pytest.mark.parametrize("name", OWN)
def test_no_race_in_memory_of_threads(name: str) -> None:
    assert check_memory(name) == ""


def test_a_race_would_be_found() -> None:
    """Where chunks add to the same memory."""
    said = check("gather", lambda text: text.replace("%skip = mul i64 %c, %bytes", "%skip = mul i64 0, %bytes"))
    assert "data race" in said


@pytest.mark.parametrize("checked", [
    pytest.param(lambda change: check_parts("a captured place", change), id="two parts"),
    pytest.param(lambda change: check_parts_program("the place of the largest", change), id="a program",
                 marks=pytest.mark.long),
    pytest.param(lambda change: check_memory("what it holds before", change), id="memory of threads",
                 marks=pytest.mark.long),
])  # fmt: skip
def test_a_race_would_be_found_there(checked: Callable[[Callable[[str], str]], str]) -> None:
    """Where all chunks run the same iterations, in the job that is written last: a value, not a sweep with a tape."""
    call = re.compile(r"(.*call [^\n]*@irgrad\.team\.\d+\.chunk[.\d]*\(i64) %\w+", re.S)
    said = checked(lambda text: call.sub(r"\1 0", text))
    assert "data race" in said

