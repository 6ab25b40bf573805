"""Pointers that move by the distance of two allocations: `p += new - old`, after a block was copied or reallocated, and
pointers kept as the distance from where they lie.

What a pointer leads to stays within one allocation for the analyses, and the shadows of two allocations lie at another
distance than they do. So that is refused; `new + (p - old)` is as far from `new` as `p` is from `old`, and is in order.

Where it is not known whether two addresses lie in one allocation, derivatives look when they run (`distances.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.activity.numbers import copies_of
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.memory.objects import bits_of
from irgrad.engine.analyses.memory.strided_sets import TOP, Offsets, touches
from irgrad.engine.differentiate.shared.refuse import place, refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.opcodes import of_kind
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.legality.same_allocation import SameAllocation

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["Relocations", "refuse_relocations"]

_TELLS_NOTHING = of_kind("compare") | {"load"}
"""What no distance can be made from again: how two of them compare decides which number is taken, as a branch does."""
_MOST = 16
"""Places of one object at which a number is known to lie; beyond that it lies anywhere in it."""


class Relocations:
    """The distances of two addresses that move pointers to active memory, and are not known to be within one
    allocation. `checked`: those of which a derivative can see where it runs whether the shadows are as far apart;
    `refused`: the first of the others, and the pointer that it moves."""

    def __init__(self, unit: Unit) -> None:
        self.checked: list[Instruction] = []
        self.refused: tuple[Instruction, Instruction] | None = None
        trail: _Trail | None = None
        for fn in unit.pointers.functions if not unit.request.followed else ():
            for instr in fn.instructions():
                if self.refused is None and _is_distance(unit, instr):
                    trail = trail or _Trail(unit)
                    surely = _apart(unit, instr)
                    moved = [p for p in trail.moved(instr, surely=surely) if _from_one(unit, instr, p)]
                    if moved and not surely and all(_checkable(unit, instr, pointer) for pointer in moved):
                        self.checked.append(instr)
                    elif moved:
                        self.refused = instr, moved[0]


def refuse_relocations(unit: Unit) -> None:
    """Raise Unsupported for the first pointer to active memory that moves by the distance of two allocations. What a
    derivative adds moves pointers within their allocations only."""
    refused = unit.get(Relocations).refused
    if refused is not None:
        raise refuse(
            unit, refused[1], "a pointer moves by the distance of two allocations",
            because=f"that is computed at {place(unit, refused[0])}, and the shadows of the two lie at another one",
            fix="write `new + (p - old)`, or keep indices in place of pointers",
        )  # fmt: skip


def _from_one(unit: Unit, distance: Instruction, moved: Instruction) -> bool:
    """Whether what moves may be in the memory of one of the two addresses: else it moves within its own memory, by a
    number like any other."""
    base = unit.pointers.of(moved.operands[0]) if moved.opcode == "getelementptr" else 1
    ends = unit.pointers.of(_address(distance.operands[0])) | unit.pointers.of(_address(distance.operands[1]))
    return bool((base | ends) & 1 or base & ends)


def _checkable(unit: Unit, distance: Instruction, moved: Instruction) -> bool:
    """Whether a pointer moves right wherever the shadows of two addresses are as far apart as these are: their shadows
    are at hand, each beside the memory that it is of, or what moves is taken to be in all of that."""
    if moved.opcode != "getelementptr":
        return False
    pointers = [o.operands[0] for o in distance.operands if isinstance(o, Instruction) and o.opcode == "ptrtoint"]
    objects = 0
    for pointer in pointers:
        objects |= unit.pointers.of(pointer)
    known = len(pointers) == 2 and not objects & 1 and all(isinstance(p, Instruction | Argument) for p in pointers)
    heap = all(unit.pointers.objects[bit].kind == "heap" for bit in bits_of(objects))
    return known and (heap or not objects & ~unit.pointers.of(moved))


def _is_distance(unit: Unit, instr: Instruction) -> bool:
    return instr.opcode == "sub" and instr.type is ty.I64 and all(unit.pointers.of(_address(o)) for o in instr.operands)


def _apart(unit: Unit, difference: Instruction) -> bool:
    """Whether a difference is that of addresses in different allocations: of other objects, or of one that was fresh
    when the other address was known already."""
    first, second = map(_address, difference.operands)
    objects = unit.pointers.of(first), unit.pointers.of(second)
    return not objects[0] & objects[1] or _fresh(unit, first, second) or _fresh(unit, second, first)


def _address(value: Value) -> Value:
    return value.operands[0] if isinstance(value, Instruction) and value.opcode == "ptrtoint" else value


def _fresh(unit: Unit, new: Value, old: Value) -> bool:
    """Whether `new` is memory that is allocated where `old` was known already."""
    if not isinstance(new, Instruction) or not new.is_call or new.block is None or new.block.function is None:
        return False
    effect = unit.pointers.effect(new)
    if effect is None or not (effect.allocates or effect.moves is not None):
        return False
    return get(Dominators, new.block.function).value_dominates(old, new)


class _Trail:
    """Where the distance of two allocations gets to: through arithmetic, calls and memory, field by field."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._users: dict[Function, Uses] = {}
        self._loads: dict[int, list[tuple[Instruction, Offsets]]] = {}
        self._copies: dict[int, list[tuple[Offsets, Value]]] = {}
        self._read: dict[Instruction, list[Value]] = {}
        self._callers: dict[Function, list[Instruction]] = {}
        for fn in unit.pointers.functions:
            for instr in fn.instructions():
                if instr.is_call:
                    for target, source in copies_of(unit.pointers, instr):
                        for bit, where in unit.types.ranges.places(source).items():
                            self._copies.setdefault(bit, []).append((where, target))
                    for callee in unit.pointers.callees(instr) or ():
                        self._callers.setdefault(callee, []).append(instr)
                elif instr.opcode == "load" and _holds_numbers(instr.type):
                    for bit, where in unit.types.ranges.places(instr.operands[0]).items():
                        self._loads.setdefault(bit, []).append((instr, where))
        self._same = SameAllocation(unit, self._callers, self._uses)

    def moved(self, difference: Instruction, *, surely: bool) -> list[Instruction]:
        """The pointers with a shadow that a number made from this difference moves. Where the addresses are not
        `surely` in different allocations, those do that are loaded again and not shown to be in one."""
        found: list[Instruction] = []
        work: list[tuple[Value, bool]] = [(difference, surely)]
        seen = set(work)
        first, second = difference.operands
        if not surely and self._same.shown(first, second, difference):
            return found
        while work:
            value, counts = work.pop()
            for user in self._uses(value):
                if user.type.is_ptr and user.opcode in ("getelementptr", "inttoptr"):
                    if counts and (user.opcode == "inttoptr" or self._displaced(user, value)):
                        found.append(user)
                    continue
                kept = counts or user.opcode == "store"
                following = [(v, kept) for v in self._following(user, value) if (v, kept) not in seen]
                work += following
                seen.update(following)
        return found

    def _displaced(self, address: Instruction, number: Value) -> bool:
        return address.operands[0] is not number and self._unit.activity.pointer(address)

    def _uses(self, value: Value) -> list[Instruction]:
        fn = value.block.function if isinstance(value, Instruction) and value.block is not None else None
        fn = fn or next((f for f in self._unit.pointers.functions if value in f.args), None)
        if fn is None:
            return []
        if fn not in self._users:
            self._users[fn] = uses_of(fn.blocks)
        return list(self._users[fn].get(value, ()))

    def _following(self, user: Instruction, value: Value) -> list[Value]:
        """The numbers that an instruction makes of one."""
        if user.is_call:
            callees = [c for c in self._unit.pointers.callees(user) or () if not c.is_declaration]
            return [c.args[i] for c in callees for i, arg in enumerate(user.args) if arg is value and i < len(c.args)]
        if user.opcode == "store":
            if user.operands[0] is not value:
                return []
            if user not in self._read:
                self._read[user] = self._loaded(user)
            return self._read[user]
        if user.opcode == "ret":
            fn = user.block.function if user.block is not None else None
            return list(self._callers.get(fn, ())) if fn is not None else []
        chosen = user.opcode == "select" and value not in user.operands[1:]
        return [user] if _holds_numbers(user.type) and not chosen and user.opcode not in _TELLS_NOTHING else []

    def _loaded(self, store: Instruction) -> list[Value]:
        """What is read where a number was stored, or where that was copied to."""
        places = self._unit.types.ranges.places
        size = ty.store_size(store.operands[0].type)
        held = {bit: {where} for bit, where in places(store.operands[1]).items()}
        work = list(held.items())
        while work:
            bit, wheres = work.pop()
            for start, target in self._copies.get(bit, ()):
                for goal, there in places(target).items():
                    known = held.setdefault(goal, set())
                    if TOP in known:
                        continue
                    new = {_copied(where, start, there) for where in wheres} - known
                    if new:
                        new = {TOP} if len(known) + len(new) > _MOST else new
                        known |= new
                        work.append((goal, new))
        return [
            load for bit, wheres in held.items() for load, at in self._loads.get(bit, ())
            if any(touches(where, at, 1 - ty.store_size(load.type), size) for where in wheres)
        ]  # fmt: skip


def _copied(where: Offsets, start: Offsets, there: Offsets) -> Offsets:
    """Where in a copy that begins `there` lies what was at `where` in the source, which begins at `start`."""
    return where.shift(there.start - start.start) if start.exact and there.exact else TOP


def _holds_numbers(type_: ty.Type) -> bool:
    return type_.scalar.is_int or type_.is_aggregate
