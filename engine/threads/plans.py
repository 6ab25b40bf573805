"""How a team of threads can share a loop: found first, carried out in `chunks.py`.

A loop is shared where the source promises that its iterations are independent, or where no two of them touch the same
memory. What they touch together may be

    updates        of arrays, in a copy for each chunk (`shared_updates.py`)
    arrays         that programs add to atomically, in pages of each chunk (`array_updates.py`)
    threads        memory of a thread, of which each chunk has its own (`thread_memory.py`)
    parts          what has to stay in the order of the iterations, in a second loop (`ordered_parts.py`)

and else one thread runs the loop, for the reason `why`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.promises import has_atomic, has_sections, is_worksharing, not_promised
from irgrad.engine.analyses.evolution.dependence import Access, Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Function, Instruction, Module, Value
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.dead_ends import dead_ends
from irgrad.engine.normalise.iterations import CHUNKS, OWN_PLACES, READ_FIRST, UPDATED, carried_memory, why_not_outlined
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.parallel.one_thread import ATOMIC
from irgrad.engine.threads.addresses import address_before, settle_addresses
from irgrad.engine.threads.array_updates import additions, updated_arrays
from irgrad.engine.threads.copied_arrays import copied_bytes
from irgrad.engine.threads.iteration_parts import Parts
from irgrad.engine.threads.ordered_parts import meeting, ordered_parts
from irgrad.engine.threads.own_fields import COMPARED, comes_first, is_apart, own_fields, reads_through
from irgrad.engine.threads.plain_updates import PlainUpdates, plain_updates
from irgrad.engine.threads.shared_updates import Updates, is_without_copies, shared_updates, why_atomic
from irgrad.engine.threads.thread_memory import ThreadMemory, only_read, scratch_memory, thread_memory
from irgrad.engine.threads.work import Size, Worth, fixed_work

__all__ = ["Plan", "plan_of"]


@dataclass(slots=True)
class Plan:
    """How threads share a loop.

    worksharing: whether OpenMP gives its iterations to threads; why: why one thread runs it, "" where a team does;
    updates, threads, parts: see the head of the file; own: memory that is reserved before the loop, of which iterations
    leave nothing to others; said: what is to be said of addresses from outside (`iterations.OWN_PLACES`, ...); copied:
    arrays of which each chunk has a copy in reverse sweeps, with their bytes; kept: updates that were plain additions
    """

    worksharing: bool
    why: str = ""
    updates: list[Updates] = field(default_factory=list)
    threads: list[ThreadMemory] = field(default_factory=list)
    parts: Parts | None = None
    own: set[Value] = field(default_factory=set)
    said: dict[Value, str] = field(default_factory=dict)
    copied: dict[Value, Size] = field(default_factory=dict)
    kept: PlainUpdates | None = None

    def drop(self) -> None:
        """Leave the loop as it was: what it adds to plainly it adds to plainly again."""
        if self.kept is not None:
            self.kept.as_plain()


@dataclass(slots=True)
class _Promise:
    """Why nobody promises that the iterations of a loop are independent, "" where somebody does; and if it is but for
    some of what they do: the arrays that they add to (None where nothing is atomic), updates in copies (kept: that
    were plain), and what meets in the order of the iterations (None where that is not known)."""

    unsaid: str
    arrays: list[Value] | None = None
    updates: list[Updates] = field(default_factory=list)
    ordered: set[Instruction] | None = field(default_factory=set)
    kept: PlainUpdates | None = None


def plan_of(
    module: Module, fn: Function, loop: Loop, *, promised: bool = False, bytes_of: Sequence[Bytes | None] = (),
    worth: Worth | None = None,
) -> Plan:  # fmt: skip
    """The plan of a loop; promised, bytes_of, worth: see `chunks.with_chunks`. Addresses that iterations compute alike
    come before the loop on the way, and numbers that they hand on in an order get memory; values are the same."""
    plan = Plan(is_worksharing(module, loop))
    dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    plan.why = _short(dependence.induction, loop, 0 if plan.worksharing or worth is None else worth.chunk)
    if plan.why:
        return plan
    trusted = promised or has_sections(module, loop)
    if plan.worksharing:
        dependence = _with_addresses(module, fn, loop, dependence)
    promise = _promise(module, fn, loop, dependence, bytes_of, promised=promised)
    plan.updates, plan.kept = promise.updates, promise.kept
    if promise.updates:
        dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    plan.own, plan.threads = _memory_of_threads(module, fn, loop, dependence, promise)
    plan.why = promise.unsaid
    if plan.why and not trusted:
        if not (plan.worksharing or plan.threads):
            plan.threads = scratch_memory(fn, loop, dependence)
            plan.own |= {memory.reserve for memory in plan.threads}
        plan.why = _carried(module, dependence, loop, plan)
    if promise.ordered and not plan.why and dead_ends(fn, loop):
        plan.why = "iterations have an order, and may not return"
    if plan.worksharing and not (plan.why or plan.updates or dead_ends(fn, loop)) and promise.ordered is not None:
        plan.parts = ordered_parts(module, fn, loop, promise.ordered, plan.own)
        if plan.parts is not None:
            plan.why, dependence = plan.parts.refusal, Dependence(fn, Pointers(module, fn), Induction(fn))
    if not plan.why:
        own = {address for memory in plan.threads for address in (memory.reserve, memory.value, *memory.others)}
        said = _said(dependence, loop, promise.arrays, plan)
        plan.said = {value: word for value, word in said.items() if value not in own}
        plan.copied = copied_bytes(fn, loop, plan.said, plan.own, bytes_of) if worth is not None else {}
    else:
        plan.drop()
    return plan


def _with_addresses(module: Module, fn: Function, loop: Loop, dependence: Dependence) -> Dependence:
    """Addresses of arrays come before the loop where they can: what is known of memory then."""
    moved = settle_addresses(fn, loop, dependence)
    moved |= not_promised(module, loop) == ATOMIC and address_before(fn, loop, additions(fn, loop))
    return Dependence(fn, Pointers(module, fn), Induction(fn)) if moved else dependence


def _promise(
    module: Module, fn: Function, loop: Loop, dependence: Dependence, bytes_of: Sequence[Bytes | None], *,
    promised: bool,
) -> _Promise:  # fmt: skip
    unsaid, worksharing = not_promised(module, loop), is_worksharing(module, loop)
    if promised or has_sections(module, loop):
        if unsaid != ATOMIC or not worksharing:
            return _Promise(unsaid)
        arrays, unsaid = updated_arrays(module, fn, loop, dependence)
        ordered = meeting(dependence, loop, atomic=bool(unsaid) or not promised)
        return _Promise(unsaid if ordered is None else "", arrays if promised else None, ordered=ordered)
    kept = _kept_sums(module, fn, loop, dependence) if worksharing and not unsaid else None
    if kept is not None:
        kept.as_atomic()
        dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
        if updates := shared_updates(fn, fn, loop, dependence, bytes_of):
            return _Promise(ATOMIC, updates=updates, kept=kept)
        kept.as_plain()
        dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    updates = shared_updates(fn, fn, loop, dependence, bytes_of) if unsaid else []
    if unsaid != ATOMIC or not worksharing or updates or is_without_copies(loop):
        return _Promise(unsaid, updates=updates)
    ordered = meeting(dependence, loop, atomic=True)
    return _Promise(unsaid if ordered is None else "", ordered=ordered)


def _kept_sums(module: Module, fn: Function, loop: Loop, dependence: Dependence) -> PlainUpdates | None:
    """The sums that a thread keeps in memory of its own beyond a loop."""
    own = {memory.reserve for memory in thread_memory(module, fn, loop, dependence)}
    memory = carried_memory(module, fn, loop, {*only_read(module, fn, loop, dependence), *own})
    return plain_updates(dependence, loop, memory) if memory else None


def _memory_of_threads(
    module: Module, fn: Function, loop: Loop, dependence: Dependence, promise: _Promise
) -> tuple[set[Value], list[ThreadMemory]]:  # fmt: skip
    """What is reserved before a loop and leaves nothing from one iteration to the next, and what of it each chunk has
    for itself. Where iterations meet in an order as well, what they do with memory of threads is part of that."""
    common = only_read(module, fn, loop, dependence)
    threads = thread_memory(module, fn, loop, dependence)
    common |= {each.array for each in promise.updates}
    own = {*common, *(one.reserve for one in threads)}
    ordered = not promise.updates and promise.ordered != set()
    if threads and (ordered or (not promise.updates and why_not_outlined(module, fn, loop, own))):
        return common, []
    return own, threads


def _short(induction: Induction, loop: Loop, least: int) -> str:
    """Why a loop is not worth a team; "" where it may be. least: operations that are worth a chunk"""
    work = fixed_work(induction.fn, loop) if least else None
    if work is not None and work < 2 * least:
        return f"it has about {work} operations, of which {least} are worth a chunk"
    most = induction.max_trip_count(loop)
    few = most is not None and most.const is not None and most.const < CHUNKS
    return f"it runs {most.const + 1} times at most" if few and most is not None and most.const is not None else ""


def _carried(module: Module, dependence: Dependence, loop: Loop, plan: Plan) -> str:
    """Why nothing shows that the iterations are independent but for what each chunk does in memory of its own, "" where
    something does. What iterations of a worksharing loop do else meets in nothing."""
    added = {row for each in plan.updates for row in each.rows}
    if why := why_atomic(loop, added):
        return why
    if plan.worksharing:
        calls = (i for block in loop.blocks for i in block.instructions if i.is_call)
        return ATOMIC if any(map(has_atomic, calls)) else ""
    own = _begun(dependence, loop)
    for memory in plan.threads:
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
    dependence: Dependence, loop: Loop, updated: Collection[Value] | None, plan: Plan
) -> dict[Value, str]:  # fmt: skip
    """What is to be said of addresses from outside: that different iterations touch different places through them, that
    none reads through them what it has written, that they add to arrays atomically (updated, None where nothing is
    atomic), which meets nothing."""
    pointers, every = dependence.pointers, _others(dependence, loop, updated, plan)
    outside = dict.fromkeys(
        value for block in loop.blocks for instr in block.instructions for value in instr.operands
        if value.type.is_ptr and not (isinstance(value, Instruction) and loop.contains(value.block))
    )  # fmt: skip
    found = dict.fromkeys(updated or (), UPDATED)
    for value in outside if len(every) <= COMPARED else ():
        if value in found:
            continue
        objects = pointers.expand(pointers.of(value))
        rows = [a for a in every if a.objects & objects]
        words = [OWN_PLACES] if objects and _apart(dependence, loop, rows, promised=plan.worksharing) else []
        words += [READ_FIRST] if objects and _read_first(dependence, loop, value, every) else []
        if objects and not words:
            fields = own_fields(dependence, loop, value, every, promised=plan.worksharing)
            words += [] if fields is None else [fields.text()]
        if words:
            found[value] = " ".join(words)
    return found


def _others(dependence: Dependence, loop: Loop, updated: Collection[Value] | None, plan: Plan) -> list[Access]:
    """What threads do, but for what is atomic where there is something."""
    ordered = plan.parts.ordered if plan.parts is not None else set()
    return [access for access in dependence.accesses(loop)
            if access.instr not in ordered and (updated is None or not has_atomic(access.instr))]  # fmt: skip


def _read_first(dependence: Dependence, loop: Loop, value: Value, every: Sequence[Access]) -> bool:
    """Whether nothing that is read through an address may have been written before in the same iteration."""
    reads = reads_through(dependence, loop, value, every)
    return all(comes_first(dependence, loop, read, every) for read in reads)


def _apart(dependence: Dependence, loop: Loop, rows: Sequence[Access], *, promised: bool) -> bool:
    """Whether no two of some accesses, reads among them, meet in two iterations. promised: none meets a write there (a
    call that writes may read as well, which others may do at the same place)."""
    return all(is_apart(dependence, loop, row, rows[n:], promised=promised) for n, row in enumerate(rows))
