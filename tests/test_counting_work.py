"""The counts that stand for time in other tests see what is not linear."""

from __future__ import annotations

import sys
from collections.abc import Callable

from counting_work import growth, lines_run, peak_bytes


def _sums(turns: Callable[[int], int]) -> Callable[[int], Callable[[], object]]:
    return lambda size: lambda: sum(1 for _ in range(turns(size)))


def test_growth_is_one_for_linear_work_and_the_ratio_for_quadratic_work() -> None:
    assert abs(growth(_sums(lambda n: n), 1_000, 8_000) - 1) < 0.05
    assert abs(growth(_sums(lambda n: n * n), 20, 160) - 8) < 0.5


def test_lines_are_the_same_each_time_and_the_tracer_comes_back() -> None:
    before = sys.gettrace()
    work = _sums(lambda n: n)(100)
    assert lines_run(work) == lines_run(work) > 100
    assert sys.gettrace() is before


def test_peak_bytes_see_a_list() -> None:
    assert 80_000 <= peak_bytes(lambda: [None] * 10_000) < 90_000
