"""What the reverse sweep of a chunk does with the memory behind its arguments.

A chunk's adjoints of memory that it wrote are its own, by what the source promises or dependence shows: nobody else
touches these places. What chunks only read, several of them may have read: their sweeps add to the same places of its
shadow. Such an array is marked at the argument, and each chunk is given memory of its own to add to (`teams.py`).

    added     it only adds floats of one type to it
    mixed     it adds to it, and reads or writes it otherwise as well
    other     it never adds to it

Of an array that is mixed, what is used otherwise are adjoints of what the iteration itself wrote. Where it reads
nothing that it has written before (`READ_FIRST`), its sweep takes these before it adds to those of what it read: sums
may then be made elsewhere, and they get an argument of their own (`own_sums.py`). So do those for fields of structs
that it reads in this way, if no other iteration touches the other fields that it reads (`own_fields.py`).

In other sweeps, and in what is not differentiated, it is what several chunks update (`array_updates.py`) that a chunk
adds to in such memory.

An address that leads somewhere else (out of memory that was not recorded for this chunk) and is written to is found as
well: such a chunk has to wait for its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.passes import Code, Settings, llvm_pass, run_passes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Block, Function, Instruction, Module, Value, is_zero
from irgrad.engine.ir.opcodes import PASSES_ON
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.iterations import ITERATION, LOOP, OWN_PLACES, READ_FIRST, UPDATED
from irgrad.engine.threads.array_updates import is_addition, read_only
from irgrad.engine.threads.chunks import never_unrolled
from irgrad.engine.threads.own_fields import OwnFields
from irgrad.engine.threads.own_sums import apart_from
from irgrad.engine.threads.ownership import keep_distances, made_of, own_addresses, root_of
from irgrad.rules.effects import facts

__all__ = [
    "ADDED", "ATOMICALLY", "INLINED", "MIXED", "REFUSED", "WRITTEN", "added_type", "mark_shadows", "mark_updates",
]  # fmt: skip

ADDED, MIXED, WRITTEN, REFUSED = '"irgrad-added', '"irgrad-mixed"', '"irgrad-written"', '"irgrad-one-thread"="'
ATOMICALLY = '"irgrad-atomically"'
"""Of an argument: floats of a type are added to it (`"irgrad-added"="double"`); it is added to and used otherwise; it
is written to in another way; what is added there is added atomically. Of the first argument of a chunk, its number: why
it runs on one thread."""
INLINED = "alwaysinline nounwind"
_ADJOINT = (".rev.", ".vjp.")
_LINKS = 16
_COPY = "irgrad.adjoint.copy."


def added_type(argument: Argument) -> str:
    """The type of what is added to the memory behind an argument; "" for one that is not marked."""
    return argument.attrs.partition(f'{ADDED}"="')[2].partition('"')[0] if ADDED in argument.attrs else ""


def _promote(code: Code, settings: Settings) -> None:
    """Variables whose address nobody has are values."""
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(code.llvm, llvm.create_pass_builder(code.machine("", 2), llvm.create_pipeline_tuning_options()))


PROMOTE = (llvm_pass("promote-variables", _promote),)


def mark_shadows(text: str, root: str) -> str:
    """The module of a derivative with its chunks' arguments marked, and with loops of chunks ready to be inlined."""
    from irgrad.engine.ir.printer import to_text

    code = Code(text, roots=[root])
    run_passes(PROMOTE, code, Settings((root,)))
    module = code.model
    keep_distances(module)
    own = own_addresses(module)
    known: dict[Function, _Found] = {}
    for name, fn in module.functions.items():
        if ITERATION in name and fn.blocks and any(word in name for word in _ADJOINT):
            if any(UPDATED in argument.attrs for argument in fn.args):
                read_only(fn)
            found = _accesses(module, fn, own, known)
            _give_sums_arguments(module, fn, found)
            _mark(module, fn, found)
    mark_updates(module)
    for name, fn in module.functions.items():
        if LOOP in name and fn.blocks and ITERATION not in name:
            fn.tail = INLINED
            never_unrolled(module, fn)
    return to_text(module)


