"""Memory that each thread of a region reserves for itself: each chunk of iterations has its own.

    #pragma omp parallel
    {
        double *x = malloc(bytes);        chunk:  x' = malloc(bytes)
        #pragma omp for                           what x holds before the loop is copied to x'
        for (...) { ... x ... }                   the iterations, with x' in place of x
        free(x);                                  free(x')
    }

Which iterations are those of one thread is not the program's to know, so that a chunk is what a thread may run, and has
memory as a thread has. That changes nothing where nobody reads behind the loop what it left there: iterations that meet
in such memory must be of one thread, or they race; memory of all threads of which each iteration has its own part does
as well as a copy. Memory must not hold the address, and the loop frees nothing. The memory may be reserved under a
condition, as that of a `std::vector`, which is of no elements else: the chunk does so, too.

Memory from before any other loop is each chunk's own where every iteration writes what it reads there, which is asked
when the program runs (`coverage.py`): where it does not, the loop runs in one chunk (`work.py`).

Before a loop is outlined, a mark in it stands for the chunk's memory (`have_own`); where the loop stays, the mark goes
(`without_marks`); the chunk reserves the memory (`own_memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.promises import has_thread_memory, is_of_all, is_worksharing
from irgrad.engine.analyses.evolution.ahead import Ahead
from irgrad.engine.analyses.evolution.coverage import Cover, coverage
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, CallInfo, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.rewrite import copied, declare, replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.iterations import THREAD_MEMORY
from irgrad.engine.normalise.scratch import SIZED, allocates, is_plain_release
from irgrad.engine.threads.shared_updates import bytes_of_array
from irgrad.rules.effects import facts

__all__ = ["Covered", "ThreadMemory", "have_own", "only_read", "own_memory", "scratch_memory", "thread_memory",
           "without_marks"]  # fmt: skip

_DEEPEST = 20  # operations that bytes are computed by, one behind the other
Covered: TypeAlias = tuple[Cover, Callable[[Instruction], Value]]


@dataclass(slots=True)
class ThreadMemory:
    """Memory of a thread in a loop. reserve: what reserves it; value: its address before the loop, `reserve` itself or
    that or null; release: what frees it, None of the stack; written: it holds something before the loop; inside:
    addresses in it that are computed outside of the loop, step by step, others: in another way; mark: what stands for
    the chunk's memory in the loop, with the operands of `reserve`, and the bytes where they are copied; cover: what
    each iteration writes before it reads, and the bytes behind `reserve`, where only that makes the memory private."""

    reserve: Instruction
    value: Instruction
    release: Instruction | None
    written: bool
    inside: list[Instruction] = field(default_factory=list)
    others: list[Value] = field(default_factory=list)
    mark: str = ""
    cover: Covered | None = None


def thread_memory(module: Module, fn: Function, loop: Loop, dependence: Dependence) -> list[ThreadMemory]:
    """The memory that may be each chunk's own, of a worksharing loop."""
    if not _threads_reserve(module, loop) or loop.preheader is None:
        return []
    uses = uses_of(fn.blocks)
    rows = [i for i in _reserved(fn, loop) if not is_of_all(i)]
    found = (_own(fn, loop, dependence.pointers, row, uses) for row in rows)
    return [memory for memory in found if memory is not None]


def scratch_memory(fn: Function, loop: Loop, dependence: Dependence) -> list[ThreadMemory]:
    """The memory from before a loop that may be each chunk's own, though iterations meet there: they leave nothing to
    one another where each writes what it reads."""
    if loop.preheader is None:
        return []
    pointers, uses, ahead = dependence.pointers, uses_of(fn.blocks), Ahead(fn, loop)
    met = 0
    for first, second, _ in dependence.pairs(loop):
        met |= (first.objects & second.objects) if first.objects and second.objects else 0
    found: list[ThreadMemory] = []
    for row in _reserved(fn, loop):
        obj = pointers.object_of.get(row)
        if obj is None or not met >> obj.index & 1 or _address(fn, loop, row, uses) is not row:
            continue
        if any(_lifetime(user, "") and loop.contains(user.block) for user in uses.get(row, ())):
            continue  # a variable of an iteration
        memory = _own(fn, loop, pointers, row, uses, variables=True)
        size = bytes_of_array(fn, fn, row, ())
        cover = coverage(ahead, pointers, 1 << obj.index, [row]) if memory is not None and size is not None else None
        if memory is not None and size is not None and cover is not None:
            memory.cover = cover, size
            found.append(memory)
    return found


