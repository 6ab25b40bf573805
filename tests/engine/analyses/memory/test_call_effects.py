"""What calls of declarations do."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.analyses.memory.call_effects import of_unknown
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.reader import read

TEXT = """
declare void @reads(ptr captures(none)) memory(read)
declare double @pure(double) memory(none)
declare ptr @malloc(i64)
declare void @keeps(ptr)
define void @f(ptr noalias %x) {
entry:
  %m = call ptr @malloc(i64 24)
  call void @reads(ptr %x)
  %v = call double @pure(double 1.0)
  call void @keeps(ptr %m)
  ret void
}
"""


def test_attributes_and_rows_give_effects() -> None:
    pointers = facts_of(TEXT, "f", {0}).pointers
    allocation, reads, pure, keeps = (pointers.effect(c) for c in pointers.root.instructions() if c.is_call)
    assert allocation is not None and allocation.allocates and allocation.sizes == (0,)
    assert reads is not None and reads.writes == frozenset() and reads.reads is None and reads.captures == frozenset()
    assert pure is not None and pure.nothing
    assert keeps is not None and keeps.writes is None and keeps.captures is None


CALLS = """
@_ZSt4cout = external global [272 x i8]
@table = external global [272 x i8]
declare ptr @_ZNKSt3__16locale9use_facetERNS0_2idE(ptr, ptr)
define void @f(ptr %p, ptr %q) {
  %f0 = load ptr, ptr %p
  call void %f0(ptr %q)
  call void %f0(ptr %q) #0
  %v = call ptr @_ZNKSt3__16locale9use_facetERNS0_2idE(ptr %p, ptr %q)
  %t = load ptr, ptr %v
  %m = getelementptr i8, ptr %t, i64 56
  %f1 = load ptr, ptr %m
  call void %f1(ptr %v)
  %t2 = load ptr, ptr @_ZSt4cout
  %f2 = load ptr, ptr %t2
  call void %f2(ptr @_ZSt4cout)
  %t3 = load ptr, ptr @table
  call void %t3(ptr @table)
  ret void
}
attributes #0 = { "irgrad-inactive" }
"""


def test_calls_through_pointers_of_the_library_are_inactive() -> None:
    module = read(CALLS)
    through = [i for i in module.functions["f"].instructions() if i.is_call and i.type is ty.VOID]
    assert [of_unknown(module, call).inactive for call in through] == [False, True, True, True, False]
