"""The largest or smallest of what a loop loads, as the address that it was loaded from.

    loop:                                        loop:
      m = phi(start, m')                           m = phi(start, m'), w = phi(&start, w')
      v = load a                                   v = load a
      m' = select(v > m, v, m)              ->     m' = select(v > m, v, m), w' = select(v > m, a, w)
    exit:                                        exit:
      ... m' ...                                   ... load w' ...

The value behind the loop is that of one element, and so is its derivative. As the value of a chain of choices it has
the derivative of each of them: which way each went is kept, and the loop is run backwards to find the one element that
was chosen. The address says it at once, in both modes. The chain stays for what is compared.

A new extremum is rare: of n numbers in any order the k-th is one with probability 1/k. So the choices say that they
nearly always keep what they have, and are branches of the machine code, of which none waits for the comparison before
it (measured: log-sum-exp of 10^6 numbers, 0.75 of the time). A function that returns the larger of two numbers is
called for those that are not less only.

Done where nothing writes the memory that is loaded from. Ties go where the chain sends them. Starts from
memory of its own, since a start need not be loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import note_choice, replace_uses
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.demote import close_loops
from irgrad.engine.normalise.scratch import normal_form

__all__ = ["Extremum", "address_extrema", "chosen", "running_extrema"]

_FUNCTIONS = ("llvm.maxnum.", "llvm.minnum.", "llvm.maximumnum.", "llvm.minimumnum.")
_OFTEN = 1 << 20  # choices that keep what they have, for one that does not
Uses = Mapping[Value, list[Instruction]]


@dataclass(slots=True)
class Extremum:
    """A running extremum: its phi in the header, its next value, each item, the phis behind the loop."""

    loop: Loop
    phi: Instruction
    last: Instruction
    item: Instruction
    exits: list[Instruction]


def address_extrema(module: Module, root: Function) -> int:
    """Have the loops of a module find where their extrema are. Returns how many do."""
    if not normal_form(root):
        return 0
    found = [(fn, one) for fn in module.functions.values() if fn.blocks for one in running_extrema(fn, _loaded)]
    if not found:
        return 0
    pointers = points_to(module, root)
    count = 0
    for fn, one in found:
        if fn in pointers.functions and _unwritten(pointers, one):
            _rewrite(module, fn, one)
            count += 1
    return count


def _loaded(item: Instruction) -> bool:
    return item.opcode == "load" and not item.volatile and not item.ordering


def running_extrema(fn: Function, wanted: Callable[[Instruction], bool]) -> list[Extremum]:
    """The extrema of items of one kind in the loops of a function. Values of its loops leave them through phis then."""
    found = [(loop, phi) for loop in get(Loops, fn).all if loop.latch is not None for phi in loop.header.phis]
    if not any((item := _item(o, phi)) is not None and wanted(item) for _, phi in found for o in phi.operands):
        return []
    close_loops(fn)
    uses, loops = uses_of(fn.blocks), get(Loops, fn)
    extrema = (_extremum(loop, phi, loops, uses) for loop in loops.all for phi in loop.header.phis)
    return [one for one in extrema if one is not None and wanted(one.item)]


def _extremum(loop: Loop, phi: Instruction, loops: Loops, uses: Uses) -> Extremum | None:
    if loop.latch is None or loop.preheader is None or not isinstance(phi.type, ty.FloatType):
        return None
    last = phi.operands[phi.blocks.index(loop.latch)]
    item = _item(last, phi)
    if item is None or not isinstance(last, Instruction):
        return None
    inside = loop is loops.of(last.block) is loops.of(item.block) if last.block and item.block else False
    users = [user for value in (phi, last) for user in uses.get(value, ())]
    exits = [user for user in dict.fromkeys(users) if user.opcode == "phi" and not loop.contains(user.block)]
    others = [user for user in users if user not in exits and user is not phi and user is not last]
    whole = all(set(user.operands) <= {phi, last} for user in exits)
    dedicated = all(loop.contains(source) for exit_ in loop.exits for source in loops.cfg.preds(exit_))
    if not inside or not exits or not whole or not dedicated or any(user.opcode != "fcmp" for user in others):
        return None
    return Extremum(loop, phi, last, item, exits)


def _item(last: Value, phi: Instruction) -> Instruction | None:
    """What the next value of a phi is, if it is not the phi again, with which the phi is compared."""
    if not isinstance(last, Instruction):
        return None
    if last.opcode == "select" and isinstance(last.operands[0], Instruction) and last.operands[0].opcode == "fcmp":
        sides = last.operands[1:]
    elif last.opcode == "call" and (last.callee_name or "").startswith(_FUNCTIONS):
        sides = last.args
    else:
        return None
    others = [side for side in sides if side is not phi]
    return others[0] if len(others) == 1 and isinstance(others[0], Instruction) else None


def _unwritten(pointers: Pointers, one: Extremum) -> bool:
    """Whether nothing writes the memory that is loaded from. Scratch memory is written again for the next extremum: its
    address would have to be kept for each, and an adjoint that goes to some place of it costs more than the choices
    (measured: a Gaussian mixture over one workspace, 1.8 of the time)."""
    objects = pointers.expand(pointers.of(one.item.operands[0]))
    return bool(objects) and not objects & pointers.writes(pointers.root)


def chosen(at: Builder, one: Extremum, now: Value, before: Value) -> Value:
    """One value where this iteration's item becomes the extremum, else another; in front of the builder's place is the
    extremum's next value."""
    phi, last = one.phi, one.last
    if last.opcode == "select":
        sides: list[Value] = [before if side is phi else now for side in last.operands[1:]]
        return at.select(last.operands[0], *sides)
    if last.args[0] is phi:  # the argument that the result equals, of two the first
        # "Not equal" can only be less (greater), or no order: comparisons that a processor answers with one flag.
        return at.select(at.fcmp("ult" if _least(last) else "ugt", last, phi), now, before)
    return at.select(at.fcmp("oeq", last, one.item), now, before)