def only_read(module: Module, fn: Function, loop: Loop, dependence: Dependence) -> set[Value]:
    """Memory that a function reserves before a worksharing loop, which only reads it: no iteration leaves anything
    there. None of loops whose threads have no memory of their own."""
    if not _threads_reserve(module, loop):
        return set()
    pointers, written = dependence.pointers, 0
    for access in (a for a in dependence.accesses(loop) if a.writes):
        written |= pointers.instr_writes(access.instr) if access.instr.is_call else access.objects or -1
    rows = _reserved(fn, loop)
    return {i for i in rows if (objects := pointers.expand(pointers.of(i))) and not objects & written}


def _threads_reserve(module: Module, loop: Loop) -> bool:
    return is_worksharing(module, loop) and has_thread_memory(module, loop)


def _reserved(fn: Function, loop: Loop) -> list[Instruction]:
    outside = (i for i in fn.instructions() if not loop.contains(i.block))
    return [i for i in outside if i.opcode == "alloca" or (i.opcode == "call" and allocates(i))]


def _address(fn: Function, loop: Loop, memory: Instruction, uses: Uses) -> Instruction | None:
    """What memory is known by before a loop: its address, or what is that or null."""
    phis = [u for u in uses.get(memory, ()) if u.opcode == "phi" and all(
        o is memory or isinstance(o, ConstZero) for o in u.operands)]  # fmt: skip
    known = (v for v in (memory, *phis) if _is_there(fn, loop, v) and not loop.contains(v.block))
    return next(known, None)


def _addresses(memory: Instruction, uses: Uses, loop: Loop) -> list[Instruction]:
    found: list[Instruction] = [memory]
    for value in found:
        found += [u for u in uses.get(value, ()) if u.opcode == "getelementptr" and u.operands[0] is value
                  and not loop.contains(u.block) and u not in found]  # fmt: skip
    return found[1:]


def _own(
    fn: Function, loop: Loop, pointers: Pointers, memory: Instruction, uses: Uses, *, variables: bool = False
) -> ThreadMemory | None:
    """What may be each chunk's own. variables: also variables of an iteration, which else go with it"""
    obj, value = pointers.object_of.get(memory), _address(fn, loop, memory, uses)
    if obj is None or value is None or _is_handed_on(loop, pointers, 1 << obj.index):
        return None
    found, bit = ThreadMemory(memory, value, None, False, _addresses(value, uses, loop)), 1 << obj.index
    if not _used_by(found, fn, loop, pointers, bit):
        return None
    begins = {u.block for u in uses.get(memory, ()) if _lifetime(u, "start") and not loop.contains(u.block)}
    later = _behind(loop, begins if memory.opcode == "alloca" else {memory.block}, value)
    if loop.header in later:
        return None
    only_here = memory.opcode == "alloca" and isinstance(memory.operands[0], ConstInt)
    for user in (i for i in fn.instructions() if not loop.contains(i.block) and i is not memory):
        reads, writes = pointers.instr_reads(user) & bit, pointers.instr_writes(user) & bit
        if _frees(pointers, user) and pointers.expand(pointers.of(user.operands[0])) & bit:
            effect = pointers.effect(user)
            moves = effect is None or effect.moves is not None  # (realloc)
            plain = user.opcode == "call" and is_plain_release(user) and user.operands[0] in (memory, value)
            if moves or not plain:
                return None
            found.release = user
        elif (reads or writes) and not _lifetime(user, ""):
            if user.block in later:
                return None
            found.written |= bool(writes)
            only_here = False
    if memory.opcode == "alloca":
        return None if only_here and not variables else found
    return found if found.release is not None and _sizes(fn, loop, memory) is not None else None


def _used_by(memory: ThreadMemory, fn: Function, loop: Loop, pointers: Pointers, bit: int) -> bool:
    """Whether a loop uses memory, by addresses from outside of it that lead there alone. Finds the others."""
    rows = [i for block in loop.blocks for i in block.instructions]
    outer = dict.fromkeys(o for i in rows for o in i.operands if o.type.is_ptr and not (
        isinstance(o, Instruction) and loop.contains(o.block)) and pointers.of(o) & bit)  # fmt: skip
    memory.others = [v for v in outer if v is not memory.value and v not in memory.inside]
    alone = all(pointers.expand(pointers.of(v)) == bit for v in memory.others)
    return bool(outer) and alone and not (memory.others and memory.reserve.opcode == "alloca")


