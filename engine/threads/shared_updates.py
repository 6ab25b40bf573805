"""Arrays that the iterations of a loop add to one at a time: each chunk adds to a copy of its own.

    #pragma omp atomic            copies = calloc(16, bytes)
    a[k[i]] += w[i];              if there is memory for them:
                                      chunk c:  copies[c][k[i]] += w[i]
                                      behind:   a[e] += copies[0][e], then copies[1][e], ...
                                  else:  the loop as it is, on one thread

The copies are put together in the order of the chunks, so that sums have the same bits on any number of threads. This
is done before anything is differentiated: the reverse sweep of a chunk reads the adjoints of its copy, which are those
of the array.

It holds for arrays of one type whose bytes are known before the loop, which the loop does nothing else with. Copies
take no more than IRGRAD_MAX_COPIES says: what decides is the same on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import copied, declare, note_instructions, replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.dead_ends import dead_ends, way_out
from irgrad.engine.normalise.iterations import CHUNKS, memory_of_iterations
from irgrad.engine.normalise.loop_parts import choose, may_be_cut
from irgrad.engine.normalise.repeatable import Bytes, emit_bytes
from irgrad.engine.runtime.copies import OWN_MEMORY, most_bytes, tell
from irgrad.engine.threads.ownership import root_of
from irgrad.rules.effects import facts

__all__ = [
    "Copies", "Updates", "add_to_copies", "bytes_of_array", "fold_copies", "is_without_copies", "number_chunks",
    "shared_updates", "why_atomic", "with_room",
]  # fmt: skip

_PLAIN = {"fadd": "fadd", "fsub": "fadd", "add": "add", "sub": "add"}
"""Updates, and how what several have done to zeros is put together."""
_LINE = 64
"""Bytes of a cache line: no two chunks write to one."""
_ROOM = f"copies of the arrays that it updates atomically, {CHUNKS} of each, would take more than IRGRAD_MAX_COPIES"
_COPIED = "irgrad.copied"
"""Of updates: there is a version of their loop that makes them in copies."""
_LONGEST = 2000  # instructions of a loop that is written twice
_NUMBER = "irgrad.chunk.number"
_MOVES = ("llvm.memset.", "llvm.memcpy.", "llvm.memmove.", "llvm.lifetime.", "llvm.assume")


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of one array in a loop. bytes: writes the size of the array before an instruction."""

    array: Value
    type: ty.Type
    rows: tuple[Instruction, ...]
    bytes: Callable[[Instruction], Value]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of an array, one for each chunk: where they begin, the bytes of each, and how far apart they are."""

    updates: Updates
    memory: Value
    bytes: Value
    step: Value


def shared_updates(
    fn: Function, root: Function, loop: Loop, dependence: Dependence, bytes_of: Sequence[Bytes | None]
) -> list[Updates]:
    """The arrays that a loop updates atomically, if that is all it does with them, and all that is atomic in it."""
    atomic = _atomic(loop)
    if not atomic or not may_be_cut(loop, get(Loops, fn), {}, _LONGEST):
        return []
    uses = uses_of(fn.blocks)
    arrays: dict[Value, list[Instruction]] = {}
    for row in atomic:
        array = _array(row, loop, uses)
        if array is None:
            return []
        arrays.setdefault(array, []).append(row)
    found: list[Updates] = []
    for array, rows in arrays.items():
        kind, size = rows[0].type, bytes_of_array(fn, root, array, bytes_of)
        if size is None or not _alone(loop, dependence, rows, kind):
            return []
        found.append(Updates(array, kind, tuple(rows), size))
    return found


def _atomic(loop: Loop) -> list[Instruction]:
    return [i for b in loop.blocks for i in b.instructions if i.ordering or i.volatile or i.opcode == "fence"]


def is_without_copies(loop: Loop) -> bool:
    """Whether a loop is that of two in which there is no memory for copies."""
    return any(_COPIED in row.metadata for row in _atomic(loop))


def why_atomic(loop: Loop, added: Collection[Instruction]) -> str:
    """Why one thread runs a loop with atomic operations; "" where it has no others than some."""
    rows = _atomic(loop)
    if all(row in added for row in rows):
        return ""
    return f"only where {_ROOM}" if all(_COPIED in row.metadata for row in rows) else "it has atomic operations"


def bytes_of_array(
    fn: Function, root: Function, memory: Value, bytes_of: Sequence[Bytes | None]
) -> Callable[[Instruction], Value] | None:
    """Writes the bytes of an array before an instruction; None where they are not known."""
    if isinstance(memory, Argument) and memory.index >= 0 and fn is root:
        known = bytes_of[memory.index] if memory.index < len(bytes_of) else None
        if known is None:
            return None

        def of_argument(place: Instruction) -> Value:
            return emit_bytes(_before(place), root, known)

        return of_argument
    if not isinstance(memory, Instruction):
        return None
    if memory.opcode == "alloca":
        length = memory.operands[0]
        size = ty.size_of(memory.elem or ty.I8) * length.value if isinstance(length, ConstInt) else 0
        return (lambda _: ConstInt(ty.I64, size)) if size else None
    name = memory.callee_name or ""
    stated = facts(name)
    sizes = (1,) if name == "irgrad.tape.alloc" else stated.sizes if stated is not None else ()
    factors = [memory.args[i] for i in sizes]

    def of_memory(place: Instruction) -> Value:
        at = _before(place)
        total: Value = ConstInt(ty.I64, 1)
        for factor in factors:
            total = at.mul(total, at.to_i64(factor, signed=False), ())
        return total

    return of_memory if factors else None


def _before(place: Instruction) -> Builder:
    assert place.block is not None
    return Builder(place.block, place.block.instructions.index(place))


# -- what is found ----------------------------------------------------------------------------------------------------


def _array(row: Instruction, loop: Loop, uses: Uses) -> Value | None:
    """The array that an atomic operation updates, if nobody asks what was there and its address is an index into it."""
    kind = row.type
    plain = row.opcode == "atomicrmw" and row.pred in _PLAIN and not row.volatile and not uses.get(row)
    whole = kind in (ty.F32, ty.F64) or (kind.is_int and ty.size_of(kind) * 8 in (8, 16, 32, 64))
    if not plain or not whole or 0 < row.align < ty.size_of(kind):
        return None
    pointer = row.operands[0]
    while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
        pointer = pointer.operands[0]
    if isinstance(pointer, Argument):
        return pointer
    outside = isinstance(pointer, Instruction) and not loop.contains(pointer.block) and root_of(pointer) is pointer
    begins = any(u.is_call and (u.callee_name or "").startswith("llvm.lifetime.start") and loop.contains(u.block)
                 for u in uses.get(pointer, ()))  # fmt: skip
    return pointer if outside and not begins else None


def _alone(loop: Loop, dependence: Dependence, rows: Collection[Instruction], kind: ty.Type) -> bool:
    """Whether a loop does nothing else with an array, and the program takes it for one of this type."""
    pointers, mask = dependence.pointers, 0
    for row in rows:
        objects = pointers.expand(pointers.of(row.operands[0]))
        if not objects or row.type != kind:
            return False
        mask |= objects
    for access in dependence.accesses(loop):
        if access.instr not in rows and (not access.objects or access.objects & mask):
            return False
    for instr in (i for f in pointers.functions for i in f.instructions()):
        place = instr.traits.address
        if instr.is_call:
            if isinstance(instr.callee, Function) and instr.callee.blocks:
                continue
            name = instr.callee_name or ""
            known = facts(name) if name else None
            moves = name.startswith(_MOVES) or (known is not None and known.kind in ("allocator", "deallocator"))
            if not moves and (pointers.instr_reads(instr) | pointers.instr_writes(instr)) & mask:
                return False
        elif place >= 0 and pointers.expand(pointers.of(instr.operands[place])) & mask:
            held = instr.operands[0].type if instr.opcode == "store" else instr.type
            if held.scalar != kind:
                return False
    return True


# -- what is made of it -----------------------------------------------------------------------------------------------


def number_chunks(module: Module, turn: Function) -> bool:
    """Give the number of its chunk to a function that asks for it, as its last argument; whether it does."""
    asked = [i for i in turn.instructions() if i.is_call and i.callee_name == _NUMBER]
    module.functions.pop(_NUMBER, None)
    if not asked:
        return False
    number = Argument(ty.I64, "chunk", len(turn.args))
    number.function = turn
    turn.args.append(number)
    turn.ftype = ty.function(turn.ftype.ret, tuple(a.type for a in turn.args))
    for call in asked:
        assert call.block is not None
        call.block.instructions.remove(call)
    replace_uses(turn, dict.fromkeys(asked, number))
    return True


def with_room(
    module: Module, fn: Function, loop: Loop, every: Sequence[Updates], place: str
) -> tuple[Loop, list[Copies]]:  # fmt: skip
    """Have memory for the copies before a loop, and the loop twice: the one that is returned runs where there is such
    memory, which is the loop of the updates."""
    assert loop.preheader is not None
    leave = _hand_on_by_phis(fn, loop)
    end = loop.preheader.terminator
    sizes = [updates.bytes(end) for updates in every]
    at = _before(end)
    at.metadata = _debug(every[0].rows[0])
    total: Value = ConstInt(ty.I64, 0)
    steps: list[Value] = []
    for size in sizes:
        whole = at.add(size, ConstInt(ty.I64, _LINE - 1), ())
        steps.append(at.binary("and", whole, ConstInt(ty.I64, -_LINE)))
        total = at.add(total, steps[-1], ())
    most = at.binary("udiv", most_bytes(module, at), ConstInt(ty.I64, CHUNKS))
    good: Value = at.icmp("ule", total, most)
    count = at.select(good, ConstInt(ty.I64, CHUNKS), ConstInt(ty.I64, 0))
    make, release = declare(module, "calloc", ty.PTR, (ty.I64, ty.I64)), declare(module, "free", ty.VOID, (ty.PTR,))
    memory = [at.call(make, [count, step]) for step in steps]
    for copies in memory:
        good = at.binary("and", good, at.icmp("ne", copies, ConstZero(ty.PTR)))
    none = at.binary("xor", good, ConstInt(ty.I1, 1))
    note_instructions(module, [row for updates in every for row in updates.rows], _COPIED)
    memory_inside, known = memory_of_iterations(module, fn, loop), set(fn.blocks)
    before = loop.preheader
    choose(fn, loop, none, {}, {})
    at = Builder(before.terminator.blocks[0], 0)
    at.metadata = _debug(every[0].rows[0])
    tell(module, at, place, f"the memory for copies of the arrays that it updates {OWN_MEMORY}")
    _with_own_memory([block for block in fn.blocks if block not in known], memory_inside)
    _without_unused(fn)
    at = Builder(leave, len(leave.phis))
    at.metadata = _debug(every[0].rows[0])
    for copies in memory:
        at.call(release, [copies])
    header = loop.header
    own = next(one for one in get(Loops, fn).all if one.header is header)
    return own, [Copies(*row) for row in zip(every, memory, sizes, steps, strict=True)]


def _hand_on_by_phis(fn: Function, loop: Loop) -> Block:
    """What a loop with one way out hands on goes through phis of its exit. Returns that."""
    leave, uses, ends = way_out(fn, loop), uses_of(fn.blocks), dead_ends(fn, loop)
    assert leave is not None and loop.latch is not None
    for row in [i for block in loop.blocks for i in block.instructions]:
        users = [u for u in uses.get(row, ()) if not (loop.contains(u.block) or u.block in ends or u in leave.phis)]
        if users:
            phi = Builder(leave, 0).phi(row.type, [(row, loop.latch)])
            for user in users:
                user.operands = [phi if o is row else o for o in user.operands]
    return leave


def _with_own_memory(blocks: Sequence[Block], memory: Sequence[Instruction]) -> None:
    """Have variables of an iteration once more, for the blocks of the other loop."""
    other: dict[Value, Value] = {}
    for value in memory:
        assert value.block is not None
        same = copied(value, [other.get(o, o) for o in value.operands])
        other[value] = Builder(value.block, value.block.instructions.index(value) + 1).insert(same)
    for instr in (i for block in blocks for i in block.instructions):
        instr.operands = [other.get(o, o) for o in instr.operands]


def _without_unused(fn: Function) -> None:
    """Leave out phis that nobody uses: the loops hand on no counters."""
    work = True
    while work:
        uses = uses_of(fn.blocks)
        unused = {phi for block in fn.blocks for phi in block.phis if not uses.get(phi)}
        for block in fn.blocks if unused else ():
            block.instructions = [i for i in block.instructions if i not in unused]
        work = bool(unused)


def add_to_copies(module: Module, copies: Copies) -> None:
    """Have the updates of a loop go to the copy of its chunk."""
    number = declare(module, _NUMBER, ty.I64, ())
    updates = copies.updates
    for row in updates.rows:
        at = _before(row)
        at.metadata = _debug(row)
        skip = at.mul(at.call(number, []), copies.step, ("nuw", "nsw"))
        place = _same_place(at, row.operands[0], updates.array, at.gep(ty.I8, copies.memory, skip))
        tags = {key: node for key, node in row.metadata.items() if key == "tbaa"}
        old = at.load(row.type, place, ty.size_of(row.type), tags)
        at.store(at.binary(row.pred, old, row.operands[1], ()), place, ty.size_of(row.type), tags)
        assert row.block is not None
        row.block.instructions.remove(row)


def _same_place(at: Builder, pointer: Value, array: Value, copy: Value) -> Value:
    """The address in a copy that another one is in the array."""
    if pointer is array:
        return copy
    assert isinstance(pointer, Instruction)
    base = _same_place(at, pointer.operands[0], array, copy)
    return at.insert(copied(pointer, [base, *pointer.operands[1:]]))


def fold_copies(module: Module, before: Block, name: str, made: Sequence[Copies]) -> None:
    """Add the copies to their arrays, in the order of the chunks, at the end of the block that ran the loop."""
    for number, copies in enumerate(made):
        at = _before(before.terminator)
        at.metadata = _debug(copies.updates.rows[0])
        fold = _fold(module, f"{name}.{number}", copies.updates, at.metadata)
        at.call(fold, [copies.updates.array, copies.memory, copies.bytes, copies.step])


def _fold(module: Module, name: str, updates: Updates, debug: dict[str, str]) -> Function:
    """`@NAME(ptr array, ptr copies, i64 bytes, i64 step)`."""
    fn = Function(name, ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I64)))
    fn.head, fn.tail = "internal", "noinline nounwind"
    module.functions[name] = fn
    array, copies, size, step = fn.args
    kind, zero, one = updates.type, ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
    entry, copy, element, next_, done = (Block(n) for n in ("entry", "copy", "element", "next", "done"))
    at = Builder(entry)
    width = ty.size_of(kind)
    count = at.binary("lshr", size, ConstInt(ty.I64, width.bit_length() - 1))
    at.cond_br(at.icmp("eq", count, zero), done, copy)
    at = Builder(copy)
    c = at.phi(ty.I64, [(zero, entry)])
    own = at.gep(ty.I8, copies, at.mul(c, step, ("nuw", "nsw")))
    at.br(element)
    at = Builder(element)
    e = at.phi(ty.I64, [(zero, copy)])
    at.metadata = debug
    place = at.gep(kind, array, e)
    old, part = at.load(kind, place, width), at.load(kind, at.gep(kind, own, e), width)
    at.store(at.binary(_PLAIN[updates.rows[0].pred], old, part, ()), place, width)
    more = at.add(e, one, ("nuw", "nsw"))
    at.cond_br(at.icmp("eq", more, count), next_, element)
    _come_back(e, more, element)
    at = Builder(next_)
    more = at.add(c, one, ("nuw", "nsw"))
    at.cond_br(at.icmp("eq", more, ConstInt(ty.I64, CHUNKS)), done, copy)
    _come_back(c, more, next_)
    Builder(done).ret(None)
    fn.blocks = [entry, copy, element, next_, done]
    for block in fn.blocks:
        block.function = fn
    return fn


def _come_back(phi: Instruction, value: Value, block: Block) -> None:
    phi.operands.append(value)
    phi.blocks.append(block)


def _debug(row: Instruction) -> dict[str, str]:
    return {"dbg": row.metadata["dbg"]} if "dbg" in row.metadata else {}
