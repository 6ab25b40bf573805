"""Where floats lie in the memory that a call of the notation gives, by what the caller says.

An optimiser may leave no more of a store of a float than that of an integer with its bits. What else there is to tell
floats from counts is with the caller: the type of its variable, or how it uses the memory that it allocated. If all
that it does there is reading and writing one type of floats, at the place that the call is given too, and only calls
of the notation and `free` are told of it, then that is what the memory holds. Members of structs are no evidence,
since the next one may be a count; a variable of structs is, for all its members: a function that sorts them by an
integer moves numbers that it never looks at.
"""

from __future__ import annotations

from collections.abc import Mapping

from irgrad.engine.analyses.memory.byte_kinds import leaves, told_layout
from irgrad.engine.analyses.memory.tbaa import Tbaa, type_tag
from irgrad.engine.differentiate.layout.lanes import constant_offset
from irgrad.engine.enzyme.calls import DerivativeCall, Parameter
from irgrad.engine.enzyme.names import PREFIX
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstInt, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.uses import uses_of
from irgrad.rules.effects import facts

__all__ = ["elements", "formals_of"]

_HARMLESS = ("llvm.memset.", "llvm.lifetime.", "llvm.dbg.", "llvm.assume", PREFIX)
_Uses = Mapping[Value, list[Instruction]]


def formals_of(call: DerivativeCall) -> list[Argument]:
    """The parameters of the differentiated function, without that for its result."""
    return [formal for formal in call.function.args if "sret" not in formal.attrs]


def elements(module: Module, caller: Function, call: DerivativeCall) -> tuple[str, ...]:
    """The type of the floats that a root's arguments point to where they are parameters, a result, a variable or
    allocated memory of nothing else; the layout of structs in a variable (`told_layout`); "" for others."""
    uses, tags = uses_of(caller.blocks), Tbaa(module)
    pairs = zip(formals_of(call), call.parameters, strict=True)
    kinds = [(_memory(call, formal, said, uses, tags), _structs(call, formal, said)) for formal, said in pairs]
    kinds += [(call.result.kind, None)] if call.result.kind is not None else []
    return tuple(_of_floats(kind) or (told_layout(structs) if structs is not None else "") for kind, structs in kinds)


def _structs(call: DerivativeCall, formal: Argument, said: Parameter) -> ty.Type | None:
    """The struct that the caller's variable is, or is an array of, where a pointer leads to the begin of one."""
    if not formal.type.is_ptr or said.activity == "const" or said.value.memory or len(said.value.args) != 1:
        return None
    pointer, steps = call.instr.args[said.value.first], list[Instruction]()
    while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
        steps.append(pointer)
        pointer = pointer.operands[0]
    kind = _declared(pointer)
    while isinstance(kind, ty.ArrayType):
        kind = kind.elem
    if not isinstance(kind, ty.StructType) or not kind.fields or not ty.size_of(kind):
        return None
    return kind if all(_whole_steps(step, ty.size_of(kind)) for step in steps) else None


def _whole_steps(address: Instruction, size: int) -> bool:
    """Whether a getelementptr moves its pointer by a multiple of so many bytes."""
    assert address.elem is not None
    first, *inner = address.operands[1:]
    scale = ty.size_of(address.elem)
    if not isinstance(first, ConstInt) and scale % size:
        return False
    kind = address.elem
    for index in inner:
        if not isinstance(kind, ty.ArrayType):
            return _step(address) % size == 0 and all(isinstance(i, ConstInt) for i in address.operands[1:])
        kind = kind.elem
        if not isinstance(index, ConstInt) and ty.size_of(kind) % size:
            return False
    return _step(address) % size == 0


def _of_floats(kind: ty.Type) -> str:
    parts = leaves(kind)
    whole = sum(size for _, _, size in parts) == ty.size_of(kind) and len({part for _, part, _ in parts}) == 1
    return str(parts[0][1]) if whole and isinstance(parts[0][1], ty.FloatType) else ""


def _memory(call: DerivativeCall, formal: Argument, said: Parameter, uses: _Uses, tags: Tbaa) -> ty.Type:
    """The type of a parameter, or if that is a pointer, of the caller's memory that it leads to."""
    if not formal.type.is_ptr or said.activity == "const" or said.value.memory:
        return formal.type
    pointers = [call.instr.args[given.first] for given in (said.value, *said.shadows)]
    return _declared(pointers[0]) or _used_as(pointers, uses, tags) or formal.type