def _sizes(fn: Function, loop: Loop, memory: Instruction) -> list[Value] | None:
    """What an allocation is given, if it is known before a loop or computed of what is."""
    sizes = list(memory.args)
    return sizes if all(_computable(fn, loop, value, 0) for value in sizes) else None


def _computable(fn: Function, loop: Loop, value: Value, depth: int) -> bool:
    if not isinstance(value, Instruction) or _is_there(fn, loop, value):
        return True
    return (value.opcode in SPECULATABLE and depth < _DEEPEST
            and all(_computable(fn, loop, o, depth + 1) for o in value.operands))  # fmt: skip


def _is_there(fn: Function, loop: Loop, value: Instruction) -> bool:
    return value.block is not None and get(Dominators, fn).dominates(value.block, loop.header)


def _computed(fn: Function, loop: Loop, at: Builder, value: Value) -> Value:
    """A value that is computable before a loop."""
    if not isinstance(value, Instruction) or _is_there(fn, loop, value):
        return value
    return at.insert(copied(value, [_computed(fn, loop, at, o) for o in value.operands]))


def _is_handed_on(loop: Loop, pointers: Pointers, bit: int) -> bool:
    """Whether memory holds an address, iterations hand it on, or the loop frees what it leads to."""
    if pointers.escaped_mask & bit or any(pointers.contents(other) & bit for other in pointers.objects):
        return True
    if any(pointers.of(phi) & bit for phi in loop.header.phis):
        return True
    rows = (i for block in loop.blocks for i in block.instructions if i.is_call and _frees(pointers, i))
    return any(pointers.expand(pointers.of(i.args[0])) & bit for i in rows)


def _frees(pointers: Pointers, instr: Instruction) -> bool:
    effect = pointers.effect(instr) if instr.is_call else None
    return effect is not None and (effect.frees is not None or effect.moves is not None)


def _lifetime(user: Instruction, word: str) -> bool:
    return user.is_call and (user.callee_name or "").startswith(f"llvm.lifetime.{word}")


def _behind(loop: Loop, begins: set[Block] | set[Block | None], value: Instruction) -> set[Block]:
    """The blocks that may run after a loop before memory is reserved anew; value: its address, null on some ways."""
    rows = zip(value.operands, value.blocks, strict=True) if value.opcode == "phi" else ()
    none = {(block, value.block) for o, block in rows if isinstance(o, ConstZero)}
    found: set[Block] = set()
    work = [exit_ for exit_ in loop.exits if exit_ not in begins]
    while work:
        block = work.pop()
        if block not in found:
            found.add(block)
            work += [after for after in block.successors if after not in begins and (block, after) not in none]
    return found


# -- the mark ---------------------------------------------------------------------------------------------------------


def have_own(module: Module, fn: Function, loop: Loop, every: Sequence[ThreadMemory]) -> None:
    """Let the iterations of a loop use what a mark at their beginning stands for."""
    assert loop.preheader is not None
    outside = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    at = Builder(loop.header, len(loop.header.phis))
    for number, memory in enumerate(every):
        variable = memory.reserve.opcode == "alloca"
        rows = memory.reserve.operands if variable else memory.reserve.args
        given = [_computed(fn, loop, outside, value) for value in rows]
        if memory.written:
            given.append(_bytes_on_stack(outside, memory) if variable else _bytes(outside, memory, given))
        memory.mark = f"{THREAD_MEMORY}.{number}"
        mark = declare(module, memory.mark, ty.PTR, (ty.PTR, *(value.type for value in given)))
        whole = outside.cast("ptrtoint", memory.value, ty.I64) if memory.others else memory.value
        distances = [outside.sub(outside.cast("ptrtoint", v, ty.I64), whole, ()) for v in memory.others]
        own: dict[Value, Value] = {memory.value: at.call(mark, [memory.value, *given])}
        made = {next(iter(own.values()))}
        for value, distance in zip(memory.others, distances, strict=True):
            own[value] = at.gep(ty.I8, own[memory.value], distance, flags=())
            made.add(own[value])
        for address in _used(memory, loop):
            own[address] = at.insert(copied(address, [own.get(o, o) for o in address.operands]))
            made.add(own[address])
        for instr in (i for block in loop.blocks for i in block.instructions if i not in made):
            instr.operands = [own.get(o, o) for o in instr.operands]


