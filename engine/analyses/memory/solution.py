"""What a points-to solution answers: the objects of a value, of memory, of calls; `points_to.py` finds it."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property
from typing import Any, TypeVar

from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.analyses.memory.objects import Object, bits_of, fits, resolve
from irgrad.engine.ir.model import Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.types import may_hold_pointer

T = TypeVar("T")


def made_values(value: Instruction, known: Container[Value], reached: Container[Function | None]) -> list[Instruction]:
    """An instruction without a points-to set in a function that is reached, and those that it is made of: copies,
    selects and phis."""
    work: list[Value] = [value]
    fresh: dict[Instruction, None] = {}
    while work:
        one = work.pop()
        if not isinstance(one, Instruction) or one in fresh or one in known:
            continue
        here = one.block is not None and one.block.function in reached
        if here and (one.opcode == "phi" or one.opcode in SPECULATABLE) and may_hold_pointer(one.type):
            fresh[one] = None
            work += one.operands
    return list(fresh)


class Solution:
    """The questions about points-to sets. A mask has a bit for each object."""

    module: Module
    root: Function
    objects: list[Object]
    functions: list[Function]
    object_of: dict[Value, Object]
    pointee_of: dict[int, int]
    effects: dict[Instruction, Effect]
    overlapping: int
    _node: dict[Value, int]
    _ret: dict[Function, int]
    _points: list[int]
    _content: list[int]
    _unknown_node: int
    _kept: dict[Callable[..., Any], Any]

    def node(self, value: Value) -> int:
        """The number of the points-to set of a value, made on first use."""
        raise NotImplementedError

    def of(self, value: Value) -> int:
        """The objects that `value` (a pointer, or something that carries pointers) may point to, as a mask."""
        if (node := self._node.get(value)) is not None:
            return self._points[node]
        return self._points[self.node(value)] if not isinstance(value, Instruction) else self.learn(value)

    def learn(self, value: Instruction) -> int:
        """`of` an instruction that was made since the sets were found, of values that have theirs."""
        raise NotImplementedError

    def kept(self, analysis: Callable[[Any], T]) -> T:
        """What an analysis finds out from these sets; asked for again, what it found then."""
        if analysis not in self._kept:
            self._kept[analysis] = analysis(self)
        return self._kept[analysis]  # type: ignore[no-any-return]

    def contents(self, obj: Object) -> int:
        """The objects that pointers held in `obj` may point to."""
        return self._points[self._content[obj.index]]

    def returned(self, fn: Function) -> int:
        """The objects that the return value of `fn` may point to."""
        return 0 if (node := self._ret.get(fn)) is None else self._points[node]

    def callees(self, call: Instruction) -> list[Function] | None:
        """The functions a call may reach (declarations among them); None when it may reach an unknown one."""
        direct = resolve(call.callee)
        if isinstance(direct, Function):
            return [direct]
        mask = self.of(call.callee)
        if mask & 1 or mask == 0:
            return None
        return [s for i in bits_of(mask) if isinstance(s := self.objects[i].site, Function) and fits(call, s)] or None

    def escaped(self, obj: Object) -> bool:
        """Code outside the module may know a pointer to it."""
        return bool(self.escaped_mask >> obj.index & 1)

    @property
    def escaped_mask(self) -> int:
        """All objects that code outside the module may reach, the unknown one included."""
        return self._points[self._unknown_node] | 1

    def expand(self, mask: int) -> int:
        """`mask`, with everything that escaped if it has the unknown object, and all that overlaps with what it has."""
        return mask | self.escaped_mask | self.overlapping if mask & (self.overlapping | 1) else mask

    def may_alias(self, a: Value, b: Value) -> bool:
        """Two pointers may point into the same object."""
        return bool(self.expand(self.of(a)) & self.expand(self.of(b)))

    def reachable(self, mask: int) -> int:
        """The objects of a mask and all that pointers in them lead to, in any number of steps."""
        seen, work = 0, self.expand(mask)
        while work & ~seen:
            fresh = work & ~seen
            seen |= fresh
            for bit in bits_of(fresh):
                work |= self.expand(self.contents(self.objects[bit]))
        return seen

    def effect(self, call: Instruction) -> Effect | None:
        """What the external part of a call does; None for a call that stays among functions with bodies."""
        return self.effects.get(call)

    def reads(self, fn: Function) -> int:
        """Objects that `fn` or what it calls may read."""
        return self._modref[0].get(fn, 0)

    def writes(self, fn: Function) -> int:
        """Objects that `fn` or what it calls may write (or free)."""
        return self._modref[1].get(fn, 0)

    def instr_reads(self, instr: Instruction) -> int:
        """Objects that one instruction may read, the calls it makes included."""
        from irgrad.engine.analyses.memory.modref import instr_reads

        return instr_reads(self, instr)

    def instr_writes(self, instr: Instruction) -> int:
        """Objects that one instruction may write, the calls it makes included."""
        from irgrad.engine.analyses.memory.modref import instr_writes

        return instr_writes(self, instr)

    @cached_property
    def _modref(self) -> tuple[dict[Function, int], dict[Function, int]]:
        from irgrad.engine.analyses.memory.modref import summaries

        return summaries(self)

    def forget_effects(self) -> None:
        """What functions read and write is to be found anew: calls were made."""
        self.__dict__.pop("_modref", None)

    def names(self, mask: int) -> str:
        """The objects of a mask, for messages."""
        return "{" + ", ".join(str(self.objects[i]) for i in bits_of(mask)) + "}"
