"""Pointers that move by the distance of two allocations: `p += new - old`, after a block was copied or reallocated.

What a pointer leads to stays within one allocation for the analyses, and the shadows of two allocations lie at another
distance than they do. So that is refused; `new + (p - old)` is as far from `new` as `p` is from `old`, and is in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.differentiate.shared.refuse import place, refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.uses import Uses, uses_of

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["refuse_relocations"]


def refuse_relocations(unit: Unit) -> None:
    """Raise Unsupported for the first pointer to active memory that moves by the distance of two allocations."""
    users: dict[Function, Uses] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            moved = _moved(unit, instr, users) if instr.opcode == "sub" and _apart(unit, instr) else None
            if moved is not None:
                raise refuse(
                    unit, moved, "a pointer moves by the distance of two allocations",
                    because=f"that is computed at {place(unit, instr)}, and the shadows of the two lie at another one",
                    fix="write `new + (p - old)`, or keep indices in place of pointers",
                )  # fmt: skip


def _apart(unit: Unit, difference: Instruction) -> bool:
    """Whether a difference is that of addresses in different allocations: of other objects, or of one that was fresh
    when the other address was known already."""
    if difference.type is not ty.I64:
        return False
    first, second = map(_address, difference.operands)
    objects = unit.pointers.of(first), unit.pointers.of(second)
    if not all(objects):
        return False
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


def _moved(unit: Unit, difference: Instruction, users: dict[Function, Uses]) -> Instruction | None:
    """The first pointer with a shadow that a number made from this difference moves."""
    work: list[Value] = [difference]
    seen: set[Value] = {difference}
    while work:
        value = work.pop()
        for user, following in _following(unit, value, users):
            if user.type.is_ptr and user.opcode in ("getelementptr", "inttoptr"):
                if (unit.activity.pointer(user) and user.operands[0] is not value) or user.opcode == "inttoptr":
                    return user
                continue
            work += [v for v in following if v not in seen]
            seen.update(following)
    return None


def _following(unit: Unit, value: Value, users: dict[Function, Uses]) -> Iterator[tuple[Instruction, list[Value]]]:
    """The instructions that use a number, with the numbers that they make of it."""
    fn = value.block.function if isinstance(value, Instruction) and value.block is not None else None
    fn = fn or next((f for f in unit.pointers.functions if value in f.args), None)
    if fn is None:
        return
    if fn not in users:
        users[fn] = uses_of(fn.blocks)
    for user in users[fn].get(value, ()):
        if user.is_call:
            callees = [c for c in unit.pointers.callees(user) or () if not c.is_declaration]
            yield user, [c.args[i] for c in callees for i, arg in enumerate(user.args) if arg is value]
        else:
            yield user, [user] if user.type.is_int else []
