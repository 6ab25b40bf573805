"""What class a loop is of: what its iterations hand to one another, through values and through memory.

independent   nothing
reduction     sums, products, least and greatest values only, in values or in cells of memory
scan          a value that each iteration makes from the last one's
time steps    whole arrays, which loops inside of it read and write
sequential    memory, in another way

Wrong on one side only: a loop that is called independent is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.dependence import Access, Dependence, Relation
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.opcodes import PURE, having
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.rules.effects import facts

__all__ = ["Carried", "LoopClass", "classify"]

Name = Literal["independent", "reduction", "scan", "time steps", "sequential"]
_FOLDS = ("llvm.fmuladd.", "llvm.fma.", "llvm.maxnum.", "llvm.minnum.", "llvm.maximum.", "llvm.minimum.",
          "llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.")  # fmt: skip
_OPERATIONS = having("commutes")
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Carried:
    """Two accesses that may meet in two iterations."""

    first: Instruction
    second: Instruction
    relation: Relation


@dataclass(frozen=True, slots=True)
class LoopClass:
    """The class of a loop. reductions: phis of its header, and stores to cells; recurrences: phis that are neither
    reductions nor counters; carried: through memory, reductions left out."""

    name: Name
    reductions: tuple[Instruction, ...] = ()
    recurrences: tuple[Instruction, ...] = ()
    carried: tuple[Carried, ...] = ()


def classify(dependence: Dependence, loop: Loop) -> LoopClass:
    """The class of a loop, with what makes it."""
    uses = uses_of(dependence.fn.blocks)
    induction = dependence.induction
    phis = [phi for phi in loop.header.phis if induction.recurrence(phi) is None]
    reductions = [phi for phi in phis if _reduces(phi, loop, uses)]
    recurrences = [phi for phi in phis if phi not in reductions and not _delayed(phi, loop, set(phis))]
    cells = _cells(dependence, loop, uses)
    carried = [
        Carried(a.instr, b.instr, relation) for a, b, relation in dependence.pairs(loop)
        if not (a.instr in cells and b.instr in cells and a.pointer is b.pointer)
    ]  # fmt: skip
    stores = [instr for instr in cells if instr.opcode == "store"]
    name: Name = "independent"
    if carried:
        inside = any(_in_child(loop, item.first) and _in_child(loop, item.second) for item in carried)
        name = "time steps" if inside else "sequential"
    elif recurrences:
        name = "scan"
    elif reductions or stores:
        name = "reduction"
    return LoopClass(name, (*reductions, *stores), tuple(recurrences), tuple(carried))


def _in_child(loop: Loop, instr: Instruction) -> bool:
    return any(child.contains(instr.block) for child in loop.children)


def _reduces(phi: Instruction, loop: Loop, uses: Uses) -> bool:
    """Whether the loop only folds something into the phi: it and all between it and its next value is read by the next
    operation of the chain, and inside of the loop by nothing else."""
    following = [v for v, at in zip(phi.operands, phi.blocks, strict=True) if loop.contains(at)]
    if len(following) != 1 or loop.latch is None:
        return False
    return _folded(phi, following[0], loop, uses, {phi}) is not None


def _delayed(phi: Instruction, loop: Loop, phis: set[Instruction]) -> bool:
    """Whether the phi is what the last iteration loaded or computed, out of nothing that iterations hand on: LLVM keeps
    `x[i + 1]` for the next iteration, which could as well load `x[i]`."""
    work: list[Value] = [v for v, at in zip(phi.operands, phi.blocks, strict=True) if loop.contains(at)]
    seen: set[Value] = set()
    while work:
        value = work.pop()
        if value in seen or not isinstance(value, Instruction) or not loop.contains(value.block):
            continue
        merged = value.opcode == "phi" and value.block is not loop.header
        if value.volatile or value in phis or merged or len(seen) > _LONGEST:
            return False
        if value.opcode == "phi":
            continue  # a counter
        if value.opcode not in PURE and value.opcode != "load" and not _quiet(value):
            return False
        seen.add(value)
        work += value.args if value.is_call else value.operands
    return True


def _quiet(instr: Instruction) -> bool:
    known = facts(instr.callee_name or "") if instr.is_call else None
    return known is not None and known.kind == "pure" and not known.writes


def _folded(
    start: Value, end: Value, loop: Loop, uses: Uses, last: set[Instruction], *, kind: str = ""
) -> str | None:
    """The kind of operation by which `end` comes from `start`, all of one kind; `last` are the readers of the end."""
    value: Value = start
    for _ in range(_LONGEST):
        readers = {user for user in uses.get(value, ()) if loop.contains(user.block)}
        if value is end:
            return kind if kind and readers <= last else None
        step = _next(value, readers)
        if step is None or not isinstance(step[0], Instruction) or (kind and step[1] != kind):
            return None
        value, kind = step
    return None


def _next(value: Value, readers: set[Instruction]) -> tuple[Value, str] | None:
    """The one operation that folds something into a value, and its kind."""
    if len(readers) == 2:
        pick = next((user for user in readers if user.opcode == "select"), None)
        test = next((user for user in readers if user.opcode in ("fcmp", "icmp")), None)
        if pick is None or test is None:
            return None
        if test is pick.operands[0] and set(test.operands) == set(pick.operands[1:]):
            side = pick.operands[1] is test.operands[0]
            return pick, f"{test.pred[-2:]}{side}"
        return None
    if len(readers) != 1:
        return None
    (user,) = readers
    if user.opcode in _OPERATIONS and user.operands.count(value) == 1:
        return user, user.opcode
    if user.opcode in ("fsub", "sub") and user.operands[0] is value and user.operands[1] is not value:
        return user, "fadd" if user.opcode == "fsub" else "add"
    name = user.callee_name or "" if user.is_call else ""
    if name.startswith(_FOLDS) and user.operands.count(value) == 1:
        if name.startswith(("llvm.fma.", "llvm.fmuladd.")):
            return (user, "fadd") if user.operands[2] is value else None
        return user, name.split(".")[1]
    return None


def _cells(dependence: Dependence, loop: Loop, uses: Uses) -> set[Instruction]:
    """Loads and stores by which the loop folds something into memory: `*p += v`, at any address, where it touches that
    memory in no other way and by one kind of operation."""
    every = dependence.accesses(loop)
    found: dict[Instruction, tuple[Access, Access, str]] = {}
    for store in every:
        if store.instr.opcode != "store" or not dependence.relation(loop, store, store).carried:
            continue
        for load in every:
            if load.instr.opcode == "load" and load.pointer is store.pointer and load.instr.block is store.instr.block:
                kind = _folded(load.instr, store.instr.operands[0], loop, uses, {store.instr})
                if kind is not None and load.instr.type is store.instr.operands[0].type:
                    found[store.instr] = (load, store, kind)
    cells: set[Instruction] = set()
    for load, store, kind in found.values():
        others = [a for a in every if not dependence.relation(loop, a, store).never]
        same = {s.instr for _, s, k in found.values() if k == kind and s.pointer is store.pointer}
        same |= {ld.instr for ld, s, k in found.values() if k == kind and s.pointer is store.pointer}
        if all(other.instr in same for other in others):
            cells |= {load.instr, store.instr}
    return cells

