"""Loops of chunks as jobs of a team of threads, in the text that is made machine code of.

    root:           r = call @irgrad.team.0(i64 last, values..., sums so far..., address and bytes of shared arrays...)
    irgrad.team.0:  writes them to a context, has the team run the parts, adds up what the chunks add up in order
    irgrad.team.0.part(context, c):  the chunk, under a guard of its own: null, or the record of a failure

A chunk's tape is an arena of its own, which the call's arena finishes. What the reverse sweeps of several chunks add to
one array goes to memory of each chunk; when all are through these are added to the array, in the order of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.normalise.iterations import ITERATION, READ_FIRST, UPDATED, outline_loop
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.runtime.exceptions import is_caught
from irgrad.engine.runtime.helpers import uses_tape
from irgrad.engine.threads.jobs import Job, Room
from irgrad.engine.threads.known_arrays import ARRAY, ARRAYS_TEXT, KnownArrays
from irgrad.engine.threads.ownership import UNKNOWN, made_of, root_of
from irgrad.engine.threads.shadows import ADDED, ATOMICALLY, MIXED, REFUSED, WRITTEN, added_type
from irgrad.engine.threads.shared_updates import bytes_of_array
from irgrad.engine.threads.team_text import AUTOMATIC_TEXT, THREADS_TEXT, job_text
from irgrad.engine.threads.work import work_of

__all__ = ["Teams", "with_teams"]

TEAM = "irgrad.team."
_PAYS = 400_000  # operations, which take as long as to ask for pages and to add them up
_LITTLE = 128  # operations of an iteration, which its share of that memory takes


@dataclass(slots=True)
class Teams:
    """A module whose loops of chunks are jobs. shared: places of the loops; others: for each other one why one thread
    runs it."""

    text: str
    shared: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def with_teams(
    text: str, root: str, bytes_of: Sequence[Bytes | None], *, roots: Sequence[str] = (), automatic: bool = False,
) -> Teams:  # fmt: skip
    """The module of a program, marked by `mark_shadows`, with its loops of chunks as jobs.

    bytes_of: of each argument of the root, the bytes behind it, None where that is not known
    roots: other functions that stay visible; automatic: nobody says how many threads there are to be
    """
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    unwinds = is_caught(text)
    text = prepare(text, [root, *roots])  # of two functions that share a tape one is left
    module = read(text, roots=[root, *roots])
    made = Teams("")
    jobs: list[Job] = []
    arrays: dict[Function, KnownArrays] = {}
    seen_names: list[str] = []
    for fn in [f for f in module.functions.values() if f.blocks and ITERATION not in (f.name or "")]:
        seen: set[int] = set()
        while (loop := _calling(fn, seen)) is not None:
            place = _place(module, loop)
            seen.add(id(loop.header))
            number = len(seen_names)
            seen_names.append(place)
            why = _refused(loop) or _unnumbered(fn, loop)
            why = why or outline_loop(module, fn, loop, f"{TEAM}{number}.chunk", f"{TEAM}{number}", vectors=True)
            if why:
                made.others.append(f"{place}: {why}")
                continue
            if fn not in arrays:
                arrays[fn] = KnownArrays(module, fn, module.functions[root], bytes_of)
            job = _job(module, fn, module.functions[root], number, bytes_of, arrays[fn],
                       guarded=unwinds or uses_tape(text), pages=automatic)  # fmt: skip
            if isinstance(job, str):  # the loop stays, as a function
                made.others.append(f"{place}: {job}")
                continue
            jobs.append(replace(job, place=place, unwinds=unwinds))
            made.shared.append(place)
    more = (AUTOMATIC_TEXT if automatic else THREADS_TEXT) + "".join(job_text(job) for job in jobs)
    if any(known.used for known in arrays.values()):
        more += ARRAYS_TEXT
    for job in jobs:
        runner = module.functions[job.name]
        runner.blocks = []
        runner.head = ""
    kept, heads = to_text(module), (f"@{ARRAY}(", *(f"@{job.name}(" for job in jobs))
    rows = [row for row in kept.splitlines() if not (row.startswith("declare ") and any(h in row for h in heads))]
    made.text = joined("\n".join(rows), more) if jobs else kept
    return made


def _calling(fn: Function, seen: set[int]) -> Loop | None:
    """An innermost loop that calls a chunk."""
    loops = get(Loops, fn)
    for block in fn.blocks:
        if any(i.is_call and ITERATION in (i.callee_name or "") for i in block.instructions):
            loop = loops.of(block)
            if loop is not None and id(loop.header) not in seen:
                return loop
    return None


def _place(module: Module, loop: Loop) -> str:
    return next(filter(None, (locate(module, i) for block in loop.blocks for i in block.instructions)), "a loop")


def _refused(loop: Loop) -> str:
    for block in loop.blocks:
        for call in block.instructions:
            callee = call.callee if call.is_call else None
            if isinstance(callee, Function) and ITERATION in (callee.name or "") and callee.args:
                why = callee.args[0].attrs.partition(REFUSED)[2].partition('"')[0]
                if why:
                    return why
    return ""


def _unnumbered(fn: Function, loop: Loop) -> str:
    """Why a loop is none that runs each chunk once: where its own loop was unrolled, chunks are called by another."""
    induction = Induction(fn)
    for call in (i for block in loop.blocks for i in block.instructions if i.is_call):
        if ITERATION in (call.callee_name or ""):
            step = induction.form(call.args[0]).stride(loop)
            if not step.is_const or signed(step.const) not in (1, -1):
                return "its chunks are called one by one"
    return ""


# -- a job ------------------------------------------------------------------------------------------------------------


def _job(
    module: Module, fn: Function, root: Function, number: int, bytes_of: Sequence[Bytes | None], arrays: KnownArrays, *,
    guarded: bool, pages: bool,
) -> Job | str:  # fmt: skip
    """The job of a loop that was outlined; or why it cannot be one."""
    name = f"{TEAM}{number}"
    runner, chunk = module.functions[name], module.functions[f"{name}.chunk"]
    call = next(i for i in fn.instructions() if i.is_call and i.callee is runner)
    count = len(chunk.args)
    shared = _shared(chunk)
    if isinstance(shared, str):
        return shared
    updated = _marked(chunk, UPDATED)
    rooms: dict[Value, Room] = {}
    found: list[Callable[[], tuple[Value, Value]]] = []  # where arrays begin, and their bytes
    by_pages = asked = False
    for argument, kind in shared:
        memory = _memory(call, argument)
        if memory not in rooms:
            size = None if argument in updated else bytes_of_array(fn, root, memory, bytes_of)
            first = argument not in updated and _read_first(chunk, argument)
            if size is None and first and memory is call.args[argument.index] and arrays:
                asked = True
                rooms[memory] = Room(kind, len(rooms))
                found.append(partial(arrays.array_of, call, memory))
                continue
            if size is None and not pages:
                return ("the bytes of an array that its reverse sweep adds to are not known; extents in the signature "
                        "that are parameters, or made of them, say it")
            if size is None and not _read_first(chunk, argument):
                return ("an array that its reverse sweep adds to may be one that an iteration writes to before it "
                        "reads it; read it into variables first")
            if size is None and work_of(_calls(chunk)[0][1]) < _LITTLE:
                return "its iterations do too little for memory of their own, in place of an array that they add to"
            by_pages = by_pages or size is None
            rooms[memory] = Room(kind, len(rooms))
            found.append(partial(_sized, call, memory, size))
        elif rooms[memory].kind != kind:
            return "its reverse sweep adds floats of two types to one array"
    if asked and len({room.kind for room in rooms.values()}) > 1:  # two of them may be one
        return "its reverse sweep adds floats of two types to arrays whose addresses it reads from memory"
    plain = {argument for argument, _ in shared if argument in updated or not _read_first(chunk, argument)}
    why = _conflict(call, chunk, {root_of(call.args[argument.index]) for argument in plain})
    if why:
        return why
    arena = _arena(module, call, chunk)
    if isinstance(arena, str):
        return arena
    atomic = bool(_marked(chunk, ATOMICALLY))
    _redirect(chunk, call, shared, rooms)
    sums = [a.type for a in runner.args[count:]]
    _extend(runner, call, [row() for row in found])
    trips, least = _effort(chunk) if by_pages else ("", 0)
    return Job(name, [a.type for a in chunk.args[1:count]], sums, list(rooms.values()), arena, guarded, by_pages, trips,
               least, atomic)


def _sized(call: Instruction, memory: Value, size: Callable[[Instruction], Value] | None) -> tuple[Value, Value]:
    """An array and its bytes, where they are known."""
    return memory, size(call) if size is not None else ConstInt(ty.I64, 0)


def _shared(chunk: Function) -> list[tuple[Argument, str]] | str:
    """The arguments of a job's chunk that lead to arrays which chunks add to, with the types of what is added."""
    found: dict[Argument, str] = {}
    for call, callee in _calls(chunk):
        for operand, argument in zip(call.args, callee.args, strict=False):
            if MIXED in argument.attrs:
                what = "it" if UPDATED in argument.attrs else "its reverse sweep"
                return f"{what} adds to an array of which it uses other places in another way"
            kind = added_type(argument)
            if not kind:
                continue
            base = made_of(operand)
            if not isinstance(base, Argument):
                return "its reverse sweep adds to memory whose address it reads from memory"
            if found.setdefault(base, kind) != kind:
                return "its reverse sweep adds floats of two types to one array"
    return list(found.items())


