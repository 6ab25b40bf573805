"""Which objects instructions, calls and whole functions may read and write, on top of the points-to sets."""

from __future__ import annotations

from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.analyses.memory.objects import PointsTo
from irgrad.engine.ir.model import Function, Instruction


def summaries(pointers: PointsTo) -> tuple[dict[Function, int], dict[Function, int]]:
    """(reads, writes) of every reachable function, callees included: least fixed point over the call graph."""
    reads: dict[Function, int] = {}
    writes: dict[Function, int] = {}
    callers: dict[Function, set[Function]] = {}
    for fn in pointers.functions:
        read = write = 0
        for instr in fn.instructions():
            if instr.is_call:
                for callee in pointers.callees(instr) or ():
                    callers.setdefault(callee, set()).add(fn)
            own = own_reads_writes(pointers, instr)
            read, write = read | own[0], write | own[1]
        reads[fn], writes[fn] = read, write
    work = list(pointers.functions)
    while work:
        fn = work.pop()
        for caller in callers.get(fn, ()):
            if reads[fn] & ~reads[caller] or writes[fn] & ~writes[caller]:
                reads[caller] |= reads[fn]
                writes[caller] |= writes[fn]
                work.append(caller)
    return reads, writes


def instr_reads(pointers: PointsTo, instr: Instruction) -> int:
    """Objects that `instr` may read."""
    mask = own_reads_writes(pointers, instr)[0]
    if instr.is_call:
        for callee in pointers.callees(instr) or ():
            mask |= pointers.reads(callee)
    return mask


def instr_writes(pointers: PointsTo, instr: Instruction) -> int:
    """Objects that `instr` may write or free."""
    mask = own_reads_writes(pointers, instr)[1]
    if instr.is_call:
        for callee in pointers.callees(instr) or ():
            mask |= pointers.writes(callee)
    return mask


def own_reads_writes(pointers: PointsTo, instr: Instruction) -> tuple[int, int]:
    """(reads, writes) of the instruction itself, without the bodies it calls."""
    op = instr.opcode
    if op == "load":
        mask = pointers.expand(pointers.of(instr.operands[0]))
        return mask, mask if instr.volatile else 0
    if op == "store":
        return 0, pointers.expand(pointers.of(instr.operands[1]))
    if op in ("atomicrmw", "cmpxchg"):
        mask = pointers.expand(pointers.of(instr.operands[0]))
        return mask, mask
    if op == "va_arg":
        return pointers.escaped_mask, pointers.escaped_mask
    if not instr.is_call:
        return 0, 0
    effect = pointers.effect(instr)
    if effect is None:
        return (0, 0) if pointers.callees(instr) else (pointers.escaped_mask, pointers.escaped_mask)
    return _external(pointers, instr, effect)


def _external(pointers: PointsTo, call: Instruction, effect: Effect) -> tuple[int, int]:
    if effect.nothing:
        return 0, 0
    read = write = 0
    for i, arg in enumerate(call.args):
        mask = pointers.expand(pointers.of(arg))
        if not mask:
            continue
        if effect.reads is None or effect.writes is None or effect.deep:
            mask = pointers.reachable(mask)
        # What an opaque callee touches directly is what it is given; the rest of what it reaches is what escaped.
        if effect.reads is None or i in effect.reads or (effect.moves == i):
            read |= mask
        if effect.writes is None or i in effect.writes or i in (effect.frees, effect.moves):
            write |= mask
    if effect.reads is None:
        read |= pointers.escaped_mask
    if effect.writes is None:
        write |= pointers.escaped_mask
    return read, write
