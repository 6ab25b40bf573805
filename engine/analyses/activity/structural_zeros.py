"""Which adjoints are zero by structure: lanes of vectors that nothing uses, values that the program threw away.

Where no result depends on a value its adjoint is zero, exactly: no product with a slope may be formed, since the slope
may be infinite, NaN or poison there (docs/semantics.md, principle 1). Two facts about each active value tell:

given(v)        the lanes of v whose adjoint may be anything but zero: a least fixpoint, backwards along the uses by
                which adjoints flow. Vectorisers leave lanes that nothing uses, often with poison in them; a lane that
                is poison has none, since no result that is defined depends on it.
conditional(v)  v may be computed and then not used, or one of its lanes: some path from v to the exit passes no use, an
                arm of a select is not taken, a variable on the stack is overwritten. Its adjoint may be zero when the
                derivative runs. (The opposite, that v is used whenever it is computed, is a greatest fixpoint.)
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TypeGuard

from irgrad.engine.analyses.activity.activity import Activity
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import mask_lanes
from irgrad.engine.ir.model import (
    Block,
    ConstAggregate,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import having

__all__ = ["StructuralZeros"]

_Use = tuple[Instruction, int]
_LANE_BY_LANE = having("zero_lanewise")
_SEARCHED = 200  # blocks that are looked at for a path without uses; beyond, there is taken to be one


class StructuralZeros:
    """`given` and `conditional` of the values of one function."""

    def __init__(self, cfg: Cfg, activity: Activity) -> None:
        self.cfg = cfg
        self.activity = activity
        self.uses: dict[Value, list[_Use]] = {}
        for block in cfg.rpo:
            for instr in block.instructions:
                for number in _flows(instr, activity):
                    self.uses.setdefault(instr.operands[number], []).append((instr, number))
        self._poison: dict[Value, int] = {}
        self._given = self._lanes()
        self._conditional = self._thrown_away()

    def given(self, value: Value) -> int:
        """The lanes (bit i for lane i; bit 0 for what is no vector) whose adjoint may be other than zero."""
        return self._given.get(value, 0)

    def lacking(self, value: Value) -> bool:
        """Some lane of a vector has the adjoint zero."""
        return isinstance(value.type, ty.VectorType) and self.given(value) != _all_lanes(value.type)

    def conditional(self, value: Value) -> bool:
        """The value may be computed and not be used."""
        return value in self._conditional

    # -- lanes -------------------------------------------------------------------------------------------------------

    def _lanes(self) -> dict[Value, int]:
        given: dict[Value, int] = {}
        work = list(self.uses)
        waiting = set(work)
        while work:
            value = work.pop()
            waiting.discard(value)
            before, mask = given.get(value, 0), 0
            for user, number in self.uses.get(value, ()):
                mask |= _wanted(value.type, user, number, given.get(user, 0))
            mask &= ~self._poisoned(value)
            if mask == before:
                continue
            given[value] = mask
            if isinstance(value, Instruction):
                for number in _flows(value, self.activity):
                    operand = value.operands[number]
                    if operand not in waiting:
                        waiting.add(operand)
                        work.append(operand)
        return given

    def _poisoned(self, value: Value) -> int:
        """Lanes that are poison whatever the program computes, as far as it was vectorised that way."""
        if not isinstance(value.type, ty.VectorType):
            return 0
        work = [value]
        while work:  # operands first; phis and memory are taken to be defined
            v = work[-1]
            if v in self._poison:
                work.pop()
                continue
            parts = [o for o in v.operands if isinstance(o.type, ty.VectorType)] if _lane_by_lane(v) else []
            unknown = [o for o in parts if o not in self._poison]
            if unknown:
                work += unknown
            else:
                self._poison[v] = _poison_lanes(v, [self._poison[o] for o in parts])
        return self._poison[value]

    # -- values thrown away ------------------------------------------------------------------------------------------

    def _thrown_away(self) -> set[Value]:
        found: set[Value] = set()
        work = [value for value in self.uses if isinstance(value, Instruction)]
        waiting: set[Value] = set(work)
        paths: dict[tuple[Block, frozenset[Block], frozenset[tuple[Block, Block]]], bool] = {}
        while work:
            value = work.pop()
            waiting.discard(value)
            if value in found or self._always_used(value, found, paths):
                continue
            found.add(value)
            for number in _flows(value, self.activity):
                operand = value.operands[number]
                if isinstance(operand, Instruction) and operand not in waiting:
                    waiting.add(operand)
                    work.append(operand)
        return found

    def _always_used(
        self, value: Instruction, found: set[Value],
        paths: dict[tuple[Block, frozenset[Block], frozenset[tuple[Block, Block]]], bool],
    ) -> bool:  # fmt: skip
        home = value.block
        assert home is not None
        left = self.given(value)  # lanes of which no use in the same block is known
        if not left:
            return False
        others: list[tuple[int, Block | tuple[Block, Block]]] = []
        for user, number in self.uses[value]:
            if user in found or user.block is None or _may_ignore(user, number):
                continue
            lanes = _wanted(value.type, user, number, self.given(user))
            if user.opcode == "phi":
                others.append((lanes, (user.blocks[number], user.block)))
            elif user.block is home:
                left &= ~lanes
            else:
                others.append((lanes, user.block))
        while left:
            lane = left & -left
            left &= left - 1
            places = {place for lanes, place in others if lanes & lane}
            blocks = frozenset(place for place in places if isinstance(place, Block))
            edges = frozenset(place for place in places if not isinstance(place, Block))
            key = (home, blocks, edges)
            if places and key not in paths:
                paths[key] = self._passes_by(home, blocks, edges)
            if not places or paths[key]:
                return False
        return True

    def _passes_by(self, start: Block, blocks: frozenset[Block], edges: frozenset[tuple[Block, Block]]) -> bool:
        """Whether control may go from the end of a block to an exit without these blocks and edges."""
        seen: set[Block] = set()
        work = [start]
        while work:
            block = work.pop()
            if block.terminator.opcode == "ret" or len(seen) > _SEARCHED:
                return True
            for after in self.cfg.succs(block):
                if after not in seen and after not in blocks and (block, after) not in edges:
                    seen.add(after)
                    work.append(after)
        return False


def _flows(instr: Instruction, activity: Activity) -> list[int]:
    """Numbers of the operands that this instruction hands adjoints to."""
    if instr.opcode == "store":
        return [0] if activity.value(instr.operands[0]) and activity.pointer(instr.operands[1]) else []
    if instr.opcode == "ret":
        return [i for i, value in enumerate(instr.operands) if activity.value(value)]
    if instr.is_call:
        if _asks(instr):
            return []
        return [i for i, value in enumerate(instr.args) if activity.value(value)]
    if instr.type is ty.VOID or not activity.value(instr):
        return []
    first = 1 if instr.opcode == "select" else 0
    return [i for i, value in enumerate(instr.operands) if i >= first and activity.value(value)]


def _asks(call: Instruction) -> bool:
    """A question about numbers, as `isnan`: an integer comes back, and there is no memory for anything else."""
    return isinstance(call.callee, Function) and call.callee.is_declaration and isinstance(call.type, ty.IntType) \
        and not any(arg.type.is_ptr for arg in call.args)  # fmt: skip


def _may_ignore(user: Instruction, number: int) -> bool:
    """A use that may come to nothing although it is passed."""
    if user.opcode == "select":
        return user.operands[1] is not user.operands[2]
    if user.opcode == "store":  # a variable that is overwritten, where local variables live in memory
        target = user.operands[1]
        return isinstance(target, Instruction) and target.opcode == "alloca" and not _aggregate(target.elem)
    return False


def _aggregate(type_: ty.Type | None) -> bool:
    return type_ is None or type_.is_aggregate


def _all_lanes(type_: ty.Type) -> int:
    return (1 << type_.count) - 1 if isinstance(type_, ty.VectorType) else 1


def _wanted(type_: ty.Type, user: Instruction, number: int, mask: int) -> int:
    """Lanes of an operand that receive adjoints, where those of the user are in `mask`."""
    whole = _all_lanes(type_)
    match user.opcode:
        case "extractelement":
            lane = _number(user.operands[1])
            return 0 if not mask else whole if lane is None else 1 << lane & whole
        case "insertelement":
            lane = _number(user.operands[2])
            if number == 0:
                return mask if lane is None else mask & ~(1 << lane)
            return int(bool(mask if lane is None else mask >> lane & 1))
        case "shufflevector":
            return _shuffled(user, number, mask)
        case _ if _passes(user):
            same = isinstance(type_, ty.VectorType) and _all_lanes(user.type) == whole
            return mask if same else whole if mask else 0
        case _:
            return whole


def _lane_by_lane(value: Value) -> TypeGuard[Instruction]:
    """Each lane of the result is poison where it is made of a lane that is."""
    return isinstance(value, Instruction) and value.opcode in _LANE_BY_LANE


def _poison_lanes(value: Value, parts: list[int]) -> int:
    """Lanes that are poison, where those of the vectors that go into it are in `parts`."""
    assert isinstance(value.type, ty.VectorType)
    if isinstance(value, ConstUndef):
        return _all_lanes(value.type) if value.poison else 0
    if isinstance(value, ConstAggregate):
        return sum(1 << i for i, e in enumerate(value.elems) if isinstance(e, ConstUndef) and e.poison)
    if not _lane_by_lane(value):
        return 0
    if value.opcode == "insertelement":
        lane = _number(value.operands[2])
        part = value.operands[1]
        if lane is None or lane >= value.type.count:
            return 0
        return parts[0] & ~(1 << lane) | (isinstance(part, ConstUndef) and part.poison) << lane
    if value.opcode == "shufflevector":
        first = value.operands[0].type
        assert isinstance(first, ty.VectorType)
        both = parts[0] | parts[1] << first.count
        sources = enumerate(mask_lanes(value.operands[2], value.type.count))
        return sum(1 << i for i, source in sources if source is None or both >> source & 1)
    return reduce(or_, parts)


def _shuffled(shuffle: Instruction, number: int, mask: int) -> int:
    first = shuffle.operands[0].type
    assert isinstance(first, ty.VectorType) and isinstance(shuffle.type, ty.VectorType)
    found = 0
    for lane, source in enumerate(mask_lanes(shuffle.operands[2], shuffle.type.count)):
        if source is not None and mask >> lane & 1 and divmod(source, first.count)[0] == number:
            found |= 1 << source % first.count
    return found


def _passes(user: Instruction) -> bool:
    """Hands on what it receives, nothing where it receives nothing. Others (stores, calls of functions) end here."""
    if not user.is_call:
        return user.type is not ty.VOID
    callee = user.callee
    return isinstance(callee, Function) and callee.is_declaration and user.type.is_fp \
        and not any(arg.type.is_ptr for arg in user.args)  # fmt: skip


def _number(lane: Value) -> int | None:
    if isinstance(lane, ConstZero):
        return 0
    return lane.value if isinstance(lane, ConstInt) else None
