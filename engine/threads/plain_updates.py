"""Sums that a thread keeps in an array of its own, and that are read behind a worksharing loop.

    #pragma omp parallel
    {
        double mine[10] = {0};
        #pragma omp for
        for (i ...) mine[k[i]] += w[i];              the iterations of a thread add to its array
        #pragma omp critical
        for (k ...) h[k] += mine[k];
    }

One thread runs all of the region, so that chunks of iterations add to one array: as atomic updates, which go to a copy
for each chunk (`shared_updates.py`). A loop that is left as it is gets its plain additions back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Instruction, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["PlainUpdates", "plain_updates"]

_SAME = having("subscript") | {"getelementptr"}
_SUMS = {"fadd": (0, 1), "add": (0, 1), "fsub": (0,), "sub": (0,)}
"""Operations that are updates, and at which operand they have what was there."""


@dataclass(slots=True)
class PlainUpdates:
    """Additions `*p = *p + v` of a loop. before: what is there besides: the instructions of the blocks as they were."""

    rows: list[tuple[Instruction, Instruction, Instruction]] = field(default_factory=list)
    before: dict[Block, list[Instruction]] = field(default_factory=dict)

    def as_atomic(self) -> None:
        """Have atomic updates in place of them."""
        for load, sum_, store in self.rows:
            block = store.block
            assert block is not None
            self.before.setdefault(block, list(block.instructions))
            at = Builder(block, block.instructions.index(store))
            at.metadata = {"dbg": store.metadata["dbg"]} if "dbg" in store.metadata else {}
            fused = sum_.is_call
            other = sum_.operands[sum_.operands[0] is load]
            value = at.binary("fmul", sum_.args[0], sum_.args[1], sum_.flags) if fused else other
            how = "fadd" if fused else sum_.opcode
            tags = {key: node for key, node in store.metadata.items() if key in ("dbg", "tbaa")}
            at.insert(Instruction("atomicrmw", value.type, [store.operands[1], value], pred=how, metadata=tags,
                                  ordering="monotonic", align=store.align))  # fmt: skip
            for row in (load, sum_, store):
                block.instructions.remove(row)

    def as_plain(self) -> None:
        """Have them as they were."""
        for block, rows in self.before.items():
            block.instructions = rows
            for row in rows:
                row.block = block
        self.before = {}


def plain_updates(dependence: Dependence, loop: Loop, memory: Collection[Value]) -> PlainUpdates | None:
    """The updates of memory that a loop does nothing else with; None where it does, or does nothing."""
    pointers, uses, found = dependence.pointers, uses_of(dependence.fn.blocks), PlainUpdates()
    mask = 0
    for value in memory:
        mask |= pointers.of(value)
    used = [a.instr for a in dependence.accesses(loop) if not a.objects or a.objects & mask]
    for store in (i for i in used if i.opcode == "store"):
        row = _update(store, used, uses)
        if row is None:
            return None
        found.rows.append(row)
    known = {i for row in found.rows for i in row}
    return found if found.rows and known.issuperset(used) else None


def _update(
    store: Instruction, used: Sequence[Instruction], uses: Uses
) -> tuple[Instruction, Instruction, Instruction] | None:  # fmt: skip
    """The load and the sum of an update."""
    sum_, pointer = store.operands
    block = store.block
    if not isinstance(sum_, Instruction) or sum_.block is not block or block is None or len(uses.get(sum_, ())) != 1:
        return None
    fused = sum_.is_call and (sum_.callee_name or "").startswith("llvm.fmuladd.")
    places = (2,) if fused else _SUMS.get(sum_.opcode, ())
    whole = sum_.type in (ty.F32, ty.F64) or (sum_.type.is_int and ty.size_of(sum_.type) in (4, 8))
    for load in (sum_.operands[n] for n in places if whole):
        if not isinstance(load, Instruction) or load.opcode != "load" or load.block is not block:
            continue
        first, last = block.instructions.index(load), block.instructions.index(store)
        between = any(i in used for i in block.instructions[first + 1 : last])
        plain = not (load.volatile or load.ordering or store.volatile or store.ordering)
        if len(uses.get(load, ())) == 1 and plain and not between and _same(load.operands[0], pointer):
            return load, sum_, store
    return None


def _same(one: Value, other: Value, depth: int = 8) -> bool:
    """Whether two addresses or subscripts are the same by how they are computed."""
    if one is other:
        return True
    if not isinstance(one, Instruction) or not isinstance(other, Instruction):
        return False
    alike = (one.opcode, one.type, one.elem, one.pred) == (other.opcode, other.type, other.elem, other.pred)
    return (depth > 0 and alike and one.opcode in _SAME and len(one.operands) == len(other.operands)
            and all(_same(a, b, depth - 1) for a, b in zip(one.operands, other.operands, strict=True)))  # fmt: skip
