"""The arena of the tape in the interpreter."""

from __future__ import annotations

import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Module
from oracle.externals import external
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain
from oracle.undefined import UNDEF, Fault


def call(machine: Machine, name: str, *args: int) -> int:
    """A function of the arena."""
    native = external(f"irgrad.tape.{name}")
    assert native is not None
    found: int = native(machine, None, list(args))
    return found


def test_memory_lives_until_the_arena_is_finished() -> None:
    machine = Machine(Module(), FloatDomain())
    arena, other = call(machine, "acquire"), call(machine, "acquire")
    p, later = call(machine, "alloc", arena, 24), machine.memory.allocate(8, heap=True)
    assert machine.memory.load(p + 16, ty.F64) is UNDEF
    machine.memory.store(p + 16, ty.F64, 1.5)
    with pytest.raises(Fault):
        machine.memory.store(p + 24, ty.F64, 1.5)
    call(machine, "at", arena, 3, 0)
    call(machine, "free_later", arena, later)
    call(machine, "finish_later", arena, other)
    assert machine.memory.load(p + 16, ty.F64) == 1.5
    machine.memory.store(later, ty.F64, 2.5)
    call(machine, "finish", arena)
    for address in (p + 16, later, arena, other):
        with pytest.raises(Fault, match="freed"):
            machine.memory.load(address, ty.F64)


def test_a_tape_of_the_caller() -> None:
    machine = Machine(Module(), FloatDomain())
    tape, ends = machine.memory.allocate(40), machine.memory.allocate(16)
    machine.memory.store(ends, ty.PTR, tape)
    machine.memory.store(ends + 8, ty.PTR, tape + 40)
    assert [call(machine, "carve", ends, n) for n in (8, 16)] == [tape, tape + 16]
    with pytest.raises(Fault, match="8 bytes too small"):
        call(machine, "carve", ends, 9)


def test_memory_that_was_not_found() -> None:
    machine = Machine(Module(), FloatDomain())
    arena = call(machine, "acquire")
    call(machine, "need", arena, 0, 8)
    with pytest.raises(Fault):
        call(machine, "need", arena, 1, 8)
    with pytest.raises(Fault, match="no arena"):
        call(machine, "alloc", machine.memory.allocate(8, heap=True), 8)
