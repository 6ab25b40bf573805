"""Reverse loops that count up, like the loop that they reverse.

The adjoint of a loop runs its iterations backwards, because an iteration may hand on what the next one reads. Where
none does, the adjoints of different iterations are summands of the same sums, and any order is right. Counting up, the
vector code of the loop needs no vectors turned round: with a few arrays each, those shuffles were half of the time of
a stencil's reverse loop.

A loop counts up when nothing active passes from one iteration to another:

    header phis   numbers of iterations, inactive values, sums (whose adjoint is the same in every iteration), and what
                  an iteration has loaded for the next (`neighbours.py` takes their adjoints to the memory that they
                  come from)
    memory        each active store writes memory of its own, which no other iteration loads or stores
    exits         nothing active but sums is read behind the loop

Wide derivatives count down: there vectors are the lanes.

Without this, `benchmarks.run burgers-swap` takes 1.21 of the time and `benchmarks.dense fdtd_2d` 1.18.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from irgrad.engine.analyses.evolution.affine import Scaled
from irgrad.engine.analyses.evolution.reductions import ADDITIONS
from irgrad.engine.differentiate.layout.leaves import has_pointer
from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.schedule.cells import change_places

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.analyses.evolution.affine import Affine
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

MANY = 32  # accesses of one loop that are compared with each other


def counts_up(facts: ReverseFacts, loop: Loop, held: Collection[Instruction]) -> bool:
    """Whether the reverse of a loop may count up; `held`: header phis that hold what was loaded from memory."""
    unit = facts.unit
    if unit.width != 1 or unit.runtime_activity or loop.children or loop.latch is None:
        return False
    if loop.exiting != [loop.latch] or loop.preheader is None or facts.top(loop) is None:
        return False
    sums: set[Value] = set()
    for phi in loop.header.phis:
        if facts.active(phi) and phi not in held:
            links = _sum(facts, loop, phi)
            if not links:
                return False
            sums |= links
    return not _leaves(facts, loop, sums) and _memory_apart(facts, loop)


def _sum(facts: ReverseFacts, loop: Loop, phi: Instruction) -> set[Value]:
    """The phi of a sum and the additions to it; empty unless nothing else in the loop reads any of them."""
    links: set[Value] = {phi}
    if not phi.type.is_fp or loop.latch is None:
        return set()
    latest = phi.operands[phi.blocks.index(loop.latch)]
    value: Value = phi
    users = facts.users
    while value is not latest:
        inside = [u for u in users.get(value, ()) if loop.contains(u.block)]
        if len(inside) != 1 or not _adds_to(inside[0], value) or inside[0].type is not phi.type:
            return set()
        value = inside[0]
        links.add(value)
    inside = [u for u in users.get(value, ()) if loop.contains(u.block)]
    return links if inside == [phi] and value is not phi else set()


def _adds_to(instr: Instruction, value: Value) -> bool:
    """Whether an instruction is the value plus something."""
    if instr.opcode == "fadd":
        return True
    if instr.opcode == "fsub":
        return instr.operands[0] is value
    return instr.opcode == "call" and (instr.callee_name or "").startswith(ADDITIONS) and instr.operands[2] is value


def _leaves(facts: ReverseFacts, loop: Loop, sums: set[Value]) -> bool:
    """Whether an active value, sums apart, is read behind the loop."""
    users = facts.users
    for block in loop.blocks:
        for instr in block.instructions:
            read = any(not loop.contains(user.block) for user in users.get(instr, ()))
            if read and instr not in sums and facts.active(instr):
                return True
    return False


class _Access:
    """An active load or store: address, size, objects."""

    __slots__ = ("base", "form", "objects", "size", "stores")

    def __init__(self, facts: ReverseFacts, pointer: Value, type_: ty.Type, stores: bool) -> None:
        self.base, self.form = facts.induction.address(pointer)
        self.size = ty.store_size(type_)
        self.objects = facts.unit.pointers.of(pointer)
        self.stores = stores


def _memory_apart(facts: ReverseFacts, loop: Loop) -> bool:
    """Whether what an iteration stores is nothing that another one loads or stores."""
    accesses = _accesses(facts, loop)
    if accesses is None:
        return False
    stores = [a for a in accesses if a.stores]
    return not stores or (
        len(accesses) <= MANY and all(_apart(facts, loop, store, other) for store in stores for other in accesses)
    )


def _accesses(facts: ReverseFacts, loop: Loop) -> list[_Access] | None:
    """The active accesses of a loop; None when there are others whose order may matter."""
    found: list[_Access] = []
    for block in loop.blocks:
        for instr in block.instructions:
            if instr.volatile or instr.ordering or instr.traits.has("synchronises") or instr.opcode == "alloca":
                return None
            if instr.opcode == "call" and not pure_call(instr):
                return None
            if instr.opcode == "load" and facts.active(instr):
                found.append(_Access(facts, instr.operands[0], instr.type, False))
            elif instr.opcode == "store" and facts.unit.activity.pointer(instr.operands[1]):
                if has_pointer(instr.operands[0].type):
                    return None
                found.append(_Access(facts, instr.operands[1], instr.operands[0].type, True))
    return found


def _apart(facts: ReverseFacts, loop: Loop, store: _Access, other: _Access) -> bool:
    """Whether a store and another access (or itself) never meet in different iterations."""
    if store.objects and other.objects and not store.objects & other.objects:
        return True
    if change_places(facts, store.base, other.base):
        return True
    if store.base is not other.base or not _steady(loop, store.base):
        return False
    first, second = store.form, other.form
    stride = abs(first.coefficient(loop))
    if first.terms != second.terms or not _moves_evenly(loop, first):
        return False
    delta = second.const - first.const
    return max(store.size, delta + other.size) - min(0, delta) <= stride


def _steady(loop: Loop, value: Value) -> bool:
    """Whether a value is computed outside of a loop."""
    return not (isinstance(value, Instruction) and loop.contains(value.block))


def _moves_evenly(loop: Loop, form: Affine) -> bool:
    """Whether an address grows by a constant in each iteration."""
    return all(
        symbol.loop is not loop if isinstance(symbol, Scaled) else _steady(loop, symbol) if isinstance(symbol, Value)
        else True
        for symbol in form.terms
    )  # fmt: skip
