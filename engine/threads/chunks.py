"""Loops with independent iterations in chunks, for a team of threads: before anything is differentiated.

Which chunks there are follows from how often a loop runs alone, so that results have the same bits on any number of
threads: 16 chunks of consecutive iterations, of equal length but for one iteration, or one for each iteration where
there are fewer. A chunk is a function, and a loop is one that calls it for each:

    f:                 r = call @f.loop.0(i64 last, values from outside..., sums so far...)
    f.loop.0:          for c in 0 .. min(last, 15):  sum += call @f.iteration.0(c, last, values from outside...)
    f.iteration.0:     for k in the chunk:  sum += an iteration

Products, extremes, counts and the like are put together from those of the chunks (`normalise/reductions.py`).

So a chunk has a derivative of its own, with a tape of its own, and a loop that runs chunks is known by the name of what
it calls, whatever was made of it (`shared.py`). Iterations are independent where the source promises it
(`control/promises.py`), or where no two of them touch the same memory (`evolution/dependence.py`).

An array that different iterations touch at different places only, also where they just read it, is marked at the
argument of the chunk: its shadow is then of one chunk at each place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.promises import has_atomic, has_sections, is_worksharing, not_promised
from irgrad.engine.analyses.evolution.dependence import Access, Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, note_loops
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.iterations import (
    CHUNKS,
    ITERATION,
    LOOP,
    OWN_PLACES,
    READ_FIRST,
    UPDATED,
    outline_loop,
    why_not_outlined,
)
from irgrad.engine.normalise.reductions import ADDITION, Reduction
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.parallel.one_thread import ATOMIC
from irgrad.engine.threads.addresses import address_before, settle_addresses
from irgrad.engine.threads.array_updates import additions, behind, said_apart, updated_arrays
from irgrad.engine.threads.distribution import distributed
from irgrad.engine.threads.iteration_parts import Parts
from irgrad.engine.threads.ordered_parts import meeting, ordered_parts
from irgrad.engine.threads.ownership import made_of
from irgrad.engine.threads.shared_updates import (
    add_to_copies,
    fold_copies,
    is_without_copies,
    number_chunks,
    shared_updates,
    why_atomic,
    with_room,
)
from irgrad.engine.threads.thread_memory import (
    ThreadMemory,
    have_own,
    only_read,
    own_memory,
    thread_memory,
    without_marks,
)

__all__ = ["SharedLoops", "never_unrolled", "share_loops", "with_chunks", "with_loops_inside"]

_COMPARED = 120
_Body: TypeAlias = Callable[[Builder, Value], list[Value]]


@dataclass(frozen=True, slots=True)
class SharedLoops:
    """shared: places of the loops that threads share; others: for each other outermost loop its place and why one
    thread runs it."""

    shared: tuple[str, ...]
    others: tuple[str, ...]


def with_chunks(
    text: str, root: str, *, promised: bool = False, bytes_of: Sequence[Bytes | None] = ()
) -> str:  # fmt: skip
    """A module with the independent loops of a function in chunks; the text as it is where there is none.

    promised: only loops of which the source says that they are independent
    bytes_of: of each argument of the function, the bytes behind it, None where that is not known
    """
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[root])
    found = share_loops(module, module.functions[root], promised=promised, bytes_of=bytes_of)
    return to_text(module) if found.shared else text


def with_loops_inside(text: str, root: str) -> str:
    """A module with chunks, whose loops of chunks are to be inlined: a tape of the caller's has those of chunks in it
    (see `tape/chunk_tape.py`), but of no other function."""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[root])
    for name, fn in module.functions.items():
        if LOOP in name and ITERATION not in name and fn.blocks:
            fn.tail = "alwaysinline nounwind"
            never_unrolled(module, fn)
    return to_text(module)


def share_loops(
    module: Module, fn: Function, *, promised: bool = False, bytes_of: Sequence[Bytes | None] = ()
) -> SharedLoops:  # fmt: skip
    """Bring the outermost independent loops of a function into chunks; promised, bytes_of: see `with_chunks`."""
    shared: list[str] = []
    others: list[str] = []
    work = list(get(Loops, fn).top)
    while work:
        loop = work.pop(0)
        place = _place(module, loop)
        dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
        why = _short(dependence.induction, loop)
        unsaid = "" if why else not_promised(module, loop)
        arrays: list[Value] | None = None
        together: set[Instruction] | None = set()
        held = has_sections(module, loop)
        if (promised or held) and not why and is_worksharing(module, loop):
            moved = settle_addresses(fn, loop, dependence)
            moved |= unsaid == ATOMIC and address_before(fn, loop, additions(fn, loop))
            dependence = Dependence(fn, Pointers(module, fn), Induction(fn)) if moved else dependence
            if unsaid == ATOMIC:
                arrays, unsaid = updated_arrays(module, fn, loop, dependence)
                together = meeting(dependence, loop, atomic=bool(unsaid) or not promised)
                arrays = arrays if promised else None
                unsaid = unsaid if together is None else ""
        updates = shared_updates(fn, fn, loop, dependence, bytes_of) if unsaid and not (promised or held) else []
        apart = unsaid == ATOMIC and not (updates or promised or held or is_without_copies(loop))
        if apart and is_worksharing(module, loop):
            together = meeting(dependence, loop, atomic=True)
            unsaid = unsaid if together is None else ""
        added = {row for each in updates for row in each.rows}
        common = set() if why else only_read(module, fn, loop, dependence)
        threads = [] if why else thread_memory(module, fn, loop, dependence)
        own = {*common, *(one.reserve for one in threads)}
        if threads and not updates and (together is None or together or why_not_outlined(module, fn, loop, own)):
            threads, own = [], common  # what is done with it stays in order
        why = why or (unsaid if promised or held else unsaid and _carried(module, dependence, loop, added, threads))
        parts: Parts | None = None
        if not why and together is not None and not updates and is_worksharing(module, loop):
            parts = ordered_parts(module, fn, loop, together, own)
            if parts is not None:
                why, dependence = parts.refusal, Dependence(fn, Pointers(module, fn), Induction(fn))
        ordered = parts.ordered if parts is not None else set()
        said: dict[Value, str] = {} if why else _said(
            dependence, loop, arrays, promised=is_worksharing(module, loop), ordered=ordered)
        if threads and not why:
            have_own(module, fn, loop, threads)
            said = {value: word for value, word in said.items() if all(value is not one.reserve for one in threads)}
        number = len(shared)
        names = f"{fn.name}.turn.{number}", f"{fn.name}.turns.{number}"
        hows: list[Reduction] = []
        if updates:
            why = why or why_not_outlined(module, fn, loop, own)
        loop, copies = with_room(module, fn, loop, updates) if updates and not why else (loop, [])
        before = loop.preheader
        why = why or (why_not_outlined(module, fn, loop, own) if copies else "")
        for made in () if why else copies:
            add_to_copies(module, made)
            said[made.memory] = OWN_PLACES
            own.add(made.memory)
        why = why or outline_loop(module, fn, loop, *names, reductions=hows, any_order=is_worksharing(module, loop),
                                  memory=parts is not None, common=own)  # fmt: skip
        if threads:
            without_marks(module, fn)
        if why:
            if not promised or is_worksharing(module, loop):
                others.append(f"{place}: {why}")
            work = [*loop.children, *work]
            continue
        if parts is not None:
            turn, turns = (module.functions[name] for name in names)
            said |= dict.fromkeys(distributed(module, fn, turn, turns, parts), OWN_PLACES)
        _chunked(module, fn, number, said, hows, threads)
        if copies and before is not None:
            fold_copies(module, before, f"{fn.name}.fold.{number}", copies)
        shared.append(place)
        left = {id(loop.header) for loop in work}  # the analyses are those of the function before
        work = [other for other in get(Loops, fn).all if id(other.header) in left]
    return SharedLoops(tuple(shared), tuple(others))


def _place(module: Module, loop: Loop) -> str:
    rows = (instr for block in reversed(loop.blocks) for instr in reversed(block.instructions))
    return next(filter(None, (locate(module, instr) for instr in rows)), "a loop")


def _short(induction: Induction, loop: Loop) -> str:
    """Why a loop is not worth a team; "" where it may be."""
    most = induction.max_trip_count(loop)
    few = most is not None and most.const is not None and most.const < CHUNKS
    return f"it runs {most.const + 1} times at most" if few and most is not None and most.const is not None else ""


def never_unrolled(module: Module, fn: Function) -> None:
    """Loops of a function stay loops: LLVM would write all chunks one after the other."""
    note_loops(module, [loop.latches for loop in get(Loops, fn).all], "llvm.loop.unroll.disable")


def _carried(
    module: Module, dependence: Dependence, loop: Loop, added: Collection[Instruction], threads: Sequence[ThreadMemory]
) -> str:  # fmt: skip
    """Why nothing shows that the iterations are independent; "" where it does. added: updates that each chunk makes in
    memory of its own; threads: other such memory. What iterations of a worksharing loop do else meets in nothing."""
    if why := why_atomic(loop, added):
        return why
    if is_worksharing(module, loop):
        calls = (i for block in loop.blocks for i in block.instructions if i.is_call)
        return ATOMIC if any(map(has_atomic, calls)) else ""
    own = _begun(dependence, loop)
    for memory in threads:
        own |= dependence.pointers.of(memory.reserve)
    for first, second, relation in dependence.pairs(loop):
        both = first.objects | second.objects
        if (first.instr in added and second.instr in added) or (both and not both & ~own):
            continue
        places = [p for a in (first, second) if (p := locate(module, a.instr))]
        return f"iterations may meet in memory ({', '.join(dict.fromkeys(places)) or '?'}): {relation.because}"
    return ""


def _begun(dependence: Dependence, loop: Loop) -> int:
    """Variables whose life begins in each iteration before they are used in it: what the one before left is gone."""
    found, fn, uses = 0, dependence.fn, uses_of(dependence.fn.blocks)
    for memory in (i for i in fn.instructions() if i.opcode == "alloca"):
        rows = list(uses.get(memory, ()))
        starts = [u for u in rows if u.is_call and (u.callee_name or "").startswith("llvm.lifetime.start")]
        if len(starts) != 1 or not loop.contains(starts[0].block):
            continue
        if all(_comes_before(fn, starts[0], u) for u in rows if u is not starts[0]):
            found |= dependence.pointers.of(memory)
    return found


def _comes_before(fn: Function, first: Instruction, second: Instruction) -> bool:
    assert first.block is not None and second.block is not None
    if first.block is second.block:
        return first.block.instructions.index(first) < first.block.instructions.index(second)
    return get(Dominators, fn).dominates(first.block, second.block)


# -- whose memory -----------------------------------------------------------------------------------------------------


def _said(
    dependence: Dependence, loop: Loop, updated: Collection[Value] | None, *, promised: bool,
    ordered: Collection[Instruction],
) -> dict[Value, str]:  # fmt: skip
    """What is to be said of addresses from outside: that different iterations touch different places through them, that
    none reads through them what it has written, that they add to arrays atomically (updated, None where nothing is
    atomic), which meets nothing."""
    pointers, every = dependence.pointers, dependence.accesses(loop)
    every = [access for access in every if access.instr not in ordered]
    every = [access for access in every if updated is None or not has_atomic(access.instr)]
    outside = dict.fromkeys(
        value for block in loop.blocks for instr in block.instructions for value in instr.operands
        if value.type.is_ptr and not (isinstance(value, Instruction) and loop.contains(value.block))
    )  # fmt: skip
    found = dict.fromkeys(updated or (), UPDATED)
    for value in outside if len(every) <= _COMPARED else ():
        if value in found:
            continue
        objects = pointers.expand(pointers.of(value))
        rows = [a for a in every if a.objects & objects]
        words = [OWN_PLACES] if objects and _apart(dependence, loop, rows, promised=promised) else []
        words += [READ_FIRST] if objects and _read_first(dependence, loop, value, every) else []
        if words:
            found[value] = " ".join(words)
    return found


def _read_first(dependence: Dependence, loop: Loop, value: Value, every: Sequence[Access]) -> bool:
    """Whether nothing that is read through an address may have been written before in the same iteration."""
    reads = [a for a in every if a.pointer is None or (not a.writes and made_of(a.pointer) is value)]
    stores = [a for a in every if a.writes]
    for store in stores:
        later: set[Block] | None = None
        for read in reads:
            said = store.pointer and read.pointer and said_apart(store.pointer, read.pointer)
            if said or dependence.relation(loop, store, read).never:
                continue
            later = behind(loop, store.instr) if later is None else later
            first, second = store.instr, read.instr
            block = first.block
            assert block is not None and second.block is not None
            here = second.block is block and block.instructions.index(second) >= block.instructions.index(first)
            if here or second.block in later:
                return False
    return True


def _apart(dependence: Dependence, loop: Loop, rows: Sequence[Access], *, promised: bool) -> bool:
    """Whether no two of some accesses, reads among them, meet in two iterations. promised: none meets a write there (a
    call that writes may read as well, which others may do at the same place)."""
    known = [promised and a.instr.opcode == "store" for a in rows]
    pairs = ((a, b) for n, a in enumerate(rows) for k, b in enumerate(rows[n:], n) if not (known[n] or known[k]))
    return not any(dependence.relation(loop, a, b).carried for a, b in pairs)


# -- the functions ----------------------------------------------------------------------------------------------------


def _chunked(
    module: Module, fn: Function, number: int, said: Mapping[Value, str], hows: Sequence[Reduction],
    threads: Sequence[ThreadMemory],
) -> None:  # fmt: skip
    """The loop that calls iterations becomes one that calls chunks."""
    turn, turns = (module.functions.pop(f"{fn.name}.{word}.{number}") for word in ("turn", "turns"))
    count = len(turns.args) - len(hows)
    kinds = [a.type for a in turns.args[count:]]
    given = [ty.I64, *(a.type for a in turns.args[:count])]
    chunk = _function(module, f"{fn.name}{ITERATION}{number}", turn.ftype.ret, given)
    runner = _function(module, f"{fn.name}{LOOP}{number}", turns.ftype.ret, [a.type for a in turns.args])
    turn.name = f"{fn.name}.turn.{number}"
    turn.tail = "alwaysinline nounwind"
    numbered = number_chunks(module, turn)
    module.functions[turn.name] = turn
    debug = next((i.metadata["dbg"] for b in turns.blocks for i in b.instructions if "dbg" in i.metadata), "")
    _write_chunk(module, chunk, turn, kinds, hows, debug, threads, numbered=numbered)
    _write_runner(module, runner, chunk, hows, count, debug)
    for call in [i for i in fn.instructions() if i.is_call and i.callee is turns]:
        call.operands = [runner if o is turns else o for o in call.operands]
        for argument, value in zip(chunk.args[1:], call.args, strict=False):
            if value in said:
                argument.attrs = said[value]


def _function(module: Module, name: str, ret: ty.Type, params: Sequence[ty.Type]) -> Function:
    fn = Function(name, ty.function(ret, tuple(params)))
    fn.head, fn.tail = "internal", "noinline nounwind"
    module.functions[name] = fn
    return fn


def _write_chunk(
    module: Module, fn: Function, turn: Function, kinds: Sequence[ty.Type], hows: Sequence[Reduction], debug: str,
    threads: Sequence[ThreadMemory], *, numbered: bool,
) -> None:  # fmt: skip
    """Iterations of chunk c of n: n // 16 of them, and one more in the first n % 16 chunks."""
    entry = Block("entry")
    at = Builder(entry)
    c, last = fn.args[:2]
    whole = at.add(last, ConstInt(ty.I64, 1), ("nuw", "nsw"))
    length = at.binary("lshr", whole, ConstInt(ty.I64, CHUNKS.bit_length() - 1))
    more = at.binary("and", whole, ConstInt(ty.I64, CHUNKS - 1))
    longer = at.icmp("ult", c, more)
    first = at.add(at.mul(c, length, ("nuw", "nsw")), at.select(longer, c, more), ("nuw", "nsw"))
    end = at.sub(at.add(length, at.cast("zext", longer, ty.I64), ("nuw", "nsw")), ConstInt(ty.I64, 1), ("nsw",))
    starts = [how.neutral(kind) for kind, how in zip(kinds, hows, strict=True)]
    given: list[Value] = [*fn.args[2:], *([c] if numbered else [])]
    own, releases = own_memory(module, turn, at, fn.args[2:], threads)
    given += own
    turns, done, results = _loop(entry, end, list(zip(starts, hows, strict=True)), debug, lambda b, k: _parts(
        b, b.call(turn, [b.add(first, k, ("nuw", "nsw")), *given]), len(hows)))  # fmt: skip
    for release in releases:
        Builder(done, len(done.instructions)).insert(release)
    _end(fn, [entry, turns, done], results)