def _effort(chunk: Function) -> tuple[str, int]:
    """How often a job's loop runs less one, as its runner has it, and how often that pays for memory of pages."""
    call, callee = _calls(chunk)[0]
    last = call.args[1]
    if isinstance(last, ConstInt):
        trips = str(last.value)
    else:
        trips = f"%g{last.index - 1}" if isinstance(last, Argument) and last.index > 0 else ""
    return trips, _PAYS // max(1, work_of(callee))


def _read_first(chunk: Function, argument: Argument) -> bool:
    """Whether iterations read what is behind an argument of a job's chunk, if they write it, before that."""
    rows = [(operand, inner) for call, callee in _calls(chunk)
            for operand, inner in zip(call.args, callee.args, strict=False)]  # fmt: skip
    return all(READ_FIRST in inner.attrs for operand, inner in rows
               if ADDED in inner.attrs and made_of(operand) is argument)  # fmt: skip


def _calls(chunk: Function) -> list[tuple[Instruction, Function]]:
    rows = [(i, i.callee) for i in chunk.instructions() if i.is_call]
    return [(i, callee) for i, callee in rows if isinstance(callee, Function) and ITERATION in (callee.name or "")]


def _marked(chunk: Function, word: str) -> set[Argument]:
    """The arguments of a job's chunk that lead to what is marked in this way and added to."""
    rows = [(operand, inner) for call, callee in _calls(chunk)
            for operand, inner in zip(call.args, callee.args, strict=False)]  # fmt: skip
    return {base for operand, inner in rows if word in inner.attrs and ADDED in inner.attrs
            and isinstance(base := made_of(operand), Argument)}  # fmt: skip


