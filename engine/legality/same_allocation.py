"""Whether two addresses lie in one allocation: shown by the value or the memory that both come from.

The end of a vector and its beginning are fields of one object, a pointer that walks comes from where it began and stops
where its block ends, the two ends of a span were handed over together, a pointer that is read once more is the same if
nothing was written meanwhile. Two elements of a table of pointers may be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, having, of_kind
from irgrad.engine.legality.held_pointers import HeldPointers, nowhere

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["SameAllocation"]

_DEEPEST = 6
_FURTHEST = 4096  # bytes that an address is aligned to
_DISPLACES = having("integer_arithmetic") & having("displaces")
_ARITHMETIC = of_kind("binary")
_MOVES = having("pointer_cast") | {"getelementptr"}
_ONE_INSTANCE = ("argument", "alloca", "global")


class SameAllocation:
    """callers: the calls of each function. uses: the instructions that use a value."""

    def __init__(
        self, unit: Unit, callers: dict[Function, list[Instruction]], uses: Callable[[Value], Iterable[Instruction]]
    ) -> None:
        self._unit = unit
        self._callers = callers
        self._uses = uses
        self._held = HeldPointers(unit.pointers, unit.root, callers, self._unmoved)

    def shown(self, first: Value, second: Value, at: Instruction, depth: int = _DEEPEST) -> bool:
        """Whether it is known wherever `at` runs that the two, of which neither is null, lie in one allocation."""
        return bool(depth) and self._together(first, second, at, depth, set())

    def _together(
        self, first: Value, second: Value, at: Instruction, depth: int, assumed: set[tuple[Value, Value]]
    ) -> bool:
        """`assumed`: pairs of which at least one is a phi, or chosen. If each way into its block keeps a pair in one
        allocation that was in one before, then it always is (coinduction)."""
        ends = first, second
        first, second = self._unmoved(first), self._unmoved(second)
        if first is second or (first, second) in assumed or nowhere(first) or nowhere(second):
            return True
        if any(self._walked(a, b, at) or self._walked(b, a, at) for a, b in (ends, (first, second))):
            return True
        if any(_is(b, "load") and self._held.shown(a, b) for a, b in ((first, second), (second, first))):  # type: ignore[arg-type]
            return True
        ways = _ways(first, second)
        assumed |= {(first, second)} if ways else set()
        if ways:
            return all(self._together(a, b, at, depth, assumed) for a, b in ways)
        return self._pair(first, second, depth)

    def _unmoved(self, value: Value) -> Value:
        """The address that one was made from by casts, and by numbers that move it."""
        begin = self._begin(value, self._integer)
        return begin if begin.type.is_ptr else self._begin(value, self._no_address)

    def _begin(self, value: Value, is_number: Callable[[Value], bool]) -> Value:
        while isinstance(value, Instruction):
            number = value.opcode in _DISPLACES and is_number(value.operands[1])
            if not number and not _aligns(value) and value.opcode not in _MOVES:
                break
            value = value.operands[0]
        return value

    def _no_address(self, value: Value) -> bool:
        return not self._unit.pointers.of(value)

    def _integer(self, value: Value) -> bool:
        """No address, or an integer that is read where distances were stored, as the bytes of a block that are taken:
        distances of two allocations are followed to here from where they are computed."""
        return self._no_address(value) or (_is(value, "load") and self._unit.types.carries(value) is INT)

    def _walked(self, start: Value, end: Value, at: Instruction) -> bool:
        """Whether a loop goes from one to the other wherever `at` runs: by a pointer that begins there, moves by a
        number in each round, is read or written through, and stops where it is equal to the other. A branch around the
        loop that is taken where the two are equal says as much, as does a loop over as many elements as `at`, the
        distance of the two, says."""
        if not isinstance(end, Instruction | Argument) or at.block is None:
            return False
        equal, begin = set[tuple[Block, Block]](), self._unmoved(start)
        loops = self._counted(begin, at)
        for user in self._uses(end):
            if user.opcode != "icmp" or user.pred not in ("eq", "ne") or user.block is None:
                continue
            walker = self._unmoved(user.operands[1] if user.operands[0] is end else user.operands[0])
            if walker is begin:
                branches = [u for u in self._uses(user) if u.opcode == "br"]
                equal |= {(u.block, u.blocks[user.pred == "ne"]) for u in branches if u.block is not None}
            if not isinstance(walker, Instruction) or walker.opcode != "phi" or walker.block is None:
                continue
            rounds = [v for v in walker.operands if v is not walker and self._unmoved(v) is walker]
            begins = [v for v in walker.operands if self._unmoved(v) is not walker]
            from_start = all(self._begins(v, begin) for v in begins)
            if rounds and from_start and any(user.opcode in ("load", "store") for user in self._uses(walker)):
                loops.add(walker.block)
        made = {v.block for v in (start, end) if isinstance(v, Instruction)}
        return bool(loops) and _passes(at.block, loops, equal, made)

    def _counted(self, begin: Value, distance: Instruction) -> set[Block]:
        """The headers of loops that read or write behind a pointer by an index up to a number made of a distance."""
        if distance.opcode != "sub" or not any(self._unmoved(_address(o)) is begin for o in distance.operands):
            return set()
        found: set[Block] = set()
        for place in self._uses(begin):
            if place.opcode != "getelementptr" or place.operands[0] is not begin or not self._touched(place):
                continue
            for index in _leaves(place.operands[1:]):
                following = [index, *index.operands]
                compared = [u for v in following for u in self._uses(v) if u.opcode == "icmp"]
                if index.block is not None and any(_made_of(o, distance) for u in compared for o in u.operands):
                    found.add(index.block)
        return found

    def _touched(self, place: Value) -> bool:
        users = list(self._uses(place))
        users += [u for user in users if user.opcode == "getelementptr" for u in self._uses(user)]
        return any(user.opcode in ("load", "store") for user in users)

    def _begins(self, value: Value, start: Value, depth: int = _DEEPEST) -> bool:
        value = self._unmoved(value)
        if value is start or not depth or not isinstance(value, Instruction) or value.opcode != "phi":
            return value is start
        return all(self._begins(v, start, depth - 1) for v in value.operands)

    def _pair(self, first: Value, second: Value, depth: int) -> bool:
        if first is second or self._one_instance(first, second):
            return True
        if isinstance(first, Argument) and isinstance(second, Argument):
            fn = first.function if first.function is second.function else None
            if fn is None or fn is self._unit.root:  # whoever calls the root may hand over anything
                return False
            calls = self._callers.get(fn, [])
            ends = [(call.args[first.index], call.args[second.index], call) for call in calls]
            return bool(ends) and all(self.shown(*pair, depth - 1) for pair in ends)
        return _is(first, "load") and _is(second, "load") and self._fields(first, second)  # type: ignore[arg-type]

    def _one_instance(self, first: Value, second: Value) -> bool:
        """Whether both point to one object, of which there is one at a time."""
        bits = self._unit.pointers.of(first)
        if bits != self._unit.pointers.of(second) or bits.bit_count() != 1:
            return False
        return self._unit.pointers.objects[bits.bit_length() - 1].kind in _ONE_INSTANCE

    def _fields(self, first: Instruction, second: Instruction) -> bool:
        """Whether two pointers were loaded from different fields of one object, or from one that kept its value."""
        if first.operands[0] is second.operands[0]:
            return self._kept(first, second) or self._kept(second, first)
        (base, at), (other, there) = map(_field, (first.operands[0], second.operands[0]))
        return at != there and _same(base, other, _DEEPEST)

    def _kept(self, first: Instruction, second: Instruction) -> bool:
        """Whether nothing can have been written to the place of two loads on any way from the first to the second."""
        address = first.operands[0]
        begin = second.block
        if begin is None or begin.function is None:
            return False
        cfg, seen, met = get(Cfg, begin.function), set[Block](), False
        work = [(begin, begin.instructions.index(second))]
        while work:
            block, length = work.pop()
            for instr in reversed(block.instructions[:length]):
                if instr is first or instr is address:
                    met = met or instr is first
                    break
                if self._unit.pointers.instr_writes(instr) & self._unit.pointers.of(address):
                    return False
            else:
                new = [b for b in cfg.preds(block) if b not in seen]
                seen.update(new)
                work += [(b, len(b.instructions)) for b in new]
        return met


def _aligns(value: Instruction) -> bool:
    """Whether it rounds an address down by some low bits of it."""
    mask = value.operands[1] if value.opcode == "and" else None
    return isinstance(mask, ConstInt) and mask.type is ty.I64 and 0 < -mask.value % (1 << 64) <= _FURTHEST


def _address(value: Value) -> Value:
    return value.operands[0] if isinstance(value, Instruction) and value.opcode == "ptrtoint" else value


def _leaves(numbers: Iterable[Value]) -> list[Instruction]:
    """The phis that numbers are computed from."""
    found, seen, work = list[Instruction](), set[Value](), list(numbers)
    while work:
        value = work.pop()
        if not isinstance(value, Instruction) or value in seen:
            continue
        seen.add(value)
        if value.opcode == "phi":
            found.append(value)
        elif value.type.is_int and value.opcode in _ARITHMETIC:
            work += value.operands
    return found


def _made_of(value: Value, number: Instruction, depth: int = 2 * _DEEPEST) -> bool:
    """Whether a value is computed from a number."""
    if value is number or not depth or not isinstance(value, Instruction) or value.opcode not in _ARITHMETIC:
        return value is number
    return any(_made_of(o, number, depth - 1) for o in value.operands)


def _passes(at: Block, loops: set[Block], equal: set[tuple[Block, Block]], made: set[Block | None]) -> bool:
    """Whether each way from where the pointers were `made` to `at`, or each way on from there until they are made
    anew or the function returns, goes through one of the loops, or from one block to the next where both are equal."""
    if at in loops:
        return True
    if at.function is None:
        return False
    cfg = get(Cfg, at.function)
    for forwards in (False, True):
        seen, work = {at}, [at]
        missed = at in made and not forwards
        while work and not missed:
            block = work.pop()
            following = cfg.succs(block) if forwards else cfg.preds(block)
            ended = block.instructions[-1].opcode == "ret" if forwards else not following
            new = [b for b in following
                   if b not in loops and ((block, b) if forwards else (b, block)) not in equal]  # fmt: skip
            missed = ended or any(b in made for b in new)
            work += [b for b in new if b not in seen]
            seen.update(new)
        if not missed:
            return True
    return False


def _ways(first: Value, second: Value) -> list[tuple[Value, Value]]:
    """What two values that are known at one point of the program may be, one pair for each way into the block of a phi;
    none if neither is chosen. Phis of one block change at once; else the other value must not change meanwhile, or be
    made later, and the ways not again before it."""
    if _is(first, "phi") and _is(second, "phi") and first.block is second.block:  # type: ignore[attr-defined]
        others = dict(zip(second.blocks, second.operands, strict=True))  # type: ignore[attr-defined]
        return [(v, others[b]) for b, v in zip(first.blocks, first.operands, strict=True)]  # type: ignore[attr-defined]
    for chosen, other, turned in ((first, second, False), (second, first, True)):
        if isinstance(chosen, Instruction) and chosen.opcode in CHOICES and (
            chosen.opcode != "phi" or _before(other, chosen) or _later(other, chosen)
            or all(_before(v, chosen) for v in chosen.operands)
        ):  # fmt: skip
            values = chosen.operands[1:] if chosen.opcode == "select" else chosen.operands
            return [(other, v) if turned else (v, other) for v in values]
    return []


def _before(value: Value, phi: Instruction) -> bool:
    """Whether a value is the same in all ways into the block of a phi."""
    if not isinstance(value, Instruction):
        return True
    block = phi.block
    if block is None or block.function is None or value.block is block:
        return False
    return get(Dominators, block.function).value_dominates(value, block.instructions[-1])


def _later(value: Value, phi: Instruction) -> bool:
    """Whether a value is made behind a phi, and nothing that comes into the phi is made anew between the two."""
    begin, end = phi.block, value.block if isinstance(value, Instruction) else None
    if begin is None or begin.function is None or end is None or end is begin or end.function is not begin.function:
        return False
    if not get(Dominators, begin.function).value_dominates(phi, end.instructions[-1]):
        return False
    cfg, met, work = get(Cfg, begin.function), {begin, end}, [begin]
    while work:
        new = [b for b in cfg.succs(work.pop()) if b not in met]
        met.update(new)
        work += new
    return not any(isinstance(v, Instruction) and v.block in met for v in phi.operands)


def _is(value: Value, opcode: str) -> bool:
    return isinstance(value, Instruction) and value.opcode == opcode


def _field(address: Value) -> tuple[Value, tuple[int, ...]]:
    """What an address is a constant distance from, and the indices that lead there."""
    at: tuple[int, ...] = ()
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        indices = [o.value for o in address.operands[1:] if isinstance(o, ConstInt)]
        if len(indices) < len(address.operands) - 1:
            break
        at = (*indices, *at) if any(indices) else at
        address = address.operands[0]
    return address, at


def _same(first: Value, second: Value, depth: int) -> bool:
    """Whether two addresses are computed alike."""
    if first is second:
        return True
    alike = isinstance(first, Instruction) and isinstance(second, Instruction) and first.opcode == second.opcode
    if not alike or not depth or first.opcode not in ("load", "getelementptr"):  # type: ignore[attr-defined]
        return isinstance(first, ConstInt) and isinstance(second, ConstInt) and first.value == second.value
    pairs = zip(first.operands, second.operands, strict=True)  # type: ignore[attr-defined]
    return all(_same(a, b, depth - 1) for a, b in pairs)