def mark_updates(module: Module) -> None:
    """Mark the arguments of chunks that lead to arrays which several update; those of adjoints are marked already."""
    known: dict[Function, _Found] = {}
    for name, fn in module.functions.items():
        if ITERATION not in name or not fn.blocks or any(word in name for word in _ADJOINT):
            continue
        for n, argument in enumerate(fn.args):
            if UPDATED not in argument.attrs or OWN_PLACES in argument.attrs:
                continue
            found = _accesses(module, fn, (), known)
            kinds = found.added.get(n, set())
            if (n in found.other and (kinds or n in found.written)) or len(kinds) > 1:
                argument.attrs = f"{MIXED} {UPDATED}"
            elif kinds:
                how = f" {ATOMICALLY}" if n in found.atomic else ""
                argument.attrs = f'{ADDED}"="{next(iter(kinds))}"{how} {READ_FIRST} {UPDATED}'
                fn.tail = "noinline nounwind"


@dataclass(slots=True)
class _Found:
    """added: types of what is added to an argument; sums: what does, by which operands; other: arguments that are used
    otherwise, written: written to; whole: by an instruction that adds to them as well; atomic: added to atomically;
    elsewhere: an access that writes to memory of which nothing is known."""

    added: dict[int, set[str]] = field(default_factory=dict)
    sums: dict[int, dict[tuple[Instruction, int], None]] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    other: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    atomic: set[int] = field(default_factory=set)
    elsewhere: Instruction | None = None


def _give_sums_arguments(module: Module, fn: Function, found: _Found) -> None:
    """Have sums in arrays that are used otherwise as well go by arguments of their own, but for those in places that
    no other iteration touches."""
    induction = Induction(fn)
    for n in sorted(found.added.keys() & found.other - found.whole):
        argument, places = fn.args[n], list(found.sums[n])
        if OWN_PLACES in argument.attrs or UPDATED in argument.attrs:
            continue
        if READ_FIRST not in argument.attrs:
            fields = OwnFields.said_of(argument)
            own = [fields.holds(induction, instr, instr.operands[n], argument) if fields and instr.traits.address == n
                   else None for instr, n in places]  # fmt: skip
            if None in own:
                continue
            places = [place for place, is_own in zip(places, own, strict=True) if not is_own]
        kinds = found.added.pop(n)
        if places:
            sums = apart_from(module, argument, places)
            sums.attrs = READ_FIRST
            found.added[sums.index] = kinds


def _mark(module: Module, fn: Function, found: _Found) -> None:
    for n, argument in enumerate(fn.args):
        kinds = found.added.get(n, set())
        if not kinds or OWN_PLACES in argument.attrs:
            continue
        first = f" {READ_FIRST}" if READ_FIRST in argument.attrs else ""
        if n in found.other or len(kinds) > 1:
            argument.attrs = MIXED
        else:
            argument.attrs = f'{ADDED}"="{next(iter(kinds))}"{first}'
    for n in found.written - found.added.keys():
        fn.args[n].attrs = f"{fn.args[n].attrs} {WRITTEN}".strip()
    fn.tail = "noinline nounwind"
    if found.elsewhere is not None:
        place = (locate(module, found.elsewhere) or "").replace('"', "'")
        what = "its reverse sweep adds to memory whose address it reads from memory"
        fn.args[0].attrs = f'{REFUSED}{f"{what} ({place})" if place else what}"'


def _accesses(module: Module, fn: Function, own: Collection[Value], known: dict[Function, _Found]) -> _Found:
    """What a function and what it calls do with the memory behind its arguments."""
    if fn in known:
        return known[fn]
    found = known[fn] = _Found()  # of what calls itself the rest decides, twice
    uses = uses_of(fn.blocks)
    for _ in range(2):
        for block in fn.blocks:
            for instr in block.instructions:
                _access(module, found, block, instr, uses, own, known)
    return found