def _write_runner(
    module: Module, fn: Function, chunk: Function, hows: Sequence[Reduction], count: int, debug: str
) -> None:
    """Chunks, one after the other. What is no sum of theirs goes through memory, and is put together behind all chunks:
    a chunk then needs nothing of the one before."""
    entry = Block("entry")
    at = Builder(entry)
    least = declare(module, "llvm.umin.i64", ty.I64, (ty.I64, ty.I64))
    end = at.call(least, [fn.args[0], ConstInt(ty.I64, CHUNKS - 1)])
    starts = fn.args[count:]
    sums = [n for n, how in enumerate(hows) if how == ADDITION]
    apart = [n for n, how in enumerate(hows) if how != ADDITION]
    arrays = {n: at.alloca(ty.array(CHUNKS, starts[n].type)) for n in apart}

    def run(b: Builder, c: Value) -> list[Value]:
        parts = _parts(b, b.call(chunk, [c, *fn.args[:count]]), len(hows))
        for n in apart:
            b.store(parts[n], b.gep(starts[n].type, arrays[n], c))
        return [parts[n] for n in sums]

    turns, done, added = _loop(entry, end, [(starts[n], hows[n]) for n in sums], debug, run)
    blocks, results = [entry, turns], dict(zip(sums, added, strict=True))
    if apart:
        together, last, made = _loop(done, end, [(starts[n], hows[n]) for n in apart], debug, lambda b, c: [
            b.load(starts[n].type, b.gep(starts[n].type, arrays[n], c)) for n in apart])  # fmt: skip
        blocks += [done, together]
        results.update(zip(apart, made, strict=True))
        done = last
    _end(fn, [*blocks, done], [results[n] for n in range(len(hows))])
    never_unrolled(module, fn)


