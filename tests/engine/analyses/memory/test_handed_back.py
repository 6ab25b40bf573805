"""What a function returns in one call, where it returns what it was handed."""

from __future__ import annotations

import pytest
from analysed import facts_of, named

from irgrad.engine.analyses.memory.handed_back import HandedBack
from irgrad.engine.ir.text.reader import read

TEXT = """
@g = global double 0.0
declare ptr @malloc(i64)
define ptr @later(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %next = getelementptr i8, ptr %q, i64 8
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret ptr %next
}
define ptr @larger(ptr %p, ptr %q, i1 %c) {
  %r = select i1 %c, ptr %p, ptr %q
  ret ptr %r
}
define { ptr, i32 } @result(ptr %p, i32 %n) {
  %e = call ptr @later(ptr %p, i64 3)
  %a = insertvalue { ptr, i32 } poison, ptr %e, 0
  %b = insertvalue { ptr, i32 } %a, i32 %n, 1
  ret { ptr, i32 } %b
}
define ptr @none(ptr %p) {
  ret ptr null
}
define ptr @read(ptr %p) {
  %r = load ptr, ptr %p
  ret ptr %r
}
define ptr @fresh(ptr %p, i1 %c) {
  %m = call ptr @malloc(i64 8)
  %r = select i1 %c, ptr %m, ptr %p
  ret ptr %r
}
define ptr @number(i64 %n) {
  %r = inttoptr i64 %n to ptr
  ret ptr %r
}
define ptr @variable(ptr %p, i1 %c) {
  %r = select i1 %c, ptr @g, ptr %p
  ret ptr %r
}
define ptr @again(ptr %p, i1 %c) {
  br i1 %c, label %a, label %b
a:
  %r = call ptr @again(ptr %p, i1 false)
  ret ptr %r
b:
  ret ptr %p
}
"""


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("later", (0,)), ("larger", (0, 1)), ("result", (0,)), ("none", ()), ("read", None), ("fresh", None),
     ("number", None), ("variable", None), ("again", None)],
)  # fmt: skip
def test_parameters_behind_a_result(name: str, parameters: tuple[int, ...] | None) -> None:
    assert HandedBack().parameters(read(TEXT, roots=[name]).functions[name]) == parameters


CALLED = (
    TEXT
    + """
define void @f(ptr noalias %x, ptr noalias %y) {
  %a = alloca [4 x double], align 8
  %b = alloca [4 x double], align 8
  %p = call ptr @later(ptr %a, i64 2)
  %q = call ptr @later(ptr %b, i64 2)
  %v = load double, ptr %x
  store double %v, ptr %p
  store double %v, ptr %q
  %w = load double, ptr %p
  store double %w, ptr %y
  ret void
}
"""
)


def test_a_call_returns_what_it_was_handed_and_not_what_others_were() -> None:
    facts = facts_of(CALLED, "f", {0, 1})
    of, fn = facts.pointers.of, facts.root
    assert of(named(fn, "p")) == of(named(fn, "a"))
    assert of(named(fn, "q")) == of(named(fn, "b"))
    for name, base in (("p", "a"), ("q", "b")):
        assert facts.types.ranges.places(named(fn, name)).keys() == facts.types.ranges.places(named(fn, base)).keys()
