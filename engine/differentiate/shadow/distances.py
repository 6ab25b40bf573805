"""Distances of two addresses that move pointers: where it is not known whether both lie in one allocation, a derivative
looks whether their shadows are as far apart.

`p - *m` of an iterator of a deque is an index, which moves a pointer and its shadow alike. Of two allocations it is
none: what it moves p by leads elsewhere from the shadow of p. Such a call ends with an error that names the place. Two
blocks of one size may lie at a distance of two such blocks and so may their shadows, if each is allocated behind its
block; but a block and its shadow do not overlap, so that no distance within the block is longer than from the one to
the other.
"""

from __future__ import annotations

from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.shared.refuse import place
from irgrad.engine.differentiate.shared.sweeps import PrimalCopy
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import ConstInt, Instruction, Value

__all__ = ["look"]


def look(sweep: PrimalCopy, distance: Instruction) -> None:
    """Behind the copy of a distance: end the call where the shadows of the two addresses are not as far apart. One of
    them may be null where nobody uses the number."""
    b, memory = sweep.b, sweep.unit.memory
    pointers: list[Value] = [operand.operands[0] for operand in distance.operands]  # type: ignore[attr-defined]
    wanted = memory.scaled(b, sweep.value(distance))
    wrong: Value | None = None
    number = sweep.value(distance)
    for first, second in zip(*(memory.each(b, sweep.shadow(p)) for p in pointers), strict=True):
        other = b.icmp("ne", b.sub(_number(b, first), _number(b, second), ()), wanted)
        gap = b.sub(_number(b, first), _number(b, sweep.value(pointers[0])), ())
        beyond = b.icmp("ugt", _size(b, number), _size(b, gap))
        other = b.binary("or", other, b.binary("and", beyond, b.icmp("ne", gap, ConstInt(ty.I64, 0))))
        wrong = other if wrong is None else b.binary("or", wrong, other)
    for pointer in pointers:
        there = b.icmp("ne", sweep.value(pointer), zero_of(ty.PTR))
        wrong = there if wrong is None else b.binary("and", wrong, there)
    assert wrong is not None
    where = locate(sweep.unit.module, distance) or place(sweep.unit, distance)
    b.call(sweep.unit.runtime("irgrad.tape.apart"), [wrong, sweep.unit.text_constant(where)])


def _size(b: Builder, number: Value) -> Value:
    zero = ConstInt(ty.I64, 0)
    return b.select(b.icmp("slt", number, zero), b.sub(zero, number, ()), number)


def _number(b: Builder, pointer: Value) -> Value:
    return b.cast("ptrtoint", pointer, ty.I64)