def _parts(at: Builder, result: Value, count: int) -> list[Value]:
    return [result] if count == 1 else [at.extractvalue(result, n) for n in range(count)]


def _loop(
    before: Block, last: Value, values: Sequence[tuple[Value, Reduction]], debug: str, body: _Body
) -> tuple[Block, Block, list[Value]]:
    """A loop from 0 to `last` that puts together what its body gives: it, the block behind it, the results there."""
    turn, done = Block("turn"), Block("done")
    Builder(before).br(turn)
    at = Builder(turn)
    number = at.phi(ty.I64, [(ConstInt(ty.I64, 0), before)])
    so_far = [at.phi(start.type, [(start, before)]) for start, _ in values]
    at.metadata = {"dbg": debug} if debug else {}
    parts = body(at, number)
    made = [how.put(at, old, part) for (_, how), old, part in zip(values, so_far, parts, strict=True)]
    more = at.add(number, ConstInt(ty.I64, 1), ("nuw", "nsw"))
    at.cond_br(at.icmp("eq", number, last), done, turn)
    for phi, value in zip([number, *so_far], [more, *made], strict=True):
        phi.operands.append(value)
        phi.blocks.append(turn)
    end = Builder(done)
    return turn, done, [end.phi(value.type, [(value, turn)]) for value in made]


def _end(fn: Function, blocks: list[Block], results: list[Value]) -> None:
    """The function of these blocks, which returns results."""
    end = Builder(blocks[-1])
    end.ret(end.aggregate(fn.ftype.ret, results) if len(results) > 1 else results[0] if results else None)
    fn.blocks = blocks
    for block in fn.blocks:
        block.function = fn
