"""A sweep looks again at the functions that read what changed, and at no other."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.analyses.memory.dirty_functions import DirtyFunctions

PROGRAM = """
define internal ptr @same(ptr %p) {
  ret ptr %p
}
define internal double @read(ptr %q) {
  %l = load ptr, ptr %q
  %v = load double, ptr %l
  ret double %v
}
define void @f(ptr %x, ptr %out) {
  %cell = alloca ptr
  %p = call ptr @same(ptr %x)
  store ptr %p, ptr %cell
  %s = call double @read(ptr %cell)
  store double %s, ptr %out
  ret void
}
"""


def _dirty() -> tuple[DirtyFunctions, dict[str, object], int]:
    pointers = facts_of(PROGRAM, "f", {0, 1}).pointers
    (cell,) = [obj.index for obj in pointers.objects if obj.kind == "alloca"]
    dirty = DirtyFunctions(pointers)
    assert {fn.name for fn in dirty} == {"f", "same", "read"}
    assert not list(dirty)
    return dirty, {str(fn.name): fn for fn in pointers.functions}, cell


def test_readers_of_memory_callers_and_owners_are_looked_at_again() -> None:
    dirty, functions, cell = _dirty()
    dirty.stored(cell)
    assert [fn.name for fn in dirty] == ["read"]
    dirty.returned(functions["same"])
    assert [fn.name for fn in dirty] == ["f"]
    dirty.value(functions["same"].args[0])
    assert [fn.name for fn in dirty] == ["same"]


def test_what_changes_while_a_function_is_looked_at_counts_for_the_next_sweep() -> None:
    dirty, functions, _ = _dirty()
    dirty.value(functions["same"].args[0])
    for fn in dirty:
        dirty.value(fn.args[0])
    assert [fn.name for fn in dirty] == ["same"]
