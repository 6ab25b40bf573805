"""Bounds of counters: against loops that are run, and in programs whose limits are sets."""

from __future__ import annotations

import operator
from itertools import product

import pytest
from analysed import all_of, facts_of_c

from irgrad.engine.analyses.memory.counters import reach
from irgrad.engine.analyses.memory.strided_sets import TOP, Offsets

COMPARES = {
    "ne": operator.ne, "slt": operator.lt, "sle": operator.le, "ult": operator.lt, "ule": operator.le,
    "sgt": operator.gt, "sge": operator.ge, "ugt": operator.gt, "uge": operator.ge,
}  # fmt: skip
STARTS = (Offsets(0), Offsets(3), Offsets(7), Offsets(1, ((1, 4),)), Offsets(2, ((3, 2),)), Offsets(-2))


@pytest.mark.parametrize("pred", COMPARES)
@pytest.mark.parametrize("step", [1, -1, 2, -3])
def test_no_run_leaves_the_bounds(pred: str, step: int) -> None:
    """Each start with each limit, bottom-tested; loops that end by wrapping around have no bounds."""
    bounded = 0
    for first, limit, lead in product(STARTS, STARTS, (0, step)):
        ends = reach(first, step, lead, pred, limit)
        if ends is None:
            continue
        bounded += 1
        seen = set()
        for start, last in product(first.expand(), limit.expand()):
            for turn in range(40):
                value = start + turn * step
                seen.add(value)
                if not COMPARES[pred](value + lead, last):
                    break
            else:
                pytest.fail(f"{first} by {step} never ends at {limit}")
        assert ends[0] <= min(seen) and max(seen) <= ends[1]
        if first.exact and limit.exact and abs(step) == 1:
            assert ends == (min(seen), max(seen))
    upwards = pred in ("slt", "sle", "ult", "ule")
    assert bool(bounded) is (pred == "ne" or upwards is (step > 0))


def test_a_limit_that_may_be_anything_bounds_nothing() -> None:
    assert reach(Offsets(0), 1, 1, "slt", TOP) is None
    assert reach(TOP, -1, 0, "ne", Offsets(0)) is None
    assert reach(Offsets(-1), 1, 1, "ult", Offsets(-4, ((4, 2),))) is None


TRIANGLE = """
struct solver { int n; double *k[7]; double *tmp; };
void f(struct solver *s, double *out) {
  double sum = 0;
  for (int i = 1; i < 7; i++) {
    for (int j = 0; j < i; j++) sum += s->k[j][0] * i;
    for (int j = i - 1; j >= 0; j--) sum += s->k[j][1] * i;
  }
  *out = sum * s->tmp[0];
}
"""


def test_rows_that_a_triangle_reads() -> None:
    """Upwards and downwards, the pointers in the middle of the struct and nothing beside them."""
    facts = facts_of_c(TRIANGLE, "f", {0, 1})
    places = [facts.types.ranges.offsets(i.operands[0]) for i in all_of(facts, "load") if i.type.is_ptr]
    assert {min(p.expand()) for p in places} == {8, 64}
    assert max(max(p.expand()) for p in places if min(p.expand()) == 8) == 48
