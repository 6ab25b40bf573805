"""Pointers in memory that a call of the notation hands over: where they lie, and where they are read.

    struct box { int n; double *x; };      double f(struct box *p) { ... p->x[i] * state[i] ... }

Whether `p->x` leads into a variable is asked in front of the derivative (`given_variables.py`) where it may be read
there: the function surely reads as far as that behind the parameter, or the caller's variable reaches so far. Of
other pointers (rows of a table, nodes of a list) it is asked where the derivative reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import PostDominators
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import ACCESSES
from irgrad.engine.ir.uses import uses_of

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts

__all__ = ["Member", "members", "read_member"]

_BEHIND = "irgrad.given.behind"
_POINTER = 8


@dataclass(frozen=True, slots=True)
class Member:
    """A pointer that floats are accessed behind: the parameter's number, then how many bytes behind each pointer the
    next one lies, or what reads it; low, high: the bytes behind it that are accessed, None where that is not known."""

    parameter: int
    path: tuple[int, ...]
    low: int | None
    high: int | None
    read: Instruction | None = None


def members(facts: Facts, kinds: Sequence[str], known: Sequence[int], floats: frozenset[Value]) -> Iterator[Member]:
    """The pointers behind parameters that are "dup". known: the bytes that the caller has, see `apart.py`; floats:
    addresses of floats that are accessed."""
    given = {obj.index: n for n, (formal, kind) in enumerate(zip(facts.pointers.root.args, kinds, strict=False))
             if kind == "dup" and (obj := facts.pointers.object_of.get(formal)) is not None}  # fmt: skip
    behind = {facts.pointers.pointee_of[bit]: n for bit, n in given.items() if bit in facts.pointers.pointee_of}
    if not behind:
        return
    search = _Search(facts, floats)
    found: dict[tuple[int, ...], Member] = {}
    for fn in facts.pointers.functions:
        for instr in fn.instructions():
            if not instr.type.is_ptr or not (instr.opcode == "load" or instr.is_call):
                continue
            owners = [n for bit, n in behind.items() if facts.pointers.of(instr) >> bit & 1]
            span = search.floats_behind(instr) if owners else None
            if span is None:
                continue
            ways = list(search.ways(instr, given)) if instr.opcode == "load" else []
            if ways and all(search.early(instr, way, given, known) for way in ways):
                for way in ways:
                    before = found.get(way)
                    low, high = span if before is None else _both(span, (before.low, before.high))
                    found[way] = Member(way[0], way[1:], low, high)
            else:
                yield from (Member(owner, (), *span, instr) for owner in owners)
    yield from found.values()


_Span = tuple[int | None, int | None]


def _both(one: _Span, other: _Span) -> _Span:
    low = None if one[0] is None or other[0] is None else min(one[0], other[0])
    return low, None if one[1] is None or other[1] is None else max(one[1], other[1])


class _Search:
    def __init__(self, facts: Facts, floats: frozenset[Value]) -> None:
        self.pointers = facts.pointers
        self.places = facts.types.ranges.places
        self.floats = floats
        self.uses = {fn: uses_of(fn.blocks) for fn in facts.pointers.functions}
        self.after = get(PostDominators, facts.pointers.root)
        self.reached: dict[int, int] = {}

    def surely(self, instr: Instruction) -> bool:
        """Whether the root always comes there."""
        root = self.pointers.root
        block = instr.block
        return block is not None and block.function is root and self.after.dominates(block, root.blocks[0])

    def early(self, load: Instruction, way: tuple[int, ...], given: dict[int, int], known: Sequence[int]) -> bool:
        """Whether a pointer may be read in front of the derivative, and is the same there."""
        number, *path = way
        own = known[number] if number < len(known) else 0
        return self.surely(load) or (len(path) == 1 and path[0] + _POINTER <= max(own, self.reach(given, number)))

    def reach(self, given: dict[int, int], number: int) -> int:
        """How many bytes behind a parameter the root surely accesses."""
        if not self.reached:
            self.reached = dict.fromkeys(given.values(), 0)
            for instr in self.pointers.root.instructions():
                if instr.opcode in ACCESSES and self.surely(instr):
                    size = ty.store_size(instr.operands[0].type if instr.opcode == "store" else instr.type)
                    where = self.places(instr.operands[instr.traits.address])
                    if len(where) == 1:
                        ((bit, offsets),) = where.items()
                        if bit in given and offsets.exact:
                            self.reached[given[bit]] = max(self.reached[given[bit]], offsets.start + size)
        return self.reached[number]

    def ways(self, load: Instruction, given: dict[int, int], depth: int = 3) -> Iterator[tuple[int, ...]]:
        """By which parameter and which places a pointer is reached; none where that is not all."""
        address, at = load.operands[0], 0
        places = self.places(address)
        if places and all(bit in given and offsets.exact and offsets.start >= 0 for bit, offsets in places.items()):
            yield from ((given[bit], offsets.start) for bit, offsets in places.items())
            return
        while isinstance(address, Instruction) and address.opcode == "getelementptr":
            step = _constant(address)
            if step is None:
                return
            address, at = address.operands[0], at + step
        if depth and isinstance(address, Instruction) and address.opcode == "load" and address is not load:
            for way in self.ways(address, given, depth - 1):
                yield *way, at

    def floats_behind(self, pointer: Instruction) -> _Span | None:
        """The bytes behind a pointer that are accessed as floats; None where none are."""
        assert pointer.block is not None and pointer.block.function is not None
        uses = self.uses[pointer.block.function]
        work: list[tuple[Value, int | None]] = [(pointer, 0)]
        seen: set[Value] = {pointer}
        found: _Span | None = None
        for address, at in work:
            for user in uses.get(address, ()):
                fresh: _Span | None = None
                if user.opcode == "getelementptr" and user.operands[0] is address:
                    step = _constant(user)
                    work.append((user, None if at is None or step is None else at + step))
                elif user.opcode in ACCESSES and user.operands[user.traits.address] is address:
                    size = ty.store_size(user.operands[0].type if user.opcode == "store" else user.type)
                    fresh = (at, None if at is None else at + size) if address in self.floats else None
                elif user.type.is_ptr and user.opcode in ("phi", "select"):
                    work += [(user, None)] if user not in seen else []
                    seen.add(user)
                elif user.opcode not in ("icmp", "ptrtoint") and not (user.callee_name or "").startswith("llvm.life"):
                    fresh = None, None
                if fresh is not None:
                    found = fresh if found is None else _both(found, fresh)
        return found


def _constant(address: Instruction) -> int | None:
    """How many bytes a getelementptr moves on, where that is a constant."""
    from irgrad.engine.differentiate.layout.lanes import constant_offset

    indices = [i for i in address.operands[1:] if isinstance(i, ConstInt)]
    if address.elem is None or len(indices) < len(address.operands) - 1:
        return None
    return constant_offset(address.elem, indices)


def read_member(module: Module, b: Builder, parameter: Argument, path: Sequence[int]) -> Value:
    """The pointer there, null where one on the way is null."""
    if _BEHIND not in module.functions:
        fn = Function(_BEHIND, ty.function(ty.PTR, (ty.PTR, ty.I64)))
        fn.head, fn.tail = "internal", "alwaysinline"
        fn.blocks = entry, there, nothing = [Block(name) for name in ("entry", "there", "nothing")]
        for block in fn.blocks:
            block.function = fn
        start, at = fn.args
        first = Builder(entry)
        first.cond_br(first.icmp("eq", start, ConstZero(ty.PTR)), nothing, there)
        second = Builder(there)
        second.ret(second.load(ty.PTR, second.gep(ty.I8, start, at, flags=()), 1))
        Builder(nothing).ret(ConstZero(ty.PTR))
        module.functions[_BEHIND] = fn
    found: Value = parameter
    for step in path:
        found = b.call(module.functions[_BEHIND], [found, ConstInt(ty.I64, step)])
    return found
