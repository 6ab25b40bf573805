"""Arrays of programs that the iterations of a worksharing loop add to one at a time.

    #pragma omp atomic
    a[k[i]] += w[i];

Nobody knows how large such an array is, so chunks have no copies of it (`shared_updates.py`). The argument of the
chunk that leads to it is marked, and stays marked in the chunk's derivatives: what a job's chunks add there goes to
pages of each, which are added to the array in the order of the chunks, as adjoints are (`shadows.py`, `teams.py`).
Where there are no such pages, one chunk runs after the other.

The array itself then changes behind the loop. The source promises that no other iteration touches, but by such an
update, what one updates. So it holds where an iteration neither reads nor writes, after an update, what may be the same
memory: what another pointer leads to is not where one of both is `restrict`.

Integers are updated where they are (`n[k]++`): by one operation they are the same in any order, and have no adjoints.

The reverse of `a[k] += w` takes the adjoint of a[k], clears it, and puts it back for the old a[k]. All that is left out
but that it is read (`read_only`), since other chunks read it too.
"""

from __future__ import annotations

from collections.abc import Collection

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.promises import has_atomic
from irgrad.engine.analyses.evolution.dependence import Access, Dependence
from irgrad.engine.analyses.memory.objects import RESTRICT
from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Block, Function, GlobalVariable, Instruction, Module, Value, is_zero
from irgrad.engine.ir.opcodes import INT_BINARY, PURE
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.parallel.one_thread import ATOMIC
from irgrad.engine.parallel.sections import is_section_fence
from irgrad.engine.threads.ownership import base_of, made_of

__all__ = ["additions", "atomic_rows", "behind", "is_addition", "is_count", "read_only", "said_apart", "updated_arrays"]

_EXTREMES = "max", "min"


def is_addition(row: Instruction, used: Collection[Instruction]) -> bool:
    """Whether an instruction adds a float to memory atomically, and nobody asks what was there. used: what is used."""
    plain = row.opcode == "atomicrmw" and row.pred in ("fadd", "fsub") and not row.volatile and row not in used
    return plain and row.type in (ty.F32, ty.F64) and (not row.align or row.align >= ty.size_of(row.type))


def is_count(row: Instruction, used: Collection[Instruction]) -> bool:
    """Whether an instruction updates an integer atomically, so that several such give the same in any order."""
    plain = row.opcode == "atomicrmw" and row.type.is_int and not row.volatile
    return plain and (row.pred in INT_BINARY or row.pred.removeprefix("u") in _EXTREMES) and row not in used


def _in_any_order(counts: Collection[Instruction], dependence: Dependence) -> bool:
    """Whether updates of integers give the same in any order: no two different operations are of one array."""
    pointers, found = dependence.pointers, list[tuple[str, int, Value]]()
    for row in counts:
        kind, base = "add" if row.pred == "sub" else row.pred, made_of(row.operands[0])
        objects = pointers.expand(pointers.of(row.operands[0]))
        for other, met, root in found:
            apart = root is not base and isinstance(root, GlobalVariable) and isinstance(base, GlobalVariable)
            if kind != other and objects & met and not apart:
                return False
        found.append((kind, objects, base))
    return True


def additions(fn: Function, loop: Loop) -> list[Instruction]:
    """The atomic updates of floats in a loop."""
    uses = uses_of(fn.blocks)
    rows = [i for block in loop.blocks for i in block.instructions if i.opcode == "atomicrmw"]
    used = {row for row in rows if uses.get(row)}
    return [row for row in rows if is_addition(row, used)]


def atomic_rows(loop: Loop) -> list[Instruction]:
    """What is atomic in a loop, but for the fences of sections."""
    rows = (i for block in loop.blocks for i in block.instructions if not is_section_fence(i))
    return [i for i in rows if i.ordering or i.volatile or i.opcode == "fence"]