def _memory(call: Instruction, argument: Argument) -> Value:
    """The memory that an argument of a job's chunk leads to; the address, of what nothing is known or may be null."""
    given = call.args[argument.index]
    memory = root_of(given)
    return given if memory is UNKNOWN or not _is_there(memory, call) else memory


def _is_there(memory: Value, call: Instruction) -> bool:
    """Whether memory has been reserved on all ways to a call."""
    if not isinstance(memory, Instruction):
        return True
    assert memory.block is not None and call.block is not None and call.block.function is not None
    if memory.block is call.block:
        return memory.block.instructions.index(memory) < call.block.instructions.index(call)
    return get(Dominators, call.block.function).dominates(memory.block, call.block)


def _conflict(call: Instruction, chunk: Function, rooms: Collection[Value]) -> str:
    """Why an array cannot be added to apart: it is used in another way as well. rooms: arrays of which iterations may
    read what they have written; of others an iteration adds to what it is through with."""
    for inner, callee in _calls(chunk):
        for operand, argument in zip(inner.args, callee.args, strict=False):
            base = made_of(operand) if operand.type.is_ptr else None
            if not isinstance(base, Argument) or base.function is not chunk or ADDED in argument.attrs:
                continue
            root = root_of(call.args[base.index])
            if root in rooms or (root is UNKNOWN and rooms and WRITTEN in argument.attrs):
                return "its reverse sweep adds to an array of which it uses other places in another way"
    return ""


