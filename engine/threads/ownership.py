"""Whose memory an address leads to.

Memory may be an iteration's own across its two sweeps. The primal sweep, `X.aug.NAME`, keeps what the reverse sweep,
`X.rev.NAME`, reads in records: it allocates and returns them, and the other gets them as its last arguments. Addresses
in a record that lead to memory which the first sweep has allocated, and which it stores nowhere but in records, are
known to that iteration alone: what its reverse sweep writes there meets no other iteration. Addresses in a record that
lead to memory behind an argument become distances from it (`keep_distances`), so that they are known to lead there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, ConstInt, ConstUndef, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import having, of_kind
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.iterations import ITERATION
from irgrad.rules.effects import facts

__all__ = ["UNKNOWN", "base_of", "keep_distances", "made_of", "own_addresses", "root_of"]

_SAME = having("same_memory")
_PRIMAL, _REVERSE = ".aug.", ".rev."

UNKNOWN = Argument(ty.PTR, "unknown", -1)
"""Stands for what nothing is known of."""


def base_of(instr: Instruction) -> Value | None:
    """The address that an address is made of, where it is one; null leads nowhere."""
    same = instr.opcode in _SAME or instr.opcode == "select"
    pointers = [o for o in instr.operands if o.type.is_ptr and not isinstance(o, ConstZero)] if same else []
    return pointers[0] if len(pointers) == 1 else None


def made_of(pointer: Value) -> Value:
    """What an address is made of, step by step of single addresses."""
    while isinstance(pointer, Instruction) and (base := base_of(pointer)) is not None:
        pointer = base
    return pointer


def root_of(pointer: Value) -> Value:
    """What an address is an address in: an argument, a variable, an allocation of the function, or `UNKNOWN`."""
    pointer = made_of(pointer)
    if not isinstance(pointer, Instruction) or pointer.opcode == "alloca":
        return pointer
    return pointer if _allocates(pointer) else UNKNOWN


def _allocates(instr: Instruction) -> bool:
    name = (instr.callee_name or "") if instr.is_call else ""
    known = facts(name) if name else None
    return name == "irgrad.tape.alloc" or (known is not None and known.kind == "allocator")


# -- records of iterations --------------------------------------------------------------------------------------------


def own_addresses(module: Module) -> set[Value]:
    """Addresses that reverse sweeps of iterations load from their records and that lead to memory of their own."""
    found: set[Value] = set()
    for fn, primal, calls in _sweeps(module):
        found |= _from_records(fn, primal, calls)
    return found


def _sweeps(module: Module) -> Iterator[tuple[Function, Function, list[Instruction]]]:
    """The reverse sweeps of iterations, each with its primal sweep and its calls."""
    calls: dict[str, list[Instruction]] = {}
    for fn in module.functions.values():
        for instr in fn.instructions():
            if instr.is_call and ITERATION in (instr.callee_name or ""):
                calls.setdefault(instr.callee_name or "", []).append(instr)
    for name, fn in module.functions.items():
        before, mark, behind = name.rpartition(_REVERSE)
        while mark:  # of a derivative of a derivative either one may be the iteration's
            primal = module.functions.get(f"{before}{_PRIMAL}{behind}")
            if ITERATION in behind and primal is not None and primal.blocks:
                yield fn, primal, calls.get(name, [])
            before, mark, more = before.rpartition(_REVERSE)
            behind = f"{more}{_REVERSE}{behind}"


def _from_records(fn: Function, primal: Function, calls: list[Instruction]) -> set[Value]:
    records = _records(primal)
    given = _given(fn, records, calls)
    own = _own_offsets(primal, records) if given else set()
    loads = (i for i in fn.instructions() if i.opcode == "load" and i.type.is_ptr)
    return {i for i in loads if (place := _place(i.operands[0])) is not None and place[0] in given and place[1] in own}


def _given(fn: Function, records: list[Value], calls: list[Instruction]) -> set[Value]:
    """The arguments of a reverse sweep that are the records of its primal sweep."""
    first = len(fn.args) - len(records)
    kept = [value for call in calls for value in call.args[first:]]  # what the loop has kept of the primal sweep
    if not kept or not all(isinstance(v, Instruction) and v.opcode == "load" and v.type.is_ptr for v in kept):
        return set()
    return set(fn.args[first:])


def keep_distances(module: Module) -> None:
    """Addresses in memory behind an argument that a primal sweep keeps for its reverse sweep are kept as distances from
    that argument: the reverse sweep is known to go to the same memory then, wherever that is."""
    for fn, primal, calls in _sweeps(module):
        records = _records(primal)
        given = _given(fn, records, calls)
        own = _own_addresses_of(fn, given, _own_offsets(primal, records, through=False)) if given else {}
        for offset, loads in own.items():
            places = {(record, offset) for record in records}
            memory = {source for store in primal.instructions()
                      if store.opcode == "store" and _place(store.operands[1]) in places
                      for source in _sources(store.operands[0], {})}  # fmt: skip
            stores = [i for i in primal.instructions() if i.opcode == "store" and made_of(i.operands[1]) in memory]
            read = [i for i in fn.instructions() if i.opcode == "load" and made_of(i.operands[0]) in loads]
            if any(i.opcode == "load" and made_of(i.operands[0]) in memory for i in primal.instructions()):
                continue
            _as_distances(fn, stores, read)


def _own_addresses_of(fn: Function, given: Collection[Value], own: Collection[int]) -> dict[int, set[Value]]:
    """What a reverse sweep loads from its records where they have addresses of its own memory, by offset."""
    found: dict[int, set[Value]] = {}
    for load in fn.instructions():
        place = _place(load.operands[0]) if load.opcode == "load" and load.type.is_ptr else None
        if place is not None and place[0] in given and place[1] in own:
            found.setdefault(place[1], set()).add(load)
    return found


def _as_distances(fn: Function, stores: list[Instruction], loads: list[Instruction]) -> None:
    """Store distances in place of addresses that are all made of one argument."""
    roots = {made_of(store.operands[0]) if store.operands[0].type.is_ptr else None for store in stores}
    root = next(iter(roots)) if len(roots) == 1 else None
    if not isinstance(root, Argument) or root.index >= len(fn.args) or not all(load.type.is_ptr for load in loads):
        return
    twin = fn.args[root.index]
    if not twin.type.is_ptr:
        return
    for store in stores:
        assert store.block is not None
        at = Builder(store.block, store.block.instructions.index(store))
        both = [at.cast("ptrtoint", value, ty.I64) for value in (store.operands[0], root)]
        store.operands[0] = at.sub(both[0], both[1], ())
    for load in loads:
        assert load.block is not None
        at = Builder(load.block, load.block.instructions.index(load))
        distance = at.load(ty.I64, load.operands[0], load.align)
        address = at.gep(ty.I8, twin, distance, flags=())
        load.block.instructions.remove(load)
        replace_uses(fn, {load: address})


def _records(primal: Function) -> list[Value]:
    """What a function allocates and returns, of which nothing else has the address; [] where it returns an address of
    something else."""
    returned = [v for block in primal.blocks if block.terminator.opcode == "ret" and block.terminator.operands
                for v in _leaves(block.terminator.operands[0])]  # fmt: skip
    found = list(dict.fromkeys(v for v in returned if v.type.is_ptr))
    uses = uses_of(primal.blocks)
    whole = all(isinstance(v, Instruction) and _allocates(v) and not _escapes(v, uses, set(), {}) for v in found)
    return found if whole and len(found) == len([v for v in returned if v.type.is_ptr]) else []


def _leaves(value: Value) -> Iterator[Value]:
    """The parts that a value was made of."""
    while isinstance(value, Instruction) and value.opcode == "insertvalue":
        yield from _leaves(value.operands[1])
        value = value.operands[0]
    if not isinstance(value.type, ty.StructType):
        yield value


def _own_offsets(primal: Function, records: list[Value], *, through: bool = True) -> set[int]:
    """Where all records have an address of memory that the function has allocated, and that is in records alone; or
    (through) in variables of the function."""
    uses, held = uses_of(primal.blocks), set(records)
    cells = uses if through else {}
    found: dict[tuple[Value, int], bool] = {}
    for store in primal.instructions():
        if store.opcode != "store" or not store.operands[0].type.is_ptr:
            continue
        place = _place(store.operands[1])
        if place is not None and place[0] in held:
            sources = _sources(store.operands[0], cells)
            own = all(isinstance(v, Instruction) and _allocates(v) and not _escapes(v, uses, held, cells)
                      for v in sources)  # fmt: skip
            found[place] = found.get(place, True) and own
    offsets = {offset for _, offset in found}
    return {offset for offset in offsets if all(found.get((record, offset)) for record in records)}


def _sources(pointer: Value, cells: Uses) -> set[Value]:
    """What an address may be made of, through merges and variables, without what is not set on a path."""
    found, work = set[Value](), [pointer]
    seen = set(work)
    while work:
        value = made_of(work.pop())
        given = _given_by(value, cells)
        if given is not None:
            more = [o for o in given if o.type.is_ptr and o not in seen]
            seen.update(more)
            work += more
        elif not isinstance(value, ConstUndef | ConstZero):
            found.add(value)
    return found


def _escapes(memory: Value, uses: Uses, records: set[Value], cells: Uses) -> bool:
    """Whether the address of memory may be known elsewhere than in the function, what it returns, and records; cells:
    uses of the variables that may hold it."""
    work, seen = [memory], {memory}
    while work:
        value = work.pop()
        for user in uses.get(value, ()):
            if user.opcode == "store" and user.operands[0] is value:
                place = _place(user.operands[1])
                if place is not None and _stored(place[0], cells) is not None and value.type.is_ptr:
                    again = [i for i in cells[place[0]] if i.opcode == "load" and i not in seen]
                    seen.update(again)
                    work += again
                elif place is None or place[0] not in records or not value.type.is_ptr:
                    return True
            elif user.opcode in _SAME or user.opcode == "insertvalue" or user.traits.has("chooses"):
                if user not in seen:
                    seen.add(user)
                    work.append(user)
            elif not (user.opcode in _TELLS_NOBODY or _accesses(user, value) or (user.is_call and _only_uses(user))):
                return True
    return False


def _given_by(value: Value, cells: Uses) -> list[Value] | None:
    """What a value is one of; None for other values than merges and those of variables."""
    if not isinstance(value, Instruction):
        return None
    if value.opcode == "load":
        return _stored(value.operands[0], cells)
    return value.operands if value.traits.has("chooses") else None


def _stored(variable: Value, uses: Uses) -> list[Value] | None:
    """What is stored to a variable of the function that is only read and written as a whole; None for other memory."""
    if not isinstance(variable, Instruction) or variable.opcode != "alloca":
        return None
    users = uses.get(variable, ())
    kinds = {i.type if i.opcode == "load" else i.operands[0].type for i in users}
    if kinds != {variable.elem} or not all(_accesses(i, variable) for i in users):
        return None
    return [i.operands[0] for i in users if i.opcode == "store"]


_TELLS_NOBODY = of_kind("compare", "terminator")


def _accesses(instr: Instruction, pointer: Value) -> bool:
    """Whether an instruction uses an address only for the memory behind it."""
    place = instr.traits.address
    return place >= 0 and [n for n, o in enumerate(instr.operands) if o is pointer] == [place]


def _only_uses(call: Instruction) -> bool:
    """Whether a call does nothing with an address but to use, to note or to free what it leads to."""
    name = call.callee_name or ""
    known = facts(name) if name else None
    named = name.startswith(("llvm.mem", "llvm.lifetime.", "irgrad.tape."))
    return named or (known is not None and known.kind == "deallocator")


def _place(pointer: Value) -> tuple[Value, int] | None:
    """An address as another one and bytes behind it; None where they are not constant."""
    offset = 0
    while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
        index = pointer.operands[1]
        if len(pointer.operands) != 2 or pointer.elem is None or not isinstance(index, ConstInt):
            return None
        offset += index.value * ty.size_of(pointer.elem)
        pointer = pointer.operands[0]
    return pointer, offset
