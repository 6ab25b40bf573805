"""Which loads of a loop stand in one window, and which loops count up for it."""

from __future__ import annotations

import pytest
from handwritten.planned import facts_of

from irgrad.engine.schedule.windows import Windows

SUM = """
void f(double *x, double *w, long *n, double *o) {
    double s = 0;
    for (long i = 2; i < *n - 2; i++) { s += %s; %s }
    *o = s;
}"""


def _windows(term: str, more: str = "", **options: int) -> Windows:
    return Windows(facts_of(SUM % (term, more), "dccd", **options))


@pytest.mark.parametrize(("term", "span"), [
    ("w[0] * x[i - 1] * x[i + 1]", 2),
    ("w[0] * x[i] * x[i + 1]", 1),
    ("w[0] * x[i - 2] * x[i] * x[i + 2]", 4),
])  # fmt: skip
def test_neighbours_are_one_window(term: str, span: int) -> None:
    found = _windows(term)
    ((group,),) = found.of_loop.values()
    assert group.span == span
    assert set(group.shifts.values()) <= set(range(span + 1))
    assert group.shifts[group.highest] == span
    assert found.group.keys() == group.shifts.keys()


@pytest.mark.parametrize(("term", "more"), [
    ("w[0] * x[i] * x[2 * i]", ""),  # no common step
    ("w[0] * x[i]", ""),  # no neighbour
    ("w[0] * x[i - 1] * x[i + 1]", "x[i] = s;"),  # written in the loop
])  # fmt: skip
def test_others_are_none(term: str, more: str) -> None:
    assert not _windows(term, more).group


def test_sums_of_a_window_count_up() -> None:
    found = _windows("w[0] * x[i - 1] * x[i + 1]")
    assert found.upward == set(found.of_loop)
    assert not _windows("s * x[i - 1] * x[i + 1]").upward
    assert not _windows("w[0] * x[i - 1] * x[i + 1]", width=4).upward
