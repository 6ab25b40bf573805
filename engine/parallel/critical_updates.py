"""Critical sections that only add to memory: atomic updates, which say more of what is kept apart.

    #pragma omp critical
    { h[k] += v; n[k]++; }             atomicrmw fadd h[k], v; atomicrmw add n[k], 1

So loops with such sections are shared as those with atomic updates are. A section becomes updates where it is of one
block and writes nothing else but variables of its thread. It may read those, and memory of types that no such section
of the module updates: what it would find there has nothing to do with the other threads' updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.text.outline import function_bodies
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["with_critical_updates"]

_BEGIN, _END = ("__kmpc_critical", "__kmpc_critical_with_hint"), "__kmpc_end_critical"
_OPERATIONS = {"fadd": (0, 1), "fsub": (0,), "add": (0, 1), "sub": (0,), "llvm.fmuladd": (2,)}
"""Where what is updated may stand in an update."""
_PURE, _SAME = having("pure"), having("same_memory")
_SILENT = ("llvm.lifetime.", "llvm.dbg.", "llvm.fmuladd.", "llvm.fabs.")


@dataclass(frozen=True, slots=True)
class _Update:
    """load, operation, store of one place."""

    load: Instruction
    operation: Instruction
    store: Instruction


@dataclass(frozen=True, slots=True)
class _Section:
    """What stands between two calls: the updates among it, and the types of what else is read of shared memory."""

    begin: Instruction
    end: Instruction
    updates: tuple[_Update, ...]
    reads: frozenset[ty.Type]


def with_critical_updates(text: str, *, variables: bool) -> str:
    """The module with atomic updates in place of critical sections that are nothing else.

    variables: also where they update no array, but variables alone
    """
    if "@__kmpc_critical" not in text:
        return text
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    names = [name for name, body in function_bodies(text).items() if "@__kmpc_critical" in body]
    module = read(text, roots=names)
    found = [section for name in names for section in _sections(module.functions[name])]
    updated = {update.store.operands[0].type for section in found for update in section.updates}
    done = [section for section in found if section.updates and not section.reads & (updated | {ty.I8})
            and (variables or any(map(_of_array, section.updates)))]  # fmt: skip
    for section in done:
        _replace(section)
    return to_text(module) if done else text


def _of_array(update: _Update) -> bool:
    place = update.load.operands[0]
    return isinstance(place, Instruction) and place.opcode == "getelementptr"


def _sections(fn: Function) -> Iterator[_Section]:
    """The critical sections of a function that are of one block, and do nothing but update."""
    uses: Uses | None = None
    for block in fn.blocks:
        for number, begin in enumerate(block.instructions):
            if not begin.is_call or begin.callee_name not in _BEGIN:
                continue
            rest = block.instructions[number + 1 :]
            end = next((i for i in rest if i.is_call and (i.callee_name or "").startswith("__kmpc_")), None)
            if end is None or end.callee_name != _END or end.args[2] is not begin.args[2]:
                continue
            uses = uses_of(fn.blocks) if uses is None else uses
            section = _section(begin, end, rest[: rest.index(end)], uses)
            if section is not None:
                yield section


def _section(begin: Instruction, end: Instruction, rows: Sequence[Instruction], uses: Uses) -> _Section | None:
    updates: list[_Update] = []
    for row in rows:
        if row.opcode == "store" and not _private(row.operands[1]):
            update = _update(row, rows, uses)
            if update is None:
                return None
            updates.append(update)
        elif not _harmless(row):
            return None
    reads = [row.type for row in rows if row.opcode == "load" and not _private(row.operands[0])
              and row not in {update.load for update in updates}]  # fmt: skip
    return _Section(begin, end, tuple(updates), frozenset(reads))


def _harmless(row: Instruction) -> bool:
    """Whether an instruction only computes, or reads and writes memory as usual."""
    if row.opcode in ("load", "store"):
        return not row.volatile and not row.ordering
    return row.opcode in _PURE or (row.is_call and (row.callee_name or "").startswith(_SILENT))


def _private(pointer: Value) -> bool:
    """Whether an address is one of a variable of the function."""
    while isinstance(pointer, Instruction) and pointer.opcode in _SAME:
        pointer = pointer.operands[0]
    return _variable(pointer)


def _update(store: Instruction, rows: Sequence[Instruction], uses: Uses) -> _Update | None:
    """The update that ends in a store, of numbers that atomic instructions are of; None where it is something else."""
    value, place = store.operands
    kind = value.type
    if kind not in (ty.F32, ty.F64, ty.I32, ty.I64) or store.volatile or store.ordering:
        return None
    if store.align < ty.size_of(kind) or not isinstance(value, Instruction) or len(uses.get(value, ())) != 1:
        return None
    places = _OPERATIONS.get(_name(value), ())
    loads = [o for n in places if isinstance(o := value.operands[n], Instruction) and o.opcode == "load"
             and _same(o.operands[0], place, rows) and o in rows and len(uses.get(o, ())) == 1
             and [p for p, other in enumerate(value.operands) if other is o] == [n]]  # fmt: skip
    if len(loads) != 1 or loads[0].volatile or loads[0].ordering or value not in rows:
        return None
    between = rows[rows.index(loads[0]) : rows.index(store)]  # what another update there adds would be overwritten
    if any(row.opcode == "store" and not _private(row.operands[1]) for row in between):
        return None
    return _Update(loads[0], value, store)


def _same(first: Value, second: Value, rows: Sequence[Instruction]) -> bool:
    """Whether two values of a section are the same one, computed twice."""
    if first is second:
        return True
    if not isinstance(first, Instruction) or not isinstance(second, Instruction) or first.opcode != second.opcode:
        return (isinstance(first, ConstInt) and isinstance(second, ConstInt) and first.type is second.type
                and first.value == second.value)  # fmt: skip
    if first.opcode == "load":
        variable = first.operands[0]
        written = any(row.opcode == "store" and row.operands[1] is variable for row in rows)
        return first.type is second.type and variable is second.operands[0] and _variable(variable) and not written
    kinds = [(i.type, i.elem, i.pred, i.indices, len(i.operands)) for i in (first, second)]
    if first.opcode not in _PURE or kinds[0] != kinds[1]:
        return False
    return all(_same(a, b, rows) for a, b in zip(first.operands, second.operands, strict=True))


def _variable(pointer: Value) -> bool:
    return isinstance(pointer, Instruction) and pointer.opcode == "alloca"


def _name(instr: Instruction) -> str:
    return (instr.callee_name or "").rpartition(".")[0] if instr.is_call else instr.opcode


def _replace(section: _Section) -> None:
    block = section.begin.block
    assert block is not None
    gone = {section.begin, section.end}
    for update in section.updates:
        _as_atomic(block, update)
        gone |= {update.load, update.operation, update.store}
    block.instructions = [i for i in block.instructions if i not in gone]


def _as_atomic(block: Block, update: _Update) -> None:
    operation, store = update.operation, update.store
    at = Builder(block, block.instructions.index(store))
    at.metadata = {"dbg": store.metadata["dbg"]} if "dbg" in store.metadata else {}
    if operation.is_call:
        value: Value = at.binary("fmul", operation.args[0], operation.args[1], ())
        pred = "fadd"
    else:
        value = next(o for o in operation.operands if o is not update.load)
        pred = operation.opcode
    metadata = {key: node for key, node in store.metadata.items() if key in ("dbg", "tbaa")}
    at.insert(Instruction("atomicrmw", value.type, [store.operands[1], value], pred=pred, ordering="monotonic",
                          align=store.align, metadata=metadata))  # fmt: skip