def _arena(module: Module, call: Instruction, chunk: Function) -> int | str:
    """Which argument of a job's chunk is the arena of the call, -1 for none; or why it has another one."""
    found = -1
    for inner, callee in _calls(chunk):
        for n in _arenas(callee, set()):
            base = made_of(inner.args[n])
            if not isinstance(base, Argument) or base.function is not chunk or found not in (-1, base.index):
                return "its tape is not that of the call"
            maker = made_of(call.args[base.index])
            if not (isinstance(maker, Instruction) and maker.callee_name == "irgrad.tape.acquire"):
                return "its tape is memory of the caller"
            found = base.index
    return found


def _arenas(fn: Function, seen: set[Function]) -> set[int]:
    """The arguments of a function that are arenas."""
    found: set[int] = set()
    if fn in seen:
        return found
    seen.add(fn)
    for call in (i for i in fn.instructions() if i.is_call):
        callee, name = call.callee, call.callee_name or ""
        places: set[int] = {0} if name.startswith("irgrad.tape.") and call.args else set()
        if isinstance(callee, Function) and callee.blocks:
            places = _arenas(callee, seen)
        roots = [made_of(call.args[n]) for n in places]
        found |= {root.index for root in roots if isinstance(root, Argument) and root.function is fn}
    return found


def _redirect(
    chunk: Function, call: Instruction, shared: Sequence[tuple[Argument, str]], rooms: dict[Value, Room]
) -> None:
    """A chunk gets, behind its arguments, the address of each shared array and its own memory in place of it, and adds
    to that."""
    count = len(chunk.args)
    for n in range(len(rooms)):
        for word in ("base", "own"):
            argument = Argument(ty.PTR, f"{word}{n}", len(chunk.args))
            argument.function = chunk
            chunk.args.append(argument)
    chunk.ftype = ty.function(chunk.ftype.ret, tuple(a.type for a in chunk.args))
    moved = dict(shared)
    for inner, callee in _calls(chunk):
        assert inner.block is not None
        for n, (operand, argument) in enumerate(zip(inner.args, callee.args, strict=False)):
            base = made_of(operand) if operand.type.is_ptr and ADDED in argument.attrs else None
            if not isinstance(base, Argument) or base not in moved:
                continue
            room = rooms[_memory(call, base)]
            at = Builder(inner.block, inner.block.instructions.index(inner))
            array, own = chunk.args[count + 2 * room.number : count + 2 * room.number + 2]
            distance = at.sub(at.cast("ptrtoint", operand, ty.I64), at.cast("ptrtoint", array, ty.I64), ())
            inner.operands[n] = at.gep(ty.I8, own, distance, flags=())
    for argument in chunk.args:
        argument.attrs = ""


def _extend(runner: Function, call: Instruction, sizes: Sequence[tuple[Value, Value]]) -> None:
    """The call of a job also gets the address and the bytes of each shared array."""
    more = [value for pair in sizes for value in pair]
    for value in more:
        argument = Argument(value.type, f"more{len(runner.args)}", len(runner.args))
        argument.function = runner
        runner.args.append(argument)
    runner.ftype = ty.function(runner.ftype.ret, tuple(a.type for a in runner.args))
    end = len(call.args)
    call.operands[end:end] = more
    assert call.call is not None
    call.call.fn_type = runner.ftype
