"""Addresses of arrays that a worksharing loop finds out for itself: they are known before it.

    for (...) m->y[k[i]] += w[i];               double *y = m->y;  for (...) y[k[i]] += w[i];
    static double y[N];  for (...) y[k[i]] += w[i];

An address that the loop reads from one place is the same in all iterations: the source promises that no other iteration
writes what one reads, and what an iteration itself writes there before is no float, for that is no address. So it is
read before the loop, where that place can be read: it is a variable, or each iteration reads it, or something beside it
that is reached from the same address.

The address of a variable of the file is hidden from LLVM, which would write it into the function of a chunk: what is
known of an array is said of an argument.
"""

from __future__ import annotations

from collections.abc import Collection

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Constant, ConstInt, Function, GlobalVariable, Instruction, Value

__all__ = ["address_before", "settle_addresses"]


def settle_addresses(fn: Function, loop: Loop, dependence: Dependence) -> bool:
    """Read addresses that a loop reads from one place before it. Returns whether there were any."""
    before = loop.preheader
    if before is None:
        return False
    every, changed = dependence.accesses(loop), False
    work = [i for block in loop.blocks for i in block.instructions if i.opcode == "load" and i.type.is_ptr]
    while found := [load for load in work if _stays(fn, loop, dependence, load)]:
        for load in found:
            work.remove(load)
            if any(_may_write(dependence, loop, access.instr, load) for access in every if access.writes):
                continue
            block = load.block
            assert block is not None
            block.instructions.remove(load)
            load.operands[0] = _moved(loop, before, load.operands[0])
            Builder(before, len(before.instructions) - 1).insert(load)
            load.metadata = {key: node for key, node in load.metadata.items() if key in ("dbg", "tbaa", "irgrad.type")}
            changed = True
    return changed


def _stays(fn: Function, loop: Loop, dependence: Dependence, load: Instruction) -> bool:
    """Whether a load is of one place that can be read before the loop."""
    if load.volatile or load.ordering:
        return False
    base = _base(loop, load.operands[0])
    if base is None:
        return False
    if isinstance(base, GlobalVariable) or (isinstance(base, Instruction) and base.opcode == "alloca"):
        return True
    latch, dominators = loop.latch, get(Dominators, fn)
    rows = (i for block in loop.blocks if latch is not None and dominators.dominates(block, latch)
            for i in block.instructions)  # fmt: skip
    return any(_base(loop, row.operands[row.traits.address]) is base for row in rows
               if row.opcode in ("load", "store") and not row.volatile)  # fmt: skip


def _base(loop: Loop, address: Value) -> Value | None:
    """The address from outside of a loop that one is a constant number of bytes behind."""
    while isinstance(address, Instruction) and loop.contains(address.block):
        if address.opcode != "getelementptr" or not all(isinstance(o, Constant) for o in address.operands[1:]):
            return None
        address = address.operands[0]
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        if not all(isinstance(o, Constant) for o in address.operands[1:]):
            break
        address = address.operands[0]
    return address


def _may_write(dependence: Dependence, loop: Loop, instr: Instruction, load: Instruction) -> bool:
    """Whether an iteration may write the address that it reads: with an address, or with the bytes of one."""
    value = instr.operands[0] if instr.opcode == "store" else None
    number = value is not None and (value.type.scalar.is_float or (value.type.is_int and value.type is not ty.I64))
    updates = instr.opcode == "atomicrmw" and instr.type.is_int | instr.type.is_float and instr.pred != "xchg"
    return not number and not updates and not _apart(dependence, loop, instr, load)


def _apart(dependence: Dependence, loop: Loop, store: Instruction, load: Instruction) -> bool:
    rows = {access.instr: access for access in dependence.accesses(loop)}
    if store not in rows or load not in rows:
        return False
    return dependence.relation(loop, rows[store], rows[load]).never


def _moved(loop: Loop, before: Block, address: Value) -> Value:
    """An address, computed before the loop."""
    if not isinstance(address, Instruction) or not loop.contains(address.block):
        return address
    inner = _moved(loop, before, address.operands[0])
    copy = Instruction(address.opcode, address.type, [inner, *address.operands[1:]], elem=address.elem,
                       flags=address.flags, metadata=dict(address.metadata))  # fmt: skip
    Builder(before, len(before.instructions) - 1).insert(copy)
    return copy


def address_before(fn: Function, loop: Loop, rows: Collection[Instruction]) -> bool:
    """Have a loop's updates of variables of the file go by addresses from before the loop. Returns whether some do."""
    before = loop.preheader
    variables = {v: row.type for row in rows if isinstance(v := _made_in(loop, row.operands[0]), GlobalVariable)}
    if before is None or not variables:
        return False
    top = Builder(fn.entry, 0)
    zero = top.alloca(ty.I64)
    top.store(ConstInt(ty.I64, 0), zero, 8)
    for variable, kind in variables.items():
        at = Builder(before, len(before.instructions) - 1)
        nothing = at.insert(Instruction("load", ty.I64, [zero], align=8, volatile=True))
        hidden = at.gep(kind, variable, nothing, flags=())
        for block in loop.blocks:
            for instr in block.instructions:
                instr.operands = [hidden if operand is variable else operand for operand in instr.operands]
    return True


def _made_in(loop: Loop, address: Value) -> Value:
    while isinstance(address, Instruction) and loop.contains(address.block):
        pointers = [o for o in address.operands if o.type.is_ptr]
        if len(pointers) != 1 or address.opcode == "load":
            break
        address = pointers[0]
    return address
