"""Addresses that a worksharing loop reads are read before it, where no iteration may change them."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.addresses import address_before, settle_addresses

LOOP = """
@its = internal global ptr null
@array = internal global [9 x double] zeroinitializer
declare void @unknown(ptr)
define void @f(ptr %m, ptr %q, i64 %n) {
entry:
  %own = alloca ptr
  store ptr %q, ptr %own
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %more, %next ]
  %x = load double, ptr %q
BODY
next:
  %more = add i64 %i, 1
  %end = icmp eq i64 %more, %n
  br i1 %end, label %done, label %loop
done:
  ret void
}
"""
MEMBER = """  %at = getelementptr i8, ptr %m, i64 16
  %y = load ptr, ptr %at
  %place = getelementptr double, ptr %y, i64 %i
  %old = atomicrmw fadd ptr %place, double %x monotonic, align 8
  br label %next"""
SOMETIMES = """  %c = fcmp ogt double %x, 1.0
  br i1 %c, label %some, label %next
some:
""" + MEMBER


def _module(body: str) -> Module:
    return read(LOOP.replace("BODY", body), ["f"])


def _settled(module: Module) -> bool:
    fn = module.functions["f"]
    loop = get(Loops, fn).top[0]
    return settle_addresses(fn, loop, Dependence(fn, Pointers(module, fn), Induction(fn)))


def _before(module: Module) -> list[Instruction]:
    return [i for i in module.functions["f"].entry.instructions if i.opcode == "load"]


@pytest.mark.parametrize("body", [
    MEMBER, MEMBER.replace("%m, i64 16", "@its, i64 0"), MEMBER.replace("%m, i64 16", "%own, i64 0"),
    f"  %z = load i64, ptr %m\n{SOMETIMES}",  # what %m leads to can be read
    SOMETIMES.replace("%m, i64 16", "@its, i64 0"),
    MEMBER.replace("  br label", "  store double %x, ptr %place\n  store i32 3, ptr %q\n  br label"),  # no addresses
])  # fmt: skip
def test_they_are_read_before_the_loop(body: str) -> None:
    module = _module(body)
    assert _settled(module)
    assert len(_before(module)) == 1
    assert "load ptr" in to_text(module).partition("loop:")[0]
    assert "load ptr" not in to_text(module).partition("loop:")[2]


@pytest.mark.parametrize("body", [
    SOMETIMES,  # nothing shows that there is something to read
    MEMBER.replace("%m, i64 16", "%m, i64 %i"),
    MEMBER.replace("  br label", "  store ptr %q, ptr %at\n  br label"),
    MEMBER.replace("  br label", "  store i64 3, ptr %at\n  br label"),  # may be the bytes of one
    MEMBER.replace("  br label", "  call void @unknown(ptr %m)\n  br label"),
    MEMBER.replace("  br label", "  %g = atomicrmw xchg ptr %at, i64 3 monotonic, align 8\n  br label"),
    MEMBER.replace("load ptr", "load volatile ptr"),
])  # fmt: skip
def test_what_may_change_or_not_be_there_stays(body: str) -> None:
    module = _module(body)
    assert not _settled(module)
    assert not _before(module)


def test_pointers_to_pointers() -> None:
    module = _module(MEMBER.replace("%y = load ptr, ptr %at", "%r = load ptr, ptr %at\n  %y = load ptr, ptr %r"))
    assert _settled(module)
    assert len(_before(module)) == 2


def test_variables_get_an_address_that_llvm_does_not_see_through() -> None:
    module = _module(MEMBER.replace("ptr %y, i64 %i", "ptr @array, i64 %i"))
    fn = module.functions["f"]
    loop = get(Loops, fn).top[0]
    rows = [i for block in loop.blocks for i in block.instructions if i.opcode == "atomicrmw"]
    assert address_before(fn, loop, rows)
    assert "@array" not in to_text(module).partition("loop:")[2]
    assert "load volatile i64" in to_text(module).partition("loop:")[0]
    assert not address_before(fn, loop, rows)
