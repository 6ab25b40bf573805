"""The loads and stores through a pointer argument, found by following the pointer from definition to use.

Followed: address arithmetic, phi, select, casts, local variables of unoptimised code, arguments of calls. Not followed:
pointers that are kept in other memory. So what is found is certain, and there may be more.
"""

from __future__ import annotations

from collections.abc import Iterator

from irgrad.engine.analyses.memory.byte_kinds import INT, Kind
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.analyses.memory.tbaa import Tbaa, type_tag
from irgrad.engine.ir.model import Argument, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.types import Type
from irgrad.engine.ir.uses import uses_of

__all__ = ["accesses"]

_NUMBERS = having("about_numbers")
_SAME = having("same_memory")


def accesses(module: Module, start: Argument) -> Iterator[tuple[Instruction, Type, Kind | None]]:
    """(load or store, type of an element, what the source calls it) of the accesses through a pointer argument.

    The source's name is a float type, a pointer, INT for any integer, or None where it is not known (char, unions).
    """
    names, users = Tbaa(module), _Users()
    seen: set[Value] = {start}
    work: list[Value] = [start]
    while work:
        value = work.pop()
        for user in users.of(value):
            follow: list[Value] = []
            if user.opcode == "load" and user.operands[0] is value:
                yield user, user.type.scalar, _named(names, user, users)
            elif user.opcode == "store" and user.operands[1] is value:
                yield user, user.operands[0].type.scalar, _named(names, user, users)
            elif user.opcode == "store":
                follow = [load for load in users.of(user.operands[1]) if load.opcode == "load" and _slot(load)]
            elif user.opcode in _SAME:
                follow = [user]
            elif user.is_call:
                callee = resolve(user.callee)
                if isinstance(callee, Function) and not callee.is_declaration:
                    follow = [arg for arg, given in zip(callee.args, user.args, strict=False) if given is value]
            for found in follow:
                if found not in seen:
                    seen.add(found)
                    work.append(found)


def _named(names: Tbaa, access: Instruction, users: _Users) -> Kind | None:
    tag = type_tag(access)
    if tag:
        return names.kind(tag)
    stored = access.operands[0] if access.opcode == "store" else access
    if not stored.type.scalar.is_int:
        return None
    by = {stored.opcode} if isinstance(stored, Instruction) else set()
    bits = [stored.operands[0]] if isinstance(stored, Instruction) and stored.opcode == "bitcast" else []
    bits += [user for user in users.of(stored) if user.opcode == "bitcast"]
    floats = {value.type.scalar for value in bits if value.type.is_fp}
    if floats:  # the bits of a float, looked at as an integer too
        return floats.pop() if len(floats) == 1 else None
    return INT if not _NUMBERS.isdisjoint(by | {user.opcode for user in users.of(stored)}) else None


def _slot(load: Instruction) -> bool:
    """The whole of a local variable is read."""
    source = load.operands[0]
    return isinstance(source, Instruction) and source.opcode == "alloca" and load.type.is_ptr


class _Users:
    """Who uses a value, per function, on demand."""

    def __init__(self) -> None:
        self._known: dict[Function, dict[Value, list[Instruction]]] = {}

    def of(self, value: Value) -> list[Instruction]:
        """The instructions of its function that use a value."""
        fn = value.function if isinstance(value, Argument) else None
        if isinstance(value, Instruction) and value.block is not None:
            fn = value.block.function
        if fn is None:
            return []
        if fn not in self._known:
            self._known[fn] = uses_of(fn.blocks)
        return list(dict.fromkeys(self._known[fn].get(value, ())))
