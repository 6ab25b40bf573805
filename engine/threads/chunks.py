"""Loops with independent iterations in chunks, for a team of threads: before anything is differentiated.

Which chunks there are follows from how often loops run alone, so that results have the same bits on any number of
threads: 16 chunks of consecutive iterations, of equal length but for one iteration, or one for each iteration where
there are fewer; and fewer chunks where the work of one would not pay (`work.py`). A chunk is a function, and a loop is
one that calls it for each:

    f:                 r = call @f.loop.0(i64 last, values from outside..., sums so far...)
    f.loop.0:          for c in 0 .. min(last, 15):  sum += call @f.iteration.0(c, last, values from outside...)
    f.iteration.0:     for k in the chunk:  sum += an iteration

Products, extremes, counts and the like are put together from those of the chunks (`normalise/reductions.py`).

So a chunk has a derivative of its own, with a tape of its own, and a loop that runs chunks is known by the name of what
it calls, whatever was made of it (`teams.py`). Which loops threads can share, and what stays in the order of the
iterations, is planned first (`plans.py`).

An array that different iterations touch at different places only, also where they just read it, is marked at the
argument of the chunk: its shadow is then of one chunk at each place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, internal_function, note_loops, personality
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.dead_ends import own_dead_ends
from irgrad.engine.normalise.iterations import CHUNKS, ITERATION, LOOP, OWN_PLACES, outline_loop, why_not_outlined
from irgrad.engine.normalise.loop_parts import choose, may_be_cut
from irgrad.engine.normalise.reductions import ADDITION, Reduction
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.threads.distribution import distributed, of_parts
from irgrad.engine.threads.on_demand import settle_demand
from irgrad.engine.threads.plans import Plan, plan_of
from irgrad.engine.threads.shared_updates import Copies, add_to_copies, fold_copies, number_chunks, with_room
from irgrad.engine.threads.thread_memory import ThreadMemory, have_own, own_memory, without_marks
from irgrad.engine.threads.work import MOST, Size, Worth, count_pieces, some_pay, take_pieces

__all__ = ["SharedLoops", "never_unrolled", "share_loops", "with_chunks", "with_loops_inside"]

_LONGEST = 4_000  # instructions of a loop that is there twice
_Body: TypeAlias = Callable[[Builder, Value], list[Value]]


@dataclass(frozen=True, slots=True)
class SharedLoops:
    """shared: places of the loops that threads share; others: for each other outermost loop its place and why one
    thread runs it."""

    shared: tuple[str, ...]
    others: tuple[str, ...]


def with_chunks(
    text: str, root: str, *, promised: bool = False, bytes_of: Sequence[Bytes | None] = (), worth: Worth | None = None
) -> str:  # fmt: skip
    """A module with the independent loops of a function in chunks; the text as it is where there is none.

    promised: only loops of which the source says that they are independent
    bytes_of: of each argument of the function, the bytes behind it, None where that is not known
    worth: what is worth a chunk of a loop of which the source does not say that threads share it; None: all is
    """
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[root])
    settle_demand(module, module.functions[root])
    found = share_loops(module, module.functions[root], promised=promised, bytes_of=bytes_of, worth=worth)
    return to_text(module) if found.shared else text


def with_loops_inside(text: str, root: str) -> str:
    """A module with chunks, whose loops of chunks are to be inlined: a tape of the caller's has those of chunks in it
    (see `tape/chunk_tape.py`), but of no other function."""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[root])
    for name, fn in module.functions.items():
        if LOOP in name and ITERATION not in name and fn.blocks:
            fn.tail = f"alwaysinline {personality(fn) or 'nounwind'}"
            never_unrolled(module, fn)
    return to_text(module)


def share_loops(
    module: Module, fn: Function, *, promised: bool = False, bytes_of: Sequence[Bytes | None] = (),
    worth: Worth | None = None,
) -> SharedLoops:  # fmt: skip
    """Bring the outermost independent loops of a function into chunks; promised, bytes_of, worth: see `with_chunks`."""
    shared: list[str] = []
    others: list[str] = []
    own_dead_ends(fn)
    work = list(get(Loops, fn).top)
    while work:
        loop = work.pop(0)
        place = _place(module, loop)
        plan = plan_of(module, fn, loop, promised=promised, bytes_of=bytes_of, worth=worth)
        why = plan.why or _carried_out(module, fn, loop, plan, len(shared), place, worth)
        left = {id(loop.header) for loop in work}
        if why:
            if not promised or plan.worksharing:
                others.append(f"{place}: {of_parts(loop) or why}")
            inner = next((one for one in get(Loops, fn).all if one.header is loop.header), loop)
            work = [*(() if of_parts(loop) else inner.children), *work]
            if worth is not None and not promised and loop.parent is None and inner.children:
                header = _twice(module, fn, inner, bytes_of, worth)
                inside = next((one.children for one in get(Loops, fn).all if one.header is header), [])
                work = [*inside, *(one for one in get(Loops, fn).top if id(one.header) in left)]
            continue
        shared.append(place)  # the analyses are those of the function before
        work = [other for other in get(Loops, fn).all if id(other.header) in left]
    return SharedLoops(tuple(shared), tuple(others))


def _twice(module: Module, fn: Function, loop: Loop, bytes_of: Sequence[Bytes | None], worth: Worth) -> Block | None:
    """A loop that stays twice, for work inside of it that is worth a team each time, and for less: chunks cost what
    loops of few operations do, and what is known of memory. Returns the header of the first; None where no loop inside
    of it can be shared, or none is known to be worth it."""
    found, work = list[tuple[Loop, list[Size]]](), list(loop.children)
    while work:
        inner = work.pop()
        plan = plan_of(module, fn, inner, bytes_of=bytes_of, worth=worth)
        if plan.worksharing:
            return loop.header
        if plan.why:
            work += inner.children
        else:
            found.append((inner, [size for memory, size in plan.copied.items() if not _made_in(loop, memory)]))
    if not found or not may_be_cut(loop, get(Loops, fn), uses_of(fn.blocks), _LONGEST):
        return loop.header if found else None
    pays = some_pay(module, fn, loop, found, worth)
    return None if pays is None else choose(fn, loop, pays, {}, {})[0]


def _made_in(loop: Loop, memory: Value) -> bool:
    return isinstance(memory, Instruction) and loop.contains(memory.block)


def _carried_out(
    module: Module, fn: Function, loop: Loop, plan: Plan, number: int, place: str, worth: Worth | None
) -> str:  # fmt: skip
    """Bring a loop into chunks as its plan says; why that cannot be done, "" where it is."""
    if plan.threads:
        have_own(module, fn, loop, plan.threads)
    own, said, copies = set(plan.own), dict(plan.said), list[Copies]()
    why = why_not_outlined(module, fn, loop, own) if plan.updates else ""
    if why:
        plan.drop()
    if plan.updates and not why:
        loop, copies = with_room(module, fn, loop, plan.updates, place)
        why = why_not_outlined(module, fn, loop, own)
    before = loop.preheader
    for made in () if why else copies:
        add_to_copies(module, made)
        said[made.memory] = OWN_PLACES
        own.add(made.memory)
    names = f"{fn.name}.turn.{number}", f"{fn.name}.turns.{number}"
    hows: list[Reduction] = []
    covers = [memory.cover for memory in plan.threads if memory.cover is not None]
    if not (why or plan.worksharing) and (worth or covers):
        count_pieces(module, fn, loop, worth or Worth(), plan.copied.values(), covers)
    why = why or outline_loop(module, fn, loop, *names, reductions=hows, any_order=plan.worksharing,
                              memory=plan.parts is not None, common=own)  # fmt: skip
    if plan.threads:
        without_marks(module, fn)
    if why:
        take_pieces(module, fn)
        return why
    if plan.parts is not None:
        turn, turns = (module.functions[name] for name in names)
        said |= dict.fromkeys(distributed(module, fn, turn, turns, plan.parts, place), OWN_PLACES)
    _chunked(module, fn, number, said, hows, plan.threads)
    if copies and before is not None:
        fold_copies(module, before, f"{fn.name}.fold.{number}", copies)
    return ""


def _place(module: Module, loop: Loop) -> str:
    rows = (instr for block in reversed(loop.blocks) for instr in reversed(block.instructions))
    return next(filter(None, (locate(module, instr) for instr in rows)), "a loop")


def never_unrolled(module: Module, fn: Function) -> None:
    """Loops of a function stay loops: LLVM would write all chunks one after the other."""
    note_loops(module, [loop.latches for loop in get(Loops, fn).all], "llvm.loop.unroll.disable")


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
    chunk = internal_function(fn, module, f"{fn.name}{ITERATION}{number}", turn.ftype.ret, given)
    runner = internal_function(fn, module, f"{fn.name}{LOOP}{number}", turns.ftype.ret, [a.type for a in turns.args])
    turn.name = f"{fn.name}.turn.{number}"
    turn.tail = f"alwaysinline {personality(fn) or 'nounwind'}"
    numbered = number_chunks(module, turn)
    module.functions[turn.name] = turn
    debug = next((i.metadata["dbg"] for b in turns.blocks for i in b.instructions if "dbg" in i.metadata), "")
    pieces = take_pieces(module, turn)
    place = pieces.index if isinstance(pieces, Argument) else 0  # that of the chunk is one behind
    known = pieces if isinstance(pieces, ConstInt) else ConstInt(ty.I64, MOST)
    counts = (chunk.args[place + 1], runner.args[place]) if place else (known, known)
    _write_chunk(module, chunk, turn, kinds, hows, debug, threads, counts[0], numbered=numbered)
    _write_runner(module, runner, chunk, hows, count, debug, counts[1])
    for call in [i for i in fn.instructions() if i.is_call and i.callee is turns]:
        call.operands = [runner if o is turns else o for o in call.operands]
        for argument, value in zip(chunk.args[1:], call.args, strict=False):
            if value in said:
                argument.attrs = said[value]


def _write_chunk(
    module: Module, fn: Function, turn: Function, kinds: Sequence[ty.Type], hows: Sequence[Reduction], debug: str,
    threads: Sequence[ThreadMemory], pieces: Value, *, numbered: bool,
) -> None:  # fmt: skip
    """Iterations of chunk c of n: n // 16 of them, and one more in the first n % 16 chunks. pieces: the logarithm of
    how many chunks there are in place of 16"""
    entry = Block("entry")
    at = Builder(entry)
    c, last = fn.args[:2]
    whole = at.add(last, ConstInt(ty.I64, 1), ("nuw", "nsw"))
    length = at.binary("lshr", whole, pieces)
    more = at.binary("and", whole, _last_chunk(at, pieces))
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
    module: Module, fn: Function, chunk: Function, hows: Sequence[Reduction], count: int, debug: str, pieces: Value
) -> None:
    """Chunks, one after the other. What is no sum of theirs goes through memory, and is put together behind all chunks:
    a chunk then needs nothing of the one before."""
    entry = Block("entry")
    at = Builder(entry)
    least = declare(module, "llvm.umin.i64", ty.I64, (ty.I64, ty.I64))
    end = at.call(least, [fn.args[0], _last_chunk(at, pieces)])
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


def _last_chunk(at: Builder, pieces: Value) -> Value:
    if isinstance(pieces, ConstInt):
        return ConstInt(ty.I64, (1 << pieces.value) - 1)
    return at.binary("xor", at.binary("shl", ConstInt(ty.I64, -1), pieces), ConstInt(ty.I64, -1))


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