def _rarely(module: Module, at: Builder, one: Extremum, now: Value, before: Value) -> Value:
    """The same as `chosen`, the extremum's next value as well, by choices that nearly always keep what they have."""
    phi, last = one.phi, one.last
    if last.opcode == "select":
        choices = [last, chosen(at, one, now, before)]
    else:
        keeps = at.fcmp("ogt" if _least(last) else "olt", one.item, phi)
        other = chosen(at, one, now, before)
        choices = [at.select(keeps, phi, last), at.select(keeps, before, other)]
        assert one.loop.latch is not None
        phi.operands[phi.blocks.index(one.loop.latch)] = choices[0]
    for choice in choices:
        assert isinstance(choice, Instruction)
        first, second = (_OFTEN, 1) if choice.operands[1] in (phi, before) else (1, _OFTEN)
        note_choice(module, choice, first, second)
    return choices[1]


def _least(call: Instruction) -> bool:
    return (call.callee_name or "").startswith(("llvm.minnum.", "llvm.minimumnum."))


def _rewrite(module: Module, fn: Function, one: Extremum) -> None:
    phi, last, item, loop = one.phi, one.last, one.item, one.loop
    assert loop.preheader is not None and loop.latch is not None and last.block is not None
    align = max(item.align, ty.align_of(phi.type))
    slot = Builder(fn.entry, 0).alloca(phi.type, ConstInt(ty.I32, 1), align)
    start = phi.operands[phi.blocks.index(loop.preheader)]
    Builder(loop.preheader, len(loop.preheader.instructions) - 1).store(start, slot, align)
    where = Builder(loop.header, 0).phi(ty.PTR, [(slot, loop.preheader)])
    at = Builder(last.block, last.block.instructions.index(last) + 1)
    latest = _rarely(module, at, one, item.operands[0], where)
    where.operands.append(latest)
    where.blocks.append(loop.latch)
    places: dict[Value, Value] = {phi: where, last: latest}
    for old in one.exits:
        assert old.block is not None
        sources = [(places[v], source) for v, source in zip(old.operands, old.blocks, strict=True)]
        place = Builder(old.block, 0).phi(ty.PTR, sources)
        found = Builder(old.block, len(old.block.phis)).load(old.type, place, align=item.align)
        assert isinstance(found, Instruction)
        found.metadata = {"dbg": item.metadata["dbg"]} if "dbg" in item.metadata else {}
        found.name = old.name
        old.block.instructions.remove(old)
        replace_uses(fn, {old: found})
