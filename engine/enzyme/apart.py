"""Which pointers of a call of the notation lead to memory of their own: it overlaps with nothing else that is given.

Pointers of a program may overlap, and then each store through one of them may change what another one leads to: what
was read there has to be kept, and sums in memory stay there. Where the caller itself has the memory (a local variable,
an allocation) and has told nobody its address but this call, nothing else leads to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from irgrad.engine.analyses.memory.objects import alloca_size, has_pointer
from irgrad.engine.enzyme.calls import DerivativeCall, Parameter
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Function, GlobalVariable, Instruction, Value
from irgrad.engine.ir.types import may_hold_pointer
from irgrad.engine.ir.uses import uses_of
from irgrad.rules.effects import facts

__all__ = ["bytes_given", "may_overlap", "own_memory"]

_HARMLESS = ("llvm.memset.", "llvm.lifetime.", "llvm.dbg.", "llvm.assume")


def own_memory(caller: Function, call: DerivativeCall) -> frozenset[int]:
    """The parameters whose value and shadows each lead to memory of their own, in which the caller put no pointers."""
    uses = uses_of(caller.blocks)
    return frozenset(i for i, said in enumerate(call.parameters) if _apart(call, said, uses))


def bytes_given(call: DerivativeCall) -> tuple[int, ...]:
    """For each parameter the bytes of the variable with pointers that the caller gives there; 0 where it is not known,
    or holds none. Calls that differ in it have derivatives of their own, so that arrays of numbers do not count."""
    return tuple(_own_bytes(call.instr.args[said.value.first]) if len(said.value.args) == 1 and not said.value.memory
                 and said.activity == "dup" else 0 for said in call.parameters)  # fmt: skip


def may_overlap(call: DerivativeCall) -> list[int]:
    """The parameters that lead to memory which may overlap, of a call in reverse or forward mode whose memory may be
    compared when it runs; none of another."""
    found = []
    if call.mode not in ("reverse", "forward") or call.width > 1 or call.through >= 0:
        return []
    if {"runtime_activity", "rounding"} & call.switches:
        return []
    formals = [formal for formal in call.function.args if "sret" not in formal.attrs]
    for i, (formal, said) in enumerate(zip(formals, call.parameters, strict=True)):
        given = (said.value, *said.shadows)
        if not formal.type.is_ptr:
            if said.activity == "dup" and not call.forward:  # its gradient goes to memory of the program
                return []
        elif i not in call.apart:
            if said.stride >= 0 or said.held is not None or any(one.memory or len(one.args) > 1 for one in given):
                return []
            if isinstance(call.instr.args[said.value.first], Function):
                return []
            found.append(i)
    return found


def _apart(call: DerivativeCall, said: Parameter, uses: Mapping[Value, list[Instruction]]) -> bool:
    given = (said.value, *said.shadows)
    if said.stride >= 0 or said.held is not None or any(one.memory or len(one.args) > 1 for one in given):
        return False
    return all(_own(call.instr.args[one.first], call.instr, uses) for one in given)


def _own(value: Value, call: Instruction, uses: Mapping[Value, list[Instruction]]) -> bool:
    """Whether a value is the begin of memory that the caller made, and that only the call is told of."""
    if not isinstance(value, Instruction) or not isinstance(value.type, ty.PtrType):
        return False
    return (value.opcode == "alloca" or _allocates(value)) and _kept(value, call, uses)


def _allocates(value: Instruction) -> bool:
    known = facts(value.callee_name or "") if value.opcode == "call" else None
    return known is not None and known.allocates


def _kept(memory: Instruction, call: Instruction, uses: Mapping[Value, list[Instruction]]) -> bool:
    """Whether the memory is only read, given floats and small integers, freed, and handed to the call, once."""
    work: list[Value] = [memory]
    while work:
        address = work.pop()
        for user in uses.get(address, ()):
            if user is call:
                if address is not memory or list(call.args).count(memory) != 1:
                    return False
            elif user.opcode == "getelementptr" and user.operands[0] is address:
                work.append(user)
            elif not _harmless(user, address):
                return False
    return True


def _harmless(user: Instruction, address: Value) -> bool:
    """Whether a use of an address neither tells it to anybody nor puts a pointer there."""
    if user.opcode in ("load", "icmp"):
        return not may_hold_pointer(user.type)
    if user.opcode == "store":
        stored = user.operands[0]
        return stored is not address and (isinstance(stored, ConstInt) or not may_hold_pointer(stored.type))
    if user.opcode != "call":
        return False
    name = user.callee_name or ""
    known = facts(name)
    return name.startswith(_HARMLESS) or (known is not None and known.frees is not None)


def _own_bytes(given: Value) -> int:
    if isinstance(given, GlobalVariable):
        opaque = isinstance(given.value_type, ty.StructType) and given.value_type.fields is None
        return ty.size_of(given.value_type) if not opaque and has_pointer(given.value_type) else 0
    if isinstance(given, Instruction) and given.opcode == "alloca" and given.elem is not None:
        return (alloca_size(given) or 0) if has_pointer(given.elem) else 0
    return 0