def _used(memory: ThreadMemory, loop: Loop) -> list[Instruction]:
    """The addresses that the loop uses, each behind the one that it is computed of."""
    used: set[Value] = {o for block in loop.blocks for instr in block.instructions for o in instr.operands}
    found: list[Instruction] = []
    for address in reversed(memory.inside):
        if address in used:
            used.add(address.operands[0])
            found.insert(0, address)
    return found


def _bytes(at: Builder, memory: ThreadMemory, given: Sequence[Value]) -> Value:
    total: Value = ConstInt(ty.I64, 1)
    for place in _counts(memory):
        total = at.mul(total, at.to_i64(given[place], signed=False), ())
    return total


def _bytes_on_stack(at: Builder, memory: ThreadMemory) -> Value:
    kind = memory.reserve.elem or ty.I8
    return at.mul(at.to_i64(memory.reserve.operands[0], signed=False), ConstInt(ty.I64, ty.size_of(kind)), ())


def without_marks(module: Module, fn: Function) -> None:
    """Iterations that stay, or are there once more, use the thread's memory."""
    marks = [i for i in fn.instructions() if i.is_call and (i.callee_name or "").startswith(THREAD_MEMORY)]
    for mark in marks:
        assert mark.block is not None
        mark.block.instructions.remove(mark)
        replace_uses(fn, {mark: mark.args[0]})
    for name in [name for name in module.functions if name.startswith(THREAD_MEMORY)]:
        del module.functions[name]


def own_memory(
    module: Module, turn: Function, at: Builder, given: Sequence[Value], every: Sequence[ThreadMemory]
) -> tuple[list[Value], list[Instruction]]:
    """Reserve the memory of a chunk, for what iterations get as further arguments; and what frees it, to be placed at
    the end. at: in the chunk, before its iterations; given: what the chunk hands them, from the second argument on."""
    marks = {i.callee_name: i for i in turn.instructions() if i.is_call
             and (i.callee_name or "").startswith(THREAD_MEMORY)}  # fmt: skip
    inner: dict[Value, Value] = dict(zip(turn.args[1:], given, strict=False))
    made: list[Value] = []
    releases: list[Instruction] = []
    for memory in every:
        mark = marks.get(memory.mark)
        if mark is None or mark.block is None:
            continue
        whole, *rest = [inner.get(value, value) for value in mark.args]
        size = rest.pop() if memory.written else None
        callee = [] if memory.reserve.opcode == "alloca" else [memory.reserve.operands[-1]]
        none = None
        if memory.value is not memory.reserve:
            none, nothing = at.icmp("eq", whole, ConstZero(ty.PTR)), ConstInt(ty.I64, 0)
            rest = [at.select(none, ConstInt(v.type, 0), v) if n in _counts(memory) else v for n, v in enumerate(rest)]
            size = None if size is None else at.select(none, nothing, size)
        own: Value = at.insert(copied(memory.reserve, [*rest, *callee]))
        if size is not None:
            move = declare(module, "llvm.memcpy.p0.p0.i64", ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
            at.call(move, [own, whole, size, ConstInt(ty.I1, 0)])
        if memory.release is not None:
            releases.append(_release(memory.release, own, rest))
        own = own if none is None else at.select(none, ConstZero(ty.PTR), own)
        argument = Argument(ty.PTR, "own", len(turn.args))
        argument.function = turn
        turn.args.append(argument)
        turn.ftype = ty.function(turn.ftype.ret, tuple(a.type for a in turn.args))
        mark.block.instructions.remove(mark)
        replace_uses(turn, {mark: argument})
        made.append(own)
    return made, releases


def _counts(memory: ThreadMemory) -> Sequence[int]:
    """Which operands of an allocation say how many bytes there are."""
    stated = facts(memory.reserve.callee_name or "")
    return stated.sizes if stated is not None else ()


def _release(model: Instruction, own: Value, sizes: Sequence[Value]) -> Instruction:
    args = [own, *(sizes[:1] if model.callee_name in SIZED else model.args[1:])]
    assert model.call is not None
    info = CallInfo(model.call.fn_type, fn_attrs=model.call.fn_attrs)
    return Instruction("call", ty.VOID, [*args, model.operands[-1]], call=info, metadata=dict(model.metadata))
