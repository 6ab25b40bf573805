"""A pointer that is read where none is ever kept says nothing of the memory."""

from __future__ import annotations

import pytest
from analysed import facts_of, named

from irgrad.engine.ir.types import F64, PTR

TEXT = """
declare ptr @malloc(i64)
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %numbers = call ptr @malloc(i64 16)
  %solver = call ptr @malloc(i64 16)
  %v = load double, ptr %x
  store double %v, ptr %numbers
  STORE
  %known = load i1, ptr %c
  %data = select i1 %known, ptr %numbers, ptr %solver
  %p = load ptr, ptr %data
  %w = load double, ptr %numbers
  store double %w, ptr %y
  ret void
}
"""


@pytest.mark.parametrize(
    ("store", "numbers", "solver"),
    [
        ("store ptr %x, ptr %solver", ((0, F64),), ((0, PTR),)),
        ("", None, ((0, PTR),)),
        ("store ptr %x, ptr %solver\n  store ptr %x, ptr %numbers", None, ((0, PTR),)),
    ],
)
def test_reads_count_where_pointers_may_be(store: str, numbers: object, solver: object) -> None:
    facts = facts_of(TEXT.replace("STORE", store), "f", {0, 1})
    found = facts.types.access(named(facts.root, "numbers"), 8)
    assert found == numbers if numbers is not None else found != ((0, F64),)
    assert facts.types.access(named(facts.root, "solver"), 8) == solver
