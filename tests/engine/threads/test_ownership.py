"""Memory that an iteration has for itself: what its reverse sweep finds by addresses in its record."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.model import Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.ownership import UNKNOWN, own_addresses, root_of

TEXT = """
declare ptr @irgrad.tape.alloc(ptr, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @other(ptr)
define { double, ptr } @a.aug.f.iteration.0(i64 %k, ptr %x, ptr %arena) {
entry:
  %own = call ptr @malloc(i64 64)
  %second = getelementptr i8, ptr %own, i64 8
  %record = call ptr @irgrad.tape.alloc(ptr %arena, i64 24)
  store ptr %second, ptr %record
  %place = getelementptr i8, ptr %record, i64 8
  store ptr %x, ptr %place
  MORE
  %r = insertvalue { double, ptr } poison, double 1.0, 0
  %s = insertvalue { double, ptr } %r, ptr %record, 1
  ret { double, ptr } %s
}
define void @a.rev.f.iteration.0(i64 %k, ptr %x, ptr %tape) {
  %mine = load ptr, ptr %tape
  %place = getelementptr i8, ptr %tape, i64 8
  %shared = load ptr, ptr %place
  %foreign = load ptr, ptr %x
  store double 1.0, ptr %mine
  store double 1.0, ptr %shared
  store double 1.0, ptr %foreign
  ret void
}
define void @a.rev.f.loop.0(ptr %x, ptr %records) {
  %tape = load ptr, ptr %records
  call void @a.rev.f.iteration.0(i64 0, ptr %x, ptr CALL)
  ret void
}
"""


def _own(more: str = "", call: str = "%tape") -> list[str]:
    module = read(TEXT.replace("MORE", more).replace("CALL", call))
    found = own_addresses(module)
    assert all(isinstance(v, Instruction) and v.opcode == "load" for v in found)
    return sorted(v.name or "" for v in found)


def test_what_the_primal_sweep_has_allocated_is_the_iterations() -> None:
    """Not what it was given, nor what is loaded from elsewhere."""
    assert _own() == ["mine"]


@pytest.mark.parametrize("more", ["call void @free(ptr %own)", "store double 2.0, ptr %second"])
def test_it_may_be_used(more: str) -> None:
    assert _own(more) == ["mine"]


@pytest.mark.parametrize(
    "more",
    ["store ptr %own, ptr %x", "call void @other(ptr %own)", "%n = ptrtoint ptr %second to i64",
     "store ptr %record, ptr %x", "%v = insertvalue { ptr } poison, ptr %own, 0\n  store { ptr } %v, ptr %x",
     "store ptr %x, ptr %record"],
)  # fmt: skip
def test_what_others_may_know_is_not(more: str) -> None:
    assert _own(more) == []


VARIABLE = """%cell = alloca ptr
  store ptr %own, ptr %cell
  %again = load ptr, ptr %cell
  store ptr STORED, ptr %record
  USE"""


@pytest.mark.parametrize(
    ("stored", "use", "own"),
    [("%again", "", ["mine"]), ("%again", "store double 1.0, ptr %again", ["mine"]),
     ("%again", "store ptr %x, ptr %cell", []), ("%again", "store ptr %again, ptr %x", []),
     ("%again", "call void @other(ptr %again)", []), ("%again", "call void @other(ptr %cell)", []),
     ("%again", "%w = load i32, ptr %cell", []), ("%own", "store ptr %again, ptr %x", [])],
)  # fmt: skip
def test_variables_may_hold_it(stored: str, use: str, own: list[str]) -> None:
    """What a variable of the sweep holds is followed; one that others may know, or that has parts, tells others."""
    assert _own(VARIABLE.replace("STORED", stored).replace("USE", use)) == own


CHOSEN = """%w = select i1 false, ptr null, ptr %own
  store ptr %w, ptr %record
  USE"""


@pytest.mark.parametrize(("use", "own"), [
    ("", ["mine"]), ("store double 1.0, ptr %w", ["mine"]),
    ("store ptr %w, ptr %x", []), ("call void @other(ptr %w)", []),
])  # fmt: skip
def test_null_leads_nowhere(use: str, own: list[str]) -> None:
    """An address that is chosen is followed as the one that it is made of."""
    assert _own(CHOSEN.replace("USE", use)) == own
    assert _own(CHOSEN.replace("USE", use).replace("ptr null", "ptr %x")) == []


def test_a_record_is_what_the_loop_has_kept() -> None:
    assert _own(call="%x") == []


def test_roots() -> None:
    module = read(TEXT.replace("MORE", "").replace("CALL", "%tape"))
    rows = {i.name: i for f in module.functions.values() for i in f.instructions()}
    assert root_of(rows["second"]) is rows["own"] and root_of(rows["mine"]) is UNKNOWN
