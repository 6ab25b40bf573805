"""What each iteration of a grid's loop keeps, laid out for threads that run together.

What an iteration reserves is a piece of memory that all iterations of its loop reserve together. Pieces of 32
consecutive iterations, a warp's, are a block, in which element j of an array of iteration i lies at

    block of i // 32  +  32 * begin of the array  +  (32 * j + i % 32) * size of an element

so that threads that go together touch neighbours: a step of an address is 32 times as long in such an array, wherever
it is taken. Records that lead to arrays are arrays themselves. This needs that all of an array's accesses are known, of
one size, and through addresses that lead to no other memory (`addresses.py`); another array lies whole, in the place
that the 32 have for it. Arrays of constant, small size that end with the iteration are on its stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.grids.addresses import WORLD, Addresses, copy_of
from irgrad.engine.grids.static_tape import element_size, whole_elements
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Module, Value, is_zero
from irgrad.engine.ir.rewrite import declare, replace_uses

__all__ = ["WARP", "lay_out", "on_stack"]

WARP = 32
"""Iterations whose pieces are a block."""
_STACK = 256  # bytes of an array on the stack of an iteration
_WRITTEN_OUT = 64  # elements of a copy


# -- on the stack -----------------------------------------------------------------------------------------------------


def on_stack(module: Module, fn: Function, bodies: Mapping[str, Function]) -> None:
    """Small arrays that an iteration reserves once, and of which no address is kept, become its variables; those that
    only its reverse sweep uses become variables of that; what is never read is not written; and what always is one
    constant is not read.

    fn, bodies: see `Addresses`
    """
    known = Addresses(fn, bodies)
    _hand_constants(known)
    while _unread(known):
        known = Addresses(fn, bodies)
    _zeroed_before(module, known)
    kept = known.kept() | known.lost
    for site, body in known.sites.items():
        if body is not fn and site not in kept and (size := _small(body, site)):
            replace_uses(body, {site: _variable(body, size)})
            _remove(site)


def _hand_constants(known: Addresses) -> None:
    """What iterations read where all of them write one constant is that constant."""
    written: dict[Value, list[tuple[int | None, Value | None]]] = {}
    for instr in known.instructions():
        if instr.opcode == "store":
            for memory, at in known.places(instr.operands[1]):
                written.setdefault(memory, []).append((at, instr.operands[0]))
        elif _fills(instr) or copy_of(instr) or instr.traits.has("updates"):
            for memory in known.memories(instr.operands[0]):
                written.setdefault(memory, []).append((None, None))
    unclear = {m for m, rows in written.items() if any(at is None for at, _ in rows)} | known.lost | {WORLD}
    for load in [i for i in known.instructions() if i.opcode == "load" and not i.type.is_ptr and not i.volatile]:
        places = known.places(load.operands[0])
        memory, at = next(iter(places)) if len(places) == 1 else (WORLD, None)
        if at is None or memory in unclear:
            continue
        first, size = next((v for place, v in written.get(memory, ()) if place == at), None), ty.size_of(load.type)
        if not isinstance(first, ConstInt) or first.type is not load.type:
            continue
        near = [(place, v) for place, v in written[memory] if place is not None and v is not None
                and place < at + size and at < place + ty.size_of(v.type)]  # fmt: skip
        if all(place == at and isinstance(v, ConstInt) and (v.type, v.value) == (first.type, first.value)
               for place, v in near):  # fmt: skip
            assert load.block is not None and load.block.function is not None
            replace_uses(load.block.function, {load: first})
            _remove(load)


def _unread(known: Addresses) -> bool:
    """Take out what iterations write to memory of theirs and nothing reads, and memory that nothing uses; whether there
    was such."""
    read: dict[Value, list[tuple[int | None, int]]] = {}
    writes: list[Instruction] = []
    used = _users(known)
    for instr in known.instructions():
        if instr.opcode == "store" or _fills(instr):
            writes.append(instr)
        elif instr.opcode == "load" or instr.traits.has("updates"):
            for memory, at in known.places(instr.operands[0]):
                read.setdefault(memory, []).append((at, ty.size_of(instr.type)))
        elif copy_of(instr):
            for memory in known.memories(instr.operands[1]):
                read.setdefault(memory, []).append((None, 0))
    gone = [w for w in writes if _lost_on(known, w, read)]
    gone += [site for site, body in known.sites.items() if body is not known.functions[0] and site not in used]
    for instr in gone:
        _remove(instr)
    return bool(gone)


def _lost_on(known: Addresses, write: Instruction, read: Mapping[Value, list[tuple[int | None, int]]]) -> bool:
    """Whether nothing reads what an instruction writes."""
    if write.volatile or write.ordering:
        return False
    store = write.opcode == "store"
    size = ty.size_of(write.operands[0].type) if store else 0
    places = known.places(write.operands[1 if store else 0])

    def met(at: int | None, other: int | None, length: int) -> bool:
        return not store or at is None or other is None or (at < other + length and other < at + size)

    return bool(places) and all(
        isinstance(memory, Instruction) and known.sites.get(memory) in known.functions[1:] and memory not in known.lost
        and not any(met(at, other, length) for other, length in read.get(memory, ()))
        for memory, at in places
    )  # fmt: skip


def _small(body: Function, site: Instruction) -> int:
    """The bytes of a small array that is reserved once; 0 for others."""
    size = site.operands[1]
    if not isinstance(size, ConstInt) or not 0 < size.value <= _STACK or site.block is None:
        return 0
    return 0 if get(Loops, body).of(site.block) is not None else size.value


def _variable(body: Function, size: int) -> Value:
    return Builder(body.entry, 0).alloca(ty.array(-(-size // 8), ty.I64), align=16)


def _zeroed_before(module: Module, known: Addresses) -> None:
    """Memory that a primal sweep sets to zero and hands on, a shadow, is reserved where the reverse sweep gets it."""
    users, found = _users(known), _found(known)
    for site, body in list(known.sites.items()):
        size = _small(body, site) if body is not known.functions[0] and site not in known.lost else 0
        inside = [i for i in users.get(site, ()) if i.block is not None and i.block.function is body]
        stores = [i for i in inside if i.opcode == "store" and site in known.memories(i.operands[0])]
        ways = found.get(site, [])
        load = ways[0] if len(ways) == 1 and isinstance(ways[0], Instruction) else None
        if not size or load is None or load.opcode != "load" or known.places(load) != {(site, 0)} or not stores:
            continue
        block = load.block
        assert block is not None and block.function is not None
        other = block.function
        if other in (body, known.functions[0]) or get(Loops, other).of(block) is not None:
            continue
        if not all(i in stores or _clears(i) for i in inside):
            continue
        at = Builder(block, block.instructions.index(load))
        variable = _variable(other, size)
        clear = declare(module, "llvm.memset.p0.i64", ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
        at.call(clear, [variable, ConstInt(ty.I8, 0), ConstInt(ty.I64, size), ConstInt(ty.I1, 0)])
        replace_uses(other, {load: variable})
        for gone in dict.fromkeys([*inside, load, site]):
            _remove(gone)
        del known.sites[site]


def _users(known: Addresses) -> dict[Value, list[Instruction]]:
    """Of each memory the instructions that get an address in it."""
    users: dict[Value, list[Instruction]] = {}
    for instr in known.instructions():
        for memory in {m for o in instr.operands if o.type.is_ptr for m in known.memories(o)}:
            users.setdefault(memory, []).append(instr)
    return users


def _found(known: Addresses) -> dict[Value, list[Value]]:
    """Of each memory the ways by which an address of it comes into a function: loads, and arguments of iterations."""
    ways: dict[Value, list[Value]] = {}
    loads = (i for i in known.instructions() if i.opcode == "load" and i.type.is_ptr)
    for value in (*loads, *(a for f in known.functions[1:] for a in f.args)):
        for memory in known.memories(value):
            ways.setdefault(memory, []).append(value)
    return ways


def _clears(instr: Instruction) -> bool:
    """Whether an instruction writes zeros and nothing else, or is a note of where memory is used."""
    name = (instr.callee_name or "") if instr.is_call else ""
    if name.startswith("llvm.memset."):
        return is_zero(instr.operands[1])
    return name.startswith("llvm.lifetime.") or (instr.opcode == "store" and is_zero(instr.operands[0]))


def _remove(instr: Instruction) -> None:
    assert instr.block is not None
    instr.block.instructions.remove(instr)


# -- side by side -----------------------------------------------------------------------------------------------------


def lay_out(fn: Function, bodies: Mapping[str, Function]) -> dict[Instruction, int]:
    """Make the steps of addresses 32 times as long in all arrays that can lie so. Returns the bytes of an element of
    each such array; all others are to lie whole.

    fn, bodies: see `Addresses`
    """
    known = Addresses(fn, bodies)
    users = _users(known)
    widths: dict[Value, int] = {}
    for site, body in known.sites.items():
        if body is not fn and site not in known.lost and (width := _width(known, site, users.get(site, ()))):
            widths[site] = width
    steps = [i for i in known.instructions() if i.opcode == "getelementptr" and i.type.is_ptr]
    copies = [i for i in known.instructions() if copy_of(i) or _fills(i)]
    while wrong := {site for i in (*steps, *copies) for site in _at_odds(known, i, widths)}:
        widths = {site: width for site, width in widths.items() if site not in wrong}
    for instr in copies:
        if width := _width_of(known, instr, widths):
            _write_out(known, instr, width, widths)
    for step in steps:
        if known.memories(step.operands[0]) & widths.keys():
            at = _before(step)
            step.operands[1] = at.mul(at.to_i64(step.operands[1]), ConstInt(ty.I64, WARP), ())
            step.flags = ()
    for instr in known.instructions():
        if instr.traits.address >= 0 and (mine := known.memories(instr.operands[instr.traits.address]) & widths.keys()):
            width = min(widths[site] for site in mine)
            instr.align = min(instr.align or width, width)
            for word in ("align", "dereferenceable", "dereferenceable_or_null"):
                instr.metadata.pop(word, None)
    return {site: width for site, width in widths.items() if isinstance(site, Instruction)}


def _before(instr: Instruction) -> Builder:
    block = instr.block
    assert block is not None
    return Builder(block, block.instructions.index(instr))


def _width(known: Addresses, site: Value, users: Sequence[Instruction]) -> int:
    """The bytes of each element of an array, by its accesses; 0 where they differ or are not all known."""
    sizes: set[int] = set()
    for instr in users:
        place = instr.traits.address
        if instr.opcode == "store" and site not in known.memories(instr.operands[1]):
            continue  # its address is kept
        if place >= 0 and site in known.memories(instr.operands[place]):
            sizes.add(0 if instr.volatile else element_size(instr.operands[0].type if instr.opcode == "store" else
                                                            instr.operands[1].type if instr.opcode == "atomicrmw" else
                                                            instr.type))  # fmt: skip
    width = sizes.pop() if len(sizes) == 1 else 0
    return width if width in (1, 2, 4, 8) else 0


def _fills(instr: Instruction) -> bool:
    return instr.is_call and (instr.callee_name or "").startswith("llvm.memset.")


def _at_odds(known: Addresses, instr: Instruction, widths: Mapping[Value, int]) -> set[Value]:
    """Of the arrays that are to lie side by side those for which an instruction cannot be changed."""
    ends = [known.memories(instr.operands[0])]
    if copy_of(instr):
        ends.append(known.memories(instr.operands[1]))
    mine = {site for end in ends for site in end & widths.keys()}
    if not mine:
        return mine
    width = widths[next(iter(mine))]
    fits = all(widths[site] == width for site in mine) if instr.is_call else True
    fits = fits and all(not end & mine or end <= widths.keys() for end in ends)
    if instr.is_call:
        size, value = instr.operands[2], instr.operands[1]
        fits = fits and isinstance(size, ConstInt) and size.value % width == 0 and size.value <= width * _WRITTEN_OUT
        fits = fits and (copy_of(instr) or isinstance(value, ConstInt))
        return set() if fits else mine
    return set() if fits and all(whole_elements(instr, widths[site]) for site in mine) else mine


def _width_of(known: Addresses, instr: Instruction, widths: Mapping[Value, int]) -> int:
    """The elements that a copy or a fill is to be written out in; 0 where it stays."""
    ends = instr.operands[: 2 if copy_of(instr) else 1]
    return next((widths[site] for end in ends for site in known.memories(end) if site in widths), 0)


def _write_out(known: Addresses, instr: Instruction, width: int, widths: Mapping[Value, int]) -> None:
    """Copy or fill element by element."""
    at, kind = _before(instr), ty.int_(8 * width)
    size = instr.operands[2]
    assert isinstance(size, ConstInt)

    def place(pointer: Value, n: int) -> Value:
        apart = WARP if known.memories(pointer) & widths.keys() else 1
        return at.gep(ty.I8, pointer, n * width * apart, flags=())

    count = size.value // width
    if _fills(instr):
        byte = instr.operands[1]
        assert isinstance(byte, ConstInt)
        whole = ConstInt(kind, int.from_bytes(bytes([byte.value & 255]) * width, "little"))
        values: list[Value] = [whole] * count
    else:
        values = [at.load(kind, place(instr.operands[1], n), 1) for n in range(count)]
    for n, value in enumerate(values):
        at.store(value, place(instr.operands[0], n), 1)
    _remove(instr)
