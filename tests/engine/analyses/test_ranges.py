"""Offsets through loops, calls and arithmetic."""

from __future__ import annotations

from analysed import all_of, facts_of_c

NESTED = """
struct body { double at[3]; int kind; };
void f(struct body *b, int *n, double *out) {
  double s = 0;
  for (int i = 0; i < *n; i++) for (int k = 0; k < 3; k++) s += b[i].at[k] * b[i].at[k];
  *out = s;
}
"""


def test_inner_loops_with_constant_trips_are_bounded() -> None:
    facts = facts_of_c(NESTED, "f", {0, 2})
    load = next(i for i in all_of(facts, "load") if i.type.is_fp)
    places = facts.types.ranges.offsets(load.operands[0])
    assert places.stride == 32
    assert {x % 32 for x in places.expand()} == {0, 8, 16}