def _declared(pointer: Value) -> ty.Type | None:
    """The type of the variable that a pointer leads to."""
    while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
        pointer = pointer.operands[0]
    if isinstance(pointer, GlobalVariable):
        return pointer.value_type
    return pointer.elem if isinstance(pointer, Instruction) and pointer.opcode == "alloca" else None


def _used_as(pointers: list[Value], uses: _Uses, tags: Tbaa) -> ty.Type | None:
    """The one type of floats as which a caller uses memory that it allocates, and shadows of it, through pointers of
    its own; None where there is another use, or none of what the pointers lead to."""
    at: dict[Value, int] = dict.fromkeys(pointers, 0)  # bytes behind what the call is given, constant parts of them
    work, kinds = list(pointers), set[tuple[ty.Type, bool]]()

    def more(offset: int, *values: Value) -> None:
        work.extend(value for value in values if value not in at)
        at.update((value, offset) for value in values if value not in at)

    while work:
        address = work.pop()
        here = at[address]
        if not isinstance(address, Instruction):
            return None
        if address.opcode == "getelementptr":
            if isinstance(address.elem, ty.StructType):
                return None
            more(here - _step(address), address.operands[0])
        elif address.opcode == "load":
            if not _variable(address.operands[0], uses):
                return None
            more(here, *_through(address.operands[0], uses))
        elif address.opcode != "call" or not _allocates(address):
            return None
        for user in uses.get(address, ()):
            if user.opcode == "getelementptr" and user.operands[0] is address:
                more(here + _step(user), user)
            elif user.opcode == "store" and user.operands[0] is address:
                if not _variable(user.operands[1], uses):
                    return None
                more(here, *_through(user.operands[1], uses))
            elif user.opcode in ("load", "store"):
                kind = user.type if user.opcode == "load" else user.operands[0].type
                if not _plain(user, address, kind, tags):
                    return None
                kinds.add((kind, here == 0))
            elif user.opcode != "icmp" and not _harmless(user):
                return None
    found = {kind for kind, _ in kinds}
    return found.pop() if len(found) == 1 and any(first for _, first in kinds) else None


def _step(address: Instruction) -> int:
    """How far a getelementptr moves its pointer, without what its variable indices add."""
    assert address.elem is not None
    indices = [i if isinstance(i, ConstInt) else ConstInt(ty.I64, 0) for i in address.operands[1:]]
    return constant_offset(address.elem, indices) or 0


def _plain(access: Instruction, address: Instruction, kind: ty.Type, tags: Tbaa) -> bool:
    """Whether an access is to a float that is no member of a struct, as far as the IR says: by its tag, by the type
    that its address counts in, or (before any optimisation) because it is through a variable."""
    if not isinstance(kind, ty.FloatType):
        return False
    tag = type_tag(access)
    if tag is not None:
        return not tags.of_member(tag)
    return address.opcode == "load" or (address.opcode == "getelementptr" and address.elem is kind)


def _variable(place: Value, uses: _Uses) -> bool:
    """Whether a place is a pointer variable of the caller's own, which is read and set in its code alone."""
    if not isinstance(place, Instruction) or place.opcode != "alloca" or place.elem is None or not place.elem.is_ptr:
        return False
    users = [user for user in uses.get(place, ()) if not _harmless(user)]
    return all(user.opcode == "load" or (user.opcode == "store" and user.operands[0] is not place) for user in users)


def _through(place: Value, uses: _Uses) -> list[Value]:
    """What a pointer variable is given, and what is read from it."""
    return [user if user.opcode == "load" else user.operands[0]
            for user in uses.get(place, ()) if not user.is_call]  # fmt: skip


def _allocates(call: Instruction) -> bool:
    known = facts(call.callee_name or "")
    return known is not None and known.allocates


def _harmless(user: Instruction) -> bool:
    """Whether a call says nothing about the type of memory, and tells nobody of it but what is differentiated."""
    name = user.callee_name or "" if user.opcode == "call" else ""
    known = facts(name)
    return name.startswith(_HARMLESS) or (known is not None and known.frees is not None)
