"""What is another one when a loop is run again, in the reverse sweep: memory that the same instruction allocates once
more, and addresses that are written behind the loop. Only of the newest memory of an allocation is the address known
before a loop, and the shadow of an address that lies in memory is what shadow memory holds at that time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.never_returning import live_exits
from irgrad.engine.analyses.memory.objects import Object, bits_of, is_never_written
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.spots import ANY, Spots, join_all
from irgrad.engine.analyses.memory.strided_sets import touches
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Value

__all__ = ["BEGINS", "Again", "called_by"]

BEGINS = "llvm.lifetime.start"


@dataclass
class Again:
    """Of a loop of a function. inside: the functions that the loop calls, and they."""

    pointers: Pointers
    fn: Function
    loop: Loop
    inside: Collection[Function]

    # -- memory --------------------------------------------------------------------------------------------------------

    def newest(self, obj: Object, site: Instruction) -> bool:
        """Whether nothing leads the loop to what the same allocation gave in an earlier iteration of a loop around it,
        or in an earlier call: no memory that is older holds such an address, no value hands it on."""
        pointers, bit = self.pointers, 1 << obj.index
        around = get(Loops, self.fn).of(site.block)  # type: ignore[arg-type]
        if around is None and not self._recursive and (self.fn is pointers.root or obj.kind == "alloca"):
            return True
        if self._recursive or pointers.escaped_mask & bit or any(pointers.of(arg) & bit for arg in self.fn.args):
            return False
        holders = [other for other in pointers.objects if pointers.contents(other) & bit]
        if not all(self._begins_with(other, around) for other in holders):
            return False
        headers = [] if around is None else [loop.header for loop in around.ancestors()]
        hands_on = (i for i in self.fn.instructions() if i.is_call or (i.opcode == "phi" and i.block in headers))
        return not any(pointers.of(instr) & bit for instr in hands_on if instr is not site)

    @cached_property
    def _recursive(self) -> bool:
        return self.fn in called_by(self.pointers, self.fn.instructions())

    def _begins_with(self, holder: Object, loop: Loop | None) -> bool:
        """Whether memory is a variable whose life begins in an iteration of a loop, or in the call where it is None."""
        variable = holder.site
        if holder.kind != "alloca" or holder.function is not self.fn or not isinstance(variable, Instruction):
            return False
        inside = (instr for block in loop.blocks for instr in block.instructions) if loop is not None else ()
        return loop is None or any(i.is_call and variable in i.operands and (i.callee_name or "").startswith(BEGINS)
                                   for i in inside)  # fmt: skip

    # -- addresses -----------------------------------------------------------------------------------------------------

    def readdressed(self) -> int:
        """Objects in which the addresses may be others in the reverse sweep than in the loop."""
        mask = 0
        for _, objects in self._readdressing:
            mask |= objects
        return mask

    def readdresses(self, load: Instruction) -> bool:
        """Whether what a load reads there may be an address that is another one in the reverse sweep."""
        pointers, at = self.pointers, load.operands[0]
        read, size = pointers.expand(pointers.of(at)), ty.store_size(load.type)
        for instr, objects in self._readdressing:
            if not objects & read:
                continue
            if instr.opcode != "store":
                return True
            target, length = instr.operands[1], ty.store_size(instr.operands[0].type)
            if self.may_meet(at, size, target, length):
                return True
        return False

    def may_meet(self, at: Value, size: int, target: Value, length: int) -> bool:
        """Whether so many bytes behind the two pointers may have some in common."""
        if self._unlike(at) or self._unlike(target):
            return True
        return _may_meet(self.ranges.places(at), self.ranges.places(target), 1 - length, size)

    def _unlike(self, pointer: Value) -> bool:
        """Whether a pointer may lead to memory that other objects lie in as well, at other offsets."""
        mask = self.pointers.of(pointer)
        return self.pointers.expand(mask) != mask

    @property
    def ranges(self) -> Ranges:
        """Where in their objects pointers lead."""
        return self.pointers.kept(Ranges)

    @cached_property
    def _readdressing(self) -> list[tuple[Instruction, int]]:
        """What may leave an address that has a shadow, behind the loop, and in which objects."""
        own = 0
        for obj in () if self._recursive else self.pointers.objects:  # variables of another call are others
            if obj.kind == "alloca" and obj.function is self.fn and self._once(obj.site):
                own |= 1 << obj.index
        rows = self._gets_addresses(self._behind_calls())
        return [*self._gets_addresses(self.behind()), *((instr, mask & ~own) for instr, mask in rows)]

    def _once(self, site: Value | None) -> bool:
        """Whether an instruction stands in no loop."""
        return isinstance(site, Instruction) and site.block is not None and get(Loops, self.fn).of(site.block) is None

    def _gets_addresses(self, instructions: Iterable[Instruction]) -> list[tuple[Instruction, int]]:
        """Which of these, and of what they call, may leave an address that has a shadow, and in which objects."""
        own, addresses = list(instructions), self.pointers.kept(_Addresses)
        rows = [row for fn in called_by(self.pointers, own) for row in addresses.of(fn)]
        return [*addresses.among(own), *rows]

    # -- later ---------------------------------------------------------------------------------------------------------

    def behind(self) -> list[Instruction]:
        """What the function runs behind the loop, or before it comes to the loop again."""
        exits = live_exits(self.fn, self.loop)
        blocks = [*exits, *_reached(get(Cfg, self.fn), exits)]
        return [i for block in dict.fromkeys(blocks) if not self.loop.contains(block) for i in block.instructions]

    @cached_property
    def _leading(self) -> Collection[Function]:
        """The function, and those that call it or one of these."""
        calls, found = self.pointers.kept(_Calls), {self.fn: None}
        work = [self.fn]
        for fn in work:  # grows
            fresh = [caller for caller, _ in calls.of(fn) if caller not in found]
            found |= dict.fromkeys(fresh)
            work += fresh
        return found

    def _behind_calls(self) -> list[Instruction]:
        """What callers run behind the calls that lead to the function."""
        calls, found = self.pointers.kept(_Calls), dict[Instruction, Function]()
        for led in self._leading:
            found |= {call: fn for fn, call in calls.of(led) if fn is self.fn or fn not in self.inside}
        behind: dict[Block, None] = {}
        instructions: list[Instruction] = []
        for call, fn in found.items():
            assert call.block is not None
            if call.block not in behind:
                instructions += call.block.instructions[call.block.instructions.index(call) + 1 :]
                behind |= dict.fromkeys(_reached(get(Cfg, fn), [call.block]))
        return instructions + [i for block in behind for i in block.instructions]


def called_by(pointers: Pointers, instructions: Iterable[Instruction]) -> set[Function]:
    """The functions that these instructions call, and those that these call."""
    calls = pointers.kept(_Calls)
    found: set[Function] = set()
    work = [callee for instr in instructions if instr.is_call for callee in pointers.callees(instr) or ()]
    for callee in work:  # grows
        if callee not in found and callee.blocks:
            found.add(callee)
            work += calls.by(callee)
    return found


class _Calls:
    """The calls of a module, in either direction."""

    def __init__(self, pointers: Pointers) -> None:
        self._pointers = pointers
        self._callees: dict[Function, list[Function]] = {}

    def by(self, fn: Function) -> list[Function]:
        """The functions that a function calls, each once."""
        if fn not in self._callees:
            called = (self._pointers.callees(i) or () for i in fn.instructions() if i.is_call)
            self._callees[fn] = list(dict.fromkeys(callee for callees in called for callee in callees))
        return self._callees[fn]

    def of(self, fn: Function) -> list[tuple[Function, Instruction]]:
        """The calls that may reach a function, each with the function that it is in."""
        return self._calls.get(fn, [])

    @cached_property
    def _calls(self) -> dict[Function, list[tuple[Function, Instruction]]]:
        found: dict[Function, list[tuple[Function, Instruction]]] = {}
        for fn in self._pointers.functions:
            for call in fn.instructions():
                for callee in self._pointers.callees(call) or () if call.is_call else ():
                    found.setdefault(callee, []).append((fn, call))
        return found


class _Addresses:
    """What leaves an address that has a shadow, and in which objects."""

    def __init__(self, pointers: Pointers) -> None:
        self._pointers = pointers
        objects = pointers.objects
        self._shadowed = sum(1 << o.index for o in objects if o.kind != "function" and not is_never_written(o))
        self._of: dict[Function, list[tuple[Instruction, int]]] = {}

    def of(self, fn: Function) -> list[tuple[Instruction, int]]:
        """Those of a function."""
        if fn not in self._of:
            self._of[fn] = self.among(fn.instructions())
        return self._of[fn]

    def among(self, instructions: Iterable[Instruction]) -> list[tuple[Instruction, int]]:
        """Those of some instructions."""
        pointers, shadowed, rows = self._pointers, self._shadowed, list[tuple[Instruction, int]]()
        for instr in instructions:
            effect = pointers.effect(instr) if instr.is_call else None
            if instr.opcode == "store" and pointers.of(instr.operands[0]) & shadowed:
                rows.append((instr, pointers.expand(pointers.of(instr.operands[1]))))
            elif effect is not None and effect.copy is not None:
                source = pointers.expand(pointers.of(instr.args[effect.copy[1]]))
                if any(pointers.contents(pointers.objects[index]) & shadowed for index in bits_of(source)):
                    rows.append((instr, pointers.expand(pointers.of(instr.args[effect.copy[0]]))))
        return rows


def _reached(cfg: Cfg, blocks: Iterable[Block]) -> list[Block]:
    """The blocks that control may come to behind these."""
    found: dict[Block, None] = {}
    work = list(blocks)
    while work:
        for after in cfg.succs(work.pop()):
            if after not in found:
                found[after] = None
                work.append(after)
    return list(found)


def _may_meet(one: Spots, other: Spots, lowest: int, limit: int) -> bool:
    """Whether the second of two pointers may lead from `lowest` to less than `limit` bytes behind the first one."""
    if ANY in one or ANY in other:
        return touches(join_all(one), join_all(other), lowest, limit)
    return any(bit in other and touches(places, other[bit], lowest, limit) for bit, places in one.items())
