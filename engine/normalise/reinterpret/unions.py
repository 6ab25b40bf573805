"""Floats that are only moved, out of memory where floats of another type are stored as well: moved as integers.

A `std::variant<float, double>` is copied as a `double`, whatever it holds:

    store float x, p                                        store float x, p
    b = load double, p                                      b = load i64, p
    d = phi double [b], [y]                     ->          d = phi i64 [b], [bitcast double y to i64]
    store double d, q                                       store i64 d, q

An integer may carry either of several floats, and so may its shadow and its adjoint. What is computed with as the float
that its type says stays one.
"""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    ConstFloat,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import CHOICES
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["bits_of_float", "move_unions"]

_INTEGERS: dict[ty.Type, ty.Type] = {ty.F64: ty.I64, ty.F32: ty.I32}


def move_unions(fn: Function) -> bool:
    """Floats that are only moved, out of a union, are moved as integers. Returns whether anything changed."""
    loads = _loads_of_unions(fn)
    if not loads:
        return False
    users = uses_of(fn.blocks)
    web: dict[Value, None] = {}
    for load in loads:
        if load not in web:
            web |= _web(load, users) or {}
    for value in web:
        _retype(value)
    if web:
        _casts(fn, web)
    return bool(web)


def _loads_of_unions(fn: Function) -> list[Instruction]:
    """Loads of floats from variables of the function where floats of another type are stored in the same place."""
    stores: dict[Value, list[tuple[int, ty.Type]]] = {}
    loads: list[tuple[Value, int, Instruction]] = []
    for instr in fn.instructions():
        if instr.opcode not in ("load", "store") or instr.volatile or instr.ordering:
            continue
        type_ = instr.type if instr.opcode == "load" else instr.operands[0].type
        variable, at = _place(instr.operands[-1 if instr.opcode == "store" else 0])
        if variable is None or not type_.is_float:
            continue
        if instr.opcode == "store":
            stores.setdefault(variable, []).append((at, type_))
        elif type_ in _INTEGERS:
            loads.append((variable, at, instr))
    return [
        load for variable, at, load in loads
        if any(kind is not load.type and start < at + ty.store_size(load.type) and at < start + ty.store_size(kind)
               for start, kind in stores.get(variable, ()))
    ]  # fmt: skip


def _place(address: Value) -> tuple[Value | None, int]:
    """The variable of the function that an address lies in, and how far from its start."""
    at = 0
    while isinstance(address, Instruction) and address.opcode == "getelementptr" and address.elem is not None:
        by = address.operands[1]
        if len(address.operands) != 2 or not isinstance(by, ConstInt):
            return None, 0
        at += by.value * ty.size_of(address.elem)
        address = address.operands[0]
    return (address, at) if isinstance(address, Instruction) and address.opcode == "alloca" else (None, 0)


def _web(load: Instruction, users: Uses) -> dict[Value, None] | None:
    """What holds the same bits as the load, when nothing is done with them but to move them."""
    web: dict[Value, None] = {load: None}
    work: list[Instruction] = [load]
    while work:
        value = work.pop()
        joined = []
        for user in users.get(value, ()):
            if user.opcode in CHOICES:
                joined.append(user)
            elif user.opcode != "store" or user.operands[0] is not value or user.volatile or user.ordering:
                return None
        if value.opcode in CHOICES:
            joined += [o for o in _joined(value) if isinstance(o, Instruction) and o.opcode in CHOICES]
            joined += [o for o in _joined(value) if isinstance(o, Instruction) and _only_moved(o, users)]
        for other in joined:
            if other not in web:
                web[other] = None
                work.append(other)
    return web


def _joined(value: Instruction) -> list[Value]:
    return value.operands[1:] if value.opcode == "select" else value.operands


def _only_moved(load: Instruction, users: Uses) -> bool:
    plain = load.opcode == "load" and not load.volatile and not load.ordering
    return plain and all(user.opcode in CHOICES or user.opcode == "store" for user in users.get(load, ()))


def _retype(value: Value) -> None:
    assert isinstance(value, Instruction)
    value.type = _INTEGERS[value.type]
    value.flags = ()
    if value.opcode == "load":
        value.metadata = {k: v for k, v in value.metadata.items() if k == "dbg"}


def _casts(fn: Function, web: dict[Value, None]) -> None:
    """What comes into the web from outside of it comes as an integer."""
    for value in web:
        assert isinstance(value, Instruction) and value.block is not None
        first = 1 if value.opcode == "select" else 0
        for i, operand in enumerate(value.operands):
            if i < first or value.opcode == "load" or operand in web:
                continue
            block = value.blocks[i] if value.opcode == "phi" else value.block
            at = len(block.instructions) - 1 if value.opcode == "phi" else block.instructions.index(value)
            value.operands[i] = bits_of_float(operand, value.type, block, at)
    for instr in fn.instructions():
        if instr.opcode == "store" and instr.operands[0] in web:
            instr.metadata = {k: v for k, v in instr.metadata.items() if k == "dbg"}


def bits_of_float(value: Value, type_: ty.Type, block: Block, at: int) -> Value:
    """A float as an integer; the cast of one that is no constant stands at a place of a block."""
    if isinstance(value, ConstFloat):
        return ConstInt(type_, value.bits)
    if isinstance(value, ConstZero):
        return ConstInt(type_, 0)
    if isinstance(value, ConstUndef):
        return ConstUndef(type_, value.poison)
    cast = Instruction("bitcast", type_, [value])
    cast.block = block
    block.instructions.insert(at, cast)
    return cast