def updated_arrays(module: Module, fn: Function, loop: Loop, dependence: Dependence) -> tuple[list[Value], str]:
    """The addresses from outside of a loop through which it adds to arrays atomically; or why one thread runs it."""
    rows = atomic_rows(loop)
    uses = uses_of(fn.blocks)
    used = {row for row in rows if uses.get(row)}
    inner = (i for block in loop.blocks for i in block.instructions if i.is_call)
    counts = {row for row in rows if is_count(row, used)}
    rows = [row for row in rows if row not in counts]
    if not _in_any_order(counts, dependence):
        return [], f"{ATOMIC}, of integers by several operators, which the order of iterations decides"
    if not all(is_addition(row, used) for row in rows) or any(map(has_atomic, inner)):
        return [], ATOMIC
    found: dict[Value, None] = {}
    for row in rows:
        place = _from_outside(row.operands[0], loop)
        if place is None:
            return [], f"{ATOMIC}, on an array whose address is not in a variable from before the loop"
        found[place] = None
        if met := _met_behind(module, loop, dependence, row, {*rows, *counts}):
            where = next(filter(None, (locate(module, i) for i in (met, row))), "")
            return [], f"{ATOMIC}, and may touch what they change afterwards, by another pointer ({where}): `restrict`"
    return list(found), ""


def _from_outside(pointer: Value, loop: Loop) -> Value | None:
    """The address from outside of a loop that one in it is made of."""
    while isinstance(pointer, Instruction) and loop.contains(pointer.block):
        base = base_of(pointer)
        if base is None:
            return None
        pointer = base
    return pointer if isinstance(pointer, (Instruction, Argument)) else None


def _met_behind(
    module: Module, loop: Loop, dependence: Dependence, row: Instruction, rows: Collection[Instruction]
) -> Instruction | None:  # fmt: skip
    """What an iteration may do to the memory of an update after it, besides updates."""
    pointers = dependence.pointers
    objects = pointers.expand(pointers.of(row.operands[0]))
    own = Access(row, True, row.operands[0], ty.size_of(row.type), objects)
    later, types = behind(loop, row), Tbaa(module)
    for access in dependence.accesses(loop):
        block = access.instr.block
        if access.instr in rows or block is None or dependence.relation(loop, own, access).never:
            continue
        tag = access.instr.metadata.get("tbaa")
        if tag and types.kind(tag) not in (None, row.type):  # the source calls it something else
            continue
        if access.pointer is not None and said_apart(row.operands[0], access.pointer):
            continue
        here = block is row.block and block.instructions.index(access.instr) > block.instructions.index(row)
        if here or block in later:
            return access.instr
    return None


def said_apart(first: Value, second: Value) -> bool:
    """Whether the source says that two pointers do not lead to the same memory, if one of it is changed."""
    both = made_of(first), made_of(second)
    known = all(isinstance(value, (Argument, GlobalVariable)) for value in both)
    only = [value for value in both if isinstance(value, Argument) and RESTRICT in value.attrs]
    return known and both[0] is not both[1] and bool(only)


def behind(loop: Loop, instr: Instruction) -> set[Block]:
    """The blocks that an iteration may come to after that of an instruction."""
    assert instr.block is not None
    found: set[Block] = set()
    work = [instr.block]
    while work:
        for block in work.pop().successors:
            if loop.contains(block) and block is not loop.header and block not in found:
                found.add(block)
                work.append(block)
    return found


# -- reverse sweeps ---------------------------------------------------------------------------------------------------


def read_only(fn: Function) -> None:
    """Leave out that adjoints are cleared and put back at once."""
    uses = uses_of(fn.blocks)
    for block in fn.blocks:
        clears = [i for i in block.instructions if i.opcode == "store" and is_zero(i.operands[0]) and not i.ordering]
        for clear in clears:
            rows = _put_back(block, clear, uses)
            block.instructions = [i for i in block.instructions if i not in rows]


def _put_back(block: Block, clear: Instruction, uses: Uses) -> list[Instruction]:
    """The instructions that clear an adjoint which was just read, and add it to the zero; [] where it is not so."""
    at, place = block.instructions.index(clear), clear.operands[1]
    before = next((i for i in reversed(block.instructions[:at]) if i.opcode not in PURE), None)
    if before is None or before.opcode != "load" or before.operands[0] is not place:
        return []
    behind_it = [i for i in block.instructions[at + 1 :] if i.opcode not in PURE]
    if len(behind_it) < 2 or [i.opcode for i in behind_it[:2]] != ["load", "store"]:
        return []
    again, store = behind_it[:2]
    total = store.operands[0]
    same = again.operands[0] is place and store.operands[1] is place and again.type is before.type
    added = isinstance(total, Instruction) and total.opcode == "fadd" and set(total.operands) == {before, again}
    once = same and added and len(uses.get(again, ())) == 1 and len(uses.get(total, ())) == 1
    plain = not any(i.volatile or i.ordering for i in (before, clear, again, store))
    return [clear, again, total, store] if once and plain and isinstance(total, Instruction) else []
