"""What calls of declarations do."""

from __future__ import annotations

from analysed import facts_of

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
