"""A sweep looks again at the blocks that read what changed, and at no other; what it finds is what all sweeps find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from analysed import facts_of, ir_of

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.memory.dirty_blocks import DirtyBlocks
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir.model import Argument, Block, Instruction
from irgrad.engine.ir.text.reader import read

PROGRAM = """
define internal ptr @same(ptr %p) {
same:
  ret ptr %p
}
define internal double @read(ptr %q) {
read:
  %l = load ptr, ptr %q
  %v = load double, ptr %l
  ret double %v
}
define void @f(ptr %x, ptr %out) {
f:
  %cell = alloca ptr
  %p = call ptr @same(ptr %x)
  store ptr %p, ptr %cell
  %s = call double @read(ptr %cell)
  store double %s, ptr %out
  br label %loop
loop:
  %at = phi ptr [ %p, %f ], [ %at1, %back ]
  br label %back
back:
  %at1 = getelementptr i8, ptr %at, i64 8
  %more = icmp ne ptr %at1, %out
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def _dirty() -> tuple[DirtyBlocks, dict[str, object], int]:
    pointers = facts_of(PROGRAM, "f", {0, 1}).pointers
    (cell,) = [obj.index for obj in pointers.objects if obj.kind == "alloca"]
    dirty = DirtyBlocks(pointers)
    assert {b.name for b in dirty} == {"f", "same", "read", "loop", "back", "done"}
    assert not list(dirty)
    found: dict[str, object] = {str(fn.name): fn for fn in pointers.functions}
    found |= {f"%{i.name}": i for fn in pointers.functions for i in fn.instructions() if i.name}
    return dirty, found, cell


def test_readers_of_memory_callers_and_users_are_looked_at_again() -> None:
    dirty, named, cell = _dirty()
    dirty.stored(cell)
    assert [b.name for b in dirty] == ["read"]
    dirty.returned(named["same"])
    assert [b.name for b in dirty] == ["f"]
    dirty.value(named["same"].args[0])
    assert [b.name for b in dirty] == ["same"]
    dirty.value(named["%l"])  # read behind it, in its own block only
    assert not list(dirty)


def test_headers_of_loops_are_looked_at_with_their_loops() -> None:
    dirty, named, _ = _dirty()
    dirty.value(named["%at1"])
    assert [b.name for b in dirty] == ["loop"]
    dirty.value(named["%p"])
    assert [b.name for b in dirty] == ["loop"]
    dirty.value(named["f"].args[1])  # the limit of the loop's test
    assert [b.name for b in dirty] == ["f", "loop", "back"]


def test_what_changes_while_a_block_is_looked_at_counts_for_the_next_sweep() -> None:
    dirty, named, _ = _dirty()
    dirty.value(named["same"].args[0])
    for _block in dirty:
        dirty.value(named["same"].args[0])
    assert [b.name for b in dirty] == ["same"]


LAYOUTS = Path(__file__).parents[3] / "layouts"


@pytest.mark.parametrize("name", ["hash_map.c", "intrusive_list.c", "fft_plan.c", "arena.c"])
def test_it_is_as_looking_at_everything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (LAYOUTS / name).read_text() + "\nvoid root(const double *x, long *n, double *out) { *out = loss(x, *n); }\n"
    module = read(ir_of(text), roots=["root"])
    pointers = points_to(module, module.functions["root"])
    found = Ranges(pointers)
    visits = [0]

    def everything(self: DirtyBlocks) -> Iterator[Block]:
        visits[0] += 1
        return iter(self._blocks)

    monkeypatch.setattr(DirtyBlocks, "__iter__", everything)
    wanted = Ranges(pointers)
    assert visits[0] > 2
    for fn in pointers.functions:
        for value in (*fn.args, *fn.instructions()):
            assert isinstance(value, Argument | Instruction)
            assert found.places(value) == wanted.places(value)
            if value.type.is_int or value.type.is_ptr:
                assert found.offsets(value) == wanted.offsets(value)
