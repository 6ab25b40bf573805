"""Kinds of what is written into an object: reads do not count, integers are followed to where their bits come from."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.types.contents import ANYTHING
from irgrad.engine.ir import types as ty

TEXT = """
define void @f(ptr noalias %x, i64 %n) {
entry:
  %doubles = alloca [3 x double]
  %bits = alloca [3 x i64]
  %numbers = alloca [3 x i64]
  %copied = alloca [3 x i64]
  %v = load double, ptr %x
  store double %v, ptr %doubles
  %b = bitcast double %v to i64
  store i64 %b, ptr %bits
  %zero = getelementptr i64, ptr %bits, i64 1
  store i64 0, ptr %zero
  %s = add i64 %b, 1
  store i64 %s, ptr %numbers
  %r = load i64, ptr %doubles
  store i64 %r, ptr %copied
  ret void
}
"""


def test_kinds() -> None:
    facts = facts_of(TEXT, "f", {0})
    contents = facts.types.contents
    kinds = {obj.site.name: contents.kinds(obj) for obj in facts.pointers.objects if obj.site is not None}
    doubles = frozenset({ty.F64})
    assert kinds == {"x": {ANYTHING}, "doubles": doubles, "bits": doubles, "numbers": {INT}, "copied": doubles}
    pure = {obj.site.name for obj in facts.pointers.objects if obj.site is not None and contents.only_floats(obj)}
    assert pure == {"doubles", "bits", "copied"}
