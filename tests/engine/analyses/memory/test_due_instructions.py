"""A sweep looks again at what reads something that changed, and at nothing else; it finds what whole sweeps find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from analysed import facts_of, ir_of

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.memory.due_instructions import DueInstructions
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir.model import Argument, Instruction
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


def _due(text: str = PROGRAM) -> tuple[DueInstructions, dict[str, object], int]:
    pointers = facts_of(text, "f", {0, 1}).pointers
    (cell,) = [obj.index for obj in pointers.objects if obj.kind == "alloca"]
    due = DueInstructions(pointers)
    assert {"%at", "ret", "store", "%l"} <= set(_names(due))
    assert not list(due)
    found: dict[str, object] = {str(fn.name): fn for fn in pointers.functions}
    found |= {f"%{i.name}": i for fn in pointers.functions for i in fn.instructions() if i.name}
    return due, found, cell


def _names(due: DueInstructions) -> list[str]:
    return [f"%{i.name}" if i.name else i.opcode for i in due]


def test_readers_of_memory_callers_and_users_are_looked_at_again() -> None:
    due, named, cell = _due()
    due.stored(cell)
    assert _names(due) == ["%l"]
    due.returned(named["same"])
    assert _names(due) == ["%p"]
    due.value(named["same"].args[0])
    assert _names(due) == ["ret"]
    due.value(named["%l"])  # leads to a number, which is of no use
    assert not list(due)


def test_phis_of_headers_are_looked_at_with_their_loops() -> None:
    due, named, _ = _due()
    due.value(named["%at1"])
    assert _names(due) == ["%at", "%more"]
    due.value(named["%p"])
    assert _names(due) == ["store", "%at"]
    due.value(named["f"].args[1])  # the limit of the loop's test
    assert _names(due) == ["%at", "%more"]


def test_what_changes_in_front_of_the_sweep_counts_in_it_and_what_does_behind_it_in_the_next() -> None:
    due, named, _ = _due()
    due.value(named["%p"])
    seen = []
    for instr in due:
        seen.append(instr.name or instr.opcode)
        if instr.opcode == "store":
            due.value(named["%at"])
            due.returned(named["same"])
    assert seen == ["store", "at", "at1"]
    assert _names(due) == ["%p"]


WIDE = """
declare ptr @malloc(i64)
define void @f(ptr %x, ptr %y) {
  %cell = alloca [32 x i8]
  %far = getelementptr i8, ptr %cell, i64 16
  %one = insertelement <2 x ptr> poison, ptr %x, i64 0
  %two = insertelement <2 x ptr> %one, ptr %y, i64 1
  store <2 x ptr> %two, ptr %cell
  %l = load <2 x ptr>, ptr %cell
  %back = shufflevector <2 x ptr> %l, <2 x ptr> poison, <2 x i32> <i32 1, i32 0>
  br label %loop
loop:
  %at = phi i64 [ 0, %0 ], [ %at1, %loop ]
  store <2 x ptr> %back, ptr %far
  %at1 = add i64 %at, 1
  %more = icmp ult i64 %at1, 9
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def test_a_store_of_pointers_side_by_side_is_looked_at_with_all_that_they_are_built_of() -> None:
    due, named, cell = _due(WIDE)
    due.value(named["f"].args[0])
    assert _names(due) == ["%one", "store"]
    due.stored(cell)
    assert _names(due) == ["%l", "store"]


LAYOUTS = Path(__file__).parents[3] / "layouts"


@pytest.mark.parametrize("name", ["hash_map.c", "intrusive_list.c", "fft_plan.c", "arena.c"])
def test_it_is_as_looking_at_everything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (LAYOUTS / name).read_text() + "\nvoid root(const double *x, long *n, double *out) { *out = loss(x, *n); }\n"
    module = read(ir_of(text), roots=["root"])
    pointers = points_to(module, module.functions["root"])
    found = Ranges(pointers)
    visits = [0]

    def everything(self: DueInstructions) -> Iterator[Instruction]:
        visits[0] += 1
        return iter(self._rows)

    monkeypatch.setattr(DueInstructions, "__iter__", everything)
    wanted = Ranges(pointers)
    assert visits[0] > 2
    for fn in pointers.functions:
        for value in (*fn.args, *fn.instructions()):
            assert isinstance(value, Argument | Instruction)
            assert found.places(value) == wanted.places(value)
            if value.type.is_int or value.type.is_ptr:
                assert found.offsets(value) == wanted.offsets(value)
