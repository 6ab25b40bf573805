"""Pointers that alternate from step to step change places in the header of their loop, as swapped ones do.

    levels[t % 2], levels[(t + 1) % 2]; cur ^= 1      ->      a = phi [F(0), before], [b, step]
                                                              b = phi [F(1), before], [a, step]

A value alternates where it hangs on the iteration through its parity alone: on the lowest bit of a counter of odd
steps, or on an index that comes back after two iterations. What it is in the first and in the second iteration is
computed before the loop: address arithmetic, and loads from memory of known size which nothing in the loop writes. Read
from a table of pointers, two time levels are two addresses of which nobody knows that they differ; as phis from two
allocations they always do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import PARITY, POINTER_SOURCES, RESIZES, SPECULATABLE
from irgrad.engine.ir.rewrite import copied, replace_uses
from irgrad.engine.normalise.scratch import normal_form

__all__ = ["swap_alternating"]

_MOST = 64  # operations that one value hangs on
_FOLDED = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
Place = tuple[Value, int]  # a pointer from outside of the loop, and bytes from there


def swap_alternating(module: Module, root: Function) -> int:
    """Pointers that alternate become phis. Returns how many did."""
    bodies = [fn for fn in module.functions.values() if fn.blocks]
    if not normal_form(root) or not any(_may_gain(fn) for fn in bodies):
        return 0
    pointers = points_to(module, root)
    return sum(_swap(pointers, fn) for fn in pointers.functions)


def _may_gain(fn: Function) -> bool:
    """Whether a loop may have such pointers: loads or addresses by an index that alternates."""
    loops = get(Loops, fn)
    return any(_Alternation(loop, loops, None).pointers() for loop in loops.all)


def _swap(pointers: Pointers, fn: Function) -> int:
    loops = get(Loops, fn)
    count = 0
    for loop in loops.all:
        found = _Alternation(loop, loops, pointers)
        wanted = found.pointers()
        if wanted:
            count += _replace(fn, loop, [(value, found.at(value, 0), found.at(value, 1)) for value in wanted])
    return count


def _replace(fn: Function, loop: Loop, values: list[tuple[Instruction, Value, Value]]) -> int:
    """Two phis for each pair of values, whichever comes first."""
    assert loop.preheader is not None and loop.latch is not None
    replaced: dict[Value, Value] = {}
    phis: dict[tuple[Value, Value], Value] = {}
    for value, first, second in values:
        if first is second:
            replaced[value] = first
            continue
        if (first, second) not in phis:
            ways = [loop.preheader, loop.latch]
            one, other = (Instruction("phi", value.type, [at, at], blocks=list(ways)) for at in (first, second))
            one.operands[1], other.operands[1] = other, one
            for phi in (other, one):
                phi.block = loop.header
                loop.header.instructions.insert(0, phi)
            phis[first, second], phis[second, first] = one, other
        replaced[value] = phis[first, second]
    replace_uses(fn, replaced)
    for block in loop.blocks:
        block.instructions[:] = [i for i in block.instructions if i not in replaced]
    return len(replaced)


class _Alternation:
    """What alternates in a loop. Without points-to sets, what may."""

    def __init__(self, loop: Loop, loops: Loops, pointers: Pointers | None) -> None:
        self.loop = loop
        self.loops = loops
        self.facts = pointers
        self.counters: tuple[dict[Value, int], dict[Value, int]] = ({}, {})  # in the first and second iteration
        self.indices: set[Value] = set()  # counters that come back after two iterations
        self._known: dict[Value, bool] = {}
        self._writes: int | None = None
        self._made: tuple[dict[Value, Value], dict[Value, Value]] = ({}, {})
        self._cells: dict[Place, Value] = {}
        if loop.preheader is not None and loop.latch is not None:
            for phi in loop.header.phis:
                self._count(phi)

    def _count(self, phi: Instruction) -> None:
        start = phi.operands[phi.blocks.index(self.loop.preheader)]  # type: ignore[arg-type]
        following = phi.operands[phi.blocks.index(self.loop.latch)]  # type: ignore[arg-type]
        if not isinstance(phi.type, ty.IntType) or not isinstance(start, ConstInt):
            return
        first = _wrapped(start.value, phi.type)
        second = _number(following, {phi: first})
        if second is None:
            return
        steps = following.opcode == "add" and following.operands[0] is phi if isinstance(following, Instruction) else 0
        if second != first and _number(following, {phi: second}) == first:
            self.indices.add(phi)
        elif not steps or not (second - first) & 1:
            return
        self.counters[0][phi], self.counters[1][phi] = first, second

    def pointers(self) -> list[Instruction]:
        """What alternates and is used by something that does not: pointers that are loaded, and other pointers that
        inner loops run over."""
        if not self.counters[0] or not (self.indices or any(map(_parity, self._instructions()))):
            return []
        found = []
        for instr in self._instructions():
            fits = instr.type is ty.PTR and instr.opcode in POINTER_SOURCES
            if fits and self._alternates(instr) and self._hangs(instr):
                found.append(instr)
        users = [i for i in self._instructions() if not self._alternates(i)] if found else []
        used = {o for i in users for o in i.operands}
        inside = {o for i in users if self.loops.of(i.block) is not self.loop for o in i.operands}  # type: ignore[arg-type]
        return [instr for instr in found if instr in (used if instr.opcode == "load" else inside)]

    def _instructions(self) -> Iterator[Instruction]:
        return (instr for block in self.loop.blocks for instr in block.instructions)

    def _hangs(self, value: Value) -> bool:
        """Whether a counter is among what the value hangs on."""
        work, seen = [value], set[Value]()
        while work:
            item = work.pop()
            if item in self.counters[0]:
                return True
            if isinstance(item, Instruction) and self.loop.contains(item.block) and item not in seen:
                seen.add(item)
                work += item.operands
        return False

    # -- what alternates ---------------------------------------------------------------------------------------------

    def _alternates(self, value: Value) -> bool:
        """Whether a value is the same in all even iterations, and in all odd ones; at most `_MOST` operations deep."""
        if not isinstance(value, Instruction) or not self.loop.contains(value.block):
            return True
        if value not in self._known:
            self._known[value] = False
            self._known[value] = len(self._known) <= 64 * _MOST and self._decide(value)
        return self._known[value]

    def _decide(self, value: Instruction) -> bool:
        if value in self.indices:
            return True
        op = value.opcode
        if _parity(value) and self._even_or_odd(value.operands[0]):
            return True
        if op == "load":
            return self._alternates(value.operands[0]) and self._unchanged(value)
        return op in SPECULATABLE and op not in ("phi", "freeze") and all(map(self._alternates, value.operands))

    def _even_or_odd(self, value: Value, depth: int = 8) -> bool:
        """Whether the lowest bit of a number alternates."""
        if value in self.counters[0] or self._alternates(value):
            return True
        if not isinstance(value, Instruction) or value.opcode not in PARITY or not depth:
            return False
        return all(self._even_or_odd(operand, depth - 1) for operand in value.operands)

    def _unchanged(self, load: Instruction) -> bool:
        """Whether a load can be made before the loop: from memory of known size that nothing in the loop writes."""
        if load.volatile or load.ordering or load.type is not ty.PTR:
            return False
        if self.facts is None:
            return True
        if self._writes is None:
            self._writes = 0
            for instr in self._instructions():
                self._writes |= self.facts.instr_writes(instr)
        objects = self.facts.expand(self.facts.of(load.operands[0]))
        if not objects or objects & self._writes:
            return False
        for turn in range(2):
            place = self._place(load.operands[0], self.counters[turn])
            obj = self.facts.object_of.get(place[0]) if place is not None else None
            if place is None or obj is None or obj.size is None or obj.kind not in ("alloca", "heap", "global"):
                return False
            if not 0 <= place[1] <= obj.size - ty.store_size(load.type):
                return False
        return True

    # -- what it is in the first iteration and in the second ---------------------------------------------------------

    def _place(self, pointer: Value, counters: Mapping[Value, int]) -> Place | None:
        """Where a pointer leads for such values of the counters."""
        offset = 0
        while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
            base, *by = pointer.operands
            index = _number(by[-1], counters)
            if index is None or pointer.elem is None or len(by) > 2 or (len(by) == 2 and _number(by[0], {}) != 0):
                return None
            elem, bits = pointer.elem, by[-1].type
            if len(by) == 2:
                if not isinstance(elem, ty.ArrayType):
                    return None
                elem = elem.elem
            assert isinstance(bits, ty.IntType)
            offset += ty.size_of(elem) * _signed(index, bits)
            pointer = base
        if isinstance(pointer, Instruction) and self.loop.contains(pointer.block):
            return None
        return pointer, offset

    def at(self, value: Value, turn: int) -> Value:
        """An alternating value before the loop, as it is in the first iteration (0) or in the second (1)."""
        if not isinstance(value, Instruction) or not self.loop.contains(value.block):
            return value
        made = self._made[turn]
        if value not in made:
            number = _number(value, self.counters[turn])
            if number is not None:
                made[value] = ConstInt(value.type, _signed(number, value.type))  # type: ignore[arg-type]
            elif value.opcode == "load":
                place = self._place(value.operands[0], self.counters[turn])
                assert place is not None
                made[value] = self._cell(place, value)
            else:
                new = copied(value, [self.at(operand, turn) for operand in value.operands])
                new.flags = ()
                made[value] = self._front().insert(new)
        return made[value]

    def _front(self) -> Builder:
        assert self.loop.preheader is not None
        return Builder(self.loop.preheader, len(self.loop.preheader.instructions) - 1)

    def _cell(self, place: Place, load: Instruction) -> Value:
        """What a cell of memory holds when the loop is entered: what was stored there, or a load."""
        if place not in self._cells:
            stored = self._stored(place)
            if stored is None:
                b = self._front()
                stored = b.insert(copied(load, [b.gep(ty.I8, place[0], place[1], flags=())]))
            self._cells[place] = stored
        return self._cells[place]

    def _stored(self, place: Place) -> Value | None:
        """The value of the only store to a cell, where it always comes before the loop."""
        assert self.facts is not None and self.loop.preheader is not None
        obj = self.facts.object_of[place[0]]
        found: list[Instruction] = []
        for fn in self.facts.functions:
            for instr in fn.instructions():
                if not self.facts.instr_writes(instr) >> obj.index & 1 or self._frees(instr):
                    continue
                other = self._place(instr.operands[1], {}) if instr.opcode == "store" else None
                if other is None or other[0] is not place[0]:
                    return None
                size = ty.store_size(instr.operands[0].type)
                if other[1] + size > place[1] and other[1] < place[1] + 8:
                    found.append(instr)
        if len(found) != 1 or found[0].operands[0].type is not ty.PTR or found[0].block is None:
            return None
        store, block = found[0], found[0].block
        if block.function is not self.loop.header.function or self._place(store.operands[1], {}) != place:
            return None
        around, always = self.loops.of(block), self.loops.dom.dominates(block, self.loop.preheader)
        return store.operands[0] if always and (around is None or around.contains(self.loop)) else None

    def _frees(self, instr: Instruction) -> bool:
        """Whether all that an instruction does to memory is to give it back."""
        assert self.facts is not None
        effect = self.facts.effect(instr)
        return effect is not None and effect.frees is not None and effect.moves is None and effect.writes == frozenset()


def _parity(value: Instruction) -> bool:
    """Whether a value is the lowest bit of its first operand."""
    mask = value.operands[1] if value.opcode == "and" else None
    return (isinstance(mask, ConstInt) and mask.value == 1) or (value.opcode == "trunc" and value.type is ty.I1)


def _wrapped(number: int, type_: ty.IntType) -> int:
    return number & ((1 << type_.bits) - 1)


def _signed(number: int, type_: ty.IntType) -> int:
    return number - (1 << type_.bits) if number >> (type_.bits - 1) else number


def _number(value: Value, known: Mapping[Value, int], depth: int = 8) -> int | None:
    """The value of an integer where some others have these, without its sign; None where it is not known."""
    if value in known:
        return known[value]
    if not isinstance(value.type, ty.IntType):
        return None
    if isinstance(value, ConstInt):
        return _wrapped(value.value, value.type)
    if not isinstance(value, Instruction) or not depth:
        return None
    op = value.opcode
    if op not in _FOLDED and op not in RESIZES:
        return None
    parts = [_number(operand, known, depth - 1) for operand in value.operands]
    if any(part is None for part in parts):
        return None
    if op in _FOLDED:
        return _wrapped(_FOLDED[op](*parts), value.type)
    kind = value.operands[0].type
    assert isinstance(kind, ty.IntType) and parts[0] is not None
    return _wrapped(_signed(parts[0], kind) if op == "sext" else parts[0], value.type)