def _access(
    module: Module, found: _Found, block: Block, instr: Instruction, uses: Uses, own: Collection[Value],
    known: dict[Function, _Found],
) -> None:  # fmt: skip
    def other(pointer: Value, *, writes: bool) -> None:
        root = root_of(pointer)
        if isinstance(root, Argument) and root.index >= 0:
            found.other.add(root.index)
            found.written |= {root.index} if writes else set()
        elif writes and not isinstance(root, Instruction) and made_of(pointer) not in own:
            found.elsewhere = found.elsewhere or instr

    def added(pointer: Value, kind: str, *places: tuple[Instruction, int]) -> None:
        root = root_of(pointer)
        if isinstance(root, Argument) and root.index >= 0:
            found.added.setdefault(root.index, set()).add(kind)
            found.sums.setdefault(root.index, {}).update(dict.fromkeys(places))
            found.whole |= set() if places else {root.index}
        else:
            other(pointer, writes=True)

    if instr.opcode == "store":
        _escapes(found, instr.operands[0])
        kind = instr.operands[0].type.scalar
        even = not instr.align or instr.align >= ty.size_of(kind)  # other numbers lie across its bounds
        old = _old_of(block, instr, uses) if even else None
        if old is not None:
            added(instr.operands[1], str(instr.operands[0].type.scalar), (old, 0), (instr, 1))
        else:
            other(instr.operands[1], writes=True)
    elif instr.opcode == "load":
        users = uses.get(instr, ())
        store = next((u for u in _after(instr, uses) if u.opcode == "store" and _old_of(block, u, uses) is instr), None)
        if store is None or len(users) != 1:
            other(instr.operands[0], writes=False)
    elif instr.opcode in ("atomicrmw", "cmpxchg"):
        if is_addition(instr, (instr,) if uses.get(instr) else ()):
            added(instr.operands[0], str(instr.type), (instr, 0))
            root = root_of(instr.operands[0])
            found.atomic |= {root.index} if isinstance(root, Argument) else set()
        else:
            other(instr.operands[0], writes=True)
    elif instr.is_call:
        _call(module, found, instr, own, known, added, other)
    elif instr.opcode in PASSES_ON:
        for operand in instr.operands:
            _escapes(found, operand)


def _escapes(found: _Found, value: Value) -> None:
    """An address that goes where it is not followed: what it leads to may be used in any way."""
    if value.type.is_ptr and isinstance(root := root_of(value), Argument) and root.index >= 0:
        found.other.add(root.index)
        found.written.add(root.index)


def _call(
    module: Module, found: _Found, call: Instruction, own: Collection[Value], known: dict[Function, _Found],
    added: Callable[..., None], other: Callable[..., None],
) -> None:  # fmt: skip
    name, callee = call.callee_name or "", call.callee
    if name.startswith(_COPY):  # (it may have a body by now)
        added(call.args[1], name.removeprefix(_COPY).partition(".")[0], (call, 1))
        other(call.args[0], writes=True)
        return
    if isinstance(callee, Function) and callee.blocks:
        inner = _accesses(module, callee, own, known)
        for n, operand in enumerate(call.args):
            if operand.type.is_ptr:
                for kind in inner.added.get(n, ()):
                    added(operand, kind, *([] if n in inner.other else [(call, n)]))
                if n in inner.atomic and isinstance(root := root_of(operand), Argument):
                    found.atomic.add(root.index)
                if n in inner.other:
                    other(operand, writes=n in inner.written)
        found.elsewhere = found.elsewhere or inner.elsewhere
        return
    if name.startswith(("llvm.lifetime.", "llvm.assume", "irgrad.tape.")):
        return
    known_facts = facts(name) if name else None
    for n, operand in enumerate(call.args):
        if operand.type.is_ptr:
            reads_only = known_facts is not None and known_facts.writes is not None and n not in known_facts.writes
            other(operand, writes=not reads_only)


def _after(load: Instruction, uses: Uses) -> list[Instruction]:
    """What a load may be added up to, in its block."""
    found, work = list[Instruction](), [load]
    while work and len(found) < _LINKS:
        value = work.pop()
        users = uses.get(value, ())
        if len(users) == 1:
            user = next(iter(users))
            found.append(user)
            if user.opcode in ("fadd", "fsub"):
                work.append(user)
    return found


def _old_of(block: Block, store: Instruction, uses: Uses) -> Instruction | None:
    """The load of `*p` in `*p = *p + x`, if that is what a store does; x may be several terms, and vectors of such."""
    total, pointer = store.operands
    if total.type.scalar not in (ty.F32, ty.F64) or is_zero(total):
        return None
    work = [(total, 0)]
    while work:
        value, depth = work.pop()
        if not isinstance(value, Instruction) or value.block is not block or len(uses.get(value, ())) != 1:
            continue
        if value.opcode == "load" and value.operands[0] is pointer:
            return value
        if value.opcode in ("fadd", "fsub") and depth < _LINKS:
            work.append((value.operands[0], depth + 1))
            if value.opcode == "fadd":
                work.append((value.operands[1], depth + 1))
    return None
