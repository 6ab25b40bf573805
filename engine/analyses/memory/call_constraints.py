"""What calls say of points-to sets: arguments flow into the functions that a call is found to reach, results out of
them; what leaves the module does what its effect says (`call_effects.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

from irgrad.engine.analyses.memory.access_paths import UNNAMED, AccessPath
from irgrad.engine.analyses.memory.call_effects import OPAQUE, Effect, effect_of, of_unknown
from irgrad.engine.analyses.memory.fields import Cells, Where
from irgrad.engine.analyses.memory.handed_back import HandedBack
from irgrad.engine.analyses.memory.object_cells import ObjectCells
from irgrad.engine.analyses.memory.objects import (
    FOUND,
    Object,
    bits_of,
    fits,
    found_group,
    function_of,
    has_pointer,
    heap_size,
    resolve,
)
from irgrad.engine.analyses.memory.receivers import Chosen, receivers, taken_record
from irgrad.engine.analyses.memory.solution import Solution
from irgrad.engine.analyses.memory.unaligned_cells import Move, UnalignedCells, move_of
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.types import may_hold_pointer

Sort = Literal["pointer", "number", "bits", "copy"]
"""What a load takes its bytes for."""


class CallConstraints(Solution, ABC):
    """The part of a points-to solution that is about calls; `points_to.Pointers` is the whole."""

    calls: dict[Function, list[Instruction]]
    _add: Callable[[int, int], None]
    _between: UnalignedCells | None
    _calls: dict[int, list[Instruction]]
    _cells: Cells | None
    _chosen: Chosen
    _done: list[int]
    _edge: Callable[[int, int], None]
    _found: dict[int, Object]
    _handed: HandedBack
    _held_in: ObjectCells
    _new_node: Callable[[], int]

    @abstractmethod
    def _reach(self, fn: Function) -> None:
        """A function is reached: its instructions count."""

    @abstractmethod
    def _object(self, kind: str, site: Value | None, size: int | None, function: Function | None) -> Object:
        """The next object."""

    @abstractmethod
    def _copy(self, value: Value, node: int) -> None:
        """What a value carries flows into a node."""

    @abstractmethod
    def _copy_memory(self, move: Move, length: Value) -> None:
        """Memory is copied."""

    @abstractmethod
    def _load(self, pointer: int, to: int, sort: Sort, where: Where | None = None, path: AccessPath = UNNAMED) -> None:
        """A load through a pointer flows into a node."""

    @abstractmethod
    def _store(
        self, pointer: int, source: int, where: Where | None = None, path: AccessPath = UNNAMED, align: int = 0
    ) -> None:
        """A node flows into what a pointer leads to."""

    def _return(self, fn: Function) -> int:
        return self._ret[fn] if fn in self._ret else self._ret.setdefault(fn, self._new_node())

    def _call(self, call: Instruction) -> None:
        direct = resolve(call.callee)
        if isinstance(direct, Function):
            self._bind(call, direct)
            return
        self._calls.setdefault(node := self.node(call.callee), []).append(call)
        for bit in bits_of(self._done[node]):
            self._indirect(call, bit)

    def _indirect(self, call: Instruction, bit: int) -> None:
        site = self.objects[bit].site
        if bit == 0 or self.objects[bit].kind in ("argument", "pointee"):  # the caller knows what it leads to
            self._external(call, of_unknown(self.module, call))
        elif isinstance(site, Instruction) and found_group(site) is not None:
            self._add(self.node(call.callee), 1)  # what a program's variable held before may be any function
        elif isinstance(site, Function) and fits(call, site):
            self._bind(call, site)

    def _bind(self, call: Instruction, fn: Function) -> None:
        """A call found to reach `fn`: arguments flow in, the result flows out."""
        self.calls.setdefault(fn, []).append(call)
        if fn.is_declaration:
            if self.module.rules is not None:  # what a hidden body reaches without being handed it
                for var in self.module.rules.globals_of(fn):
                    self._edge(self.node(var), self._unknown_node)
            self._external(call, effect_of(self.module, call, fn))
            return
        self._reach(fn)
        found_by = receivers(call) if self._cells is not None else {}
        for i, (actual, formal) in enumerate(zip(call.args, fn.args, strict=False)):
            if i in found_by and isinstance(actual, Instruction | Argument):
                self._chosen.receiver(self.node(actual), self.node(formal), self.node(fn), found_by[i])
            elif name := taken_record(formal):
                self._chosen.record(self.node(actual), self.node(formal), name)
            elif may_hold_pointer(formal.type):
                self._copy(actual, self.node(formal))
        for actual in call.args[len(fn.args) :]:  # variadic: read back with va_arg
            self._copy(actual, self._unknown_node)
        if may_hold_pointer(call.type):
            handed = self._handed.parameters(fn)
            for i in handed or ():
                self._copy(call.args[i], self.node(call))
            if handed is None:
                self._edge(self._return(fn), self.node(call))

    def _external(self, call: Instruction, effect: Effect) -> None:
        self.effects[call] = effect if self.effects.get(call, effect) is effect else OPAQUE
        args = call.args
        if effect.copy is not None:
            text = self._cells is not None and call in self._cells.texts
            self._copy_memory(move_of(call, *effect.copy[:2], text=text), args[effect.copy[2]])
        for i, arg in enumerate(args):
            if effect.captures is None or i in effect.captures:
                self._copy(arg, self._unknown_node)
        if effect.stores_fresh is not None and call not in self.object_of:
            fresh = self._object("heap", call, heap_size(call, effect), function_of(call))
            handle = self._new_node()
            self._add(handle, 1 << fresh.index)
            self._store(self.node(args[effect.stores_fresh]), handle)
        if effect.keeps is not None:
            place, kept = effect.keeps
            self._store(self.node(args[place]), self.node(args[kept]), (args[place], 0))
        if not may_hold_pointer(call.type):
            return
        node = self.node(call)
        if effect.allocates or effect.moves is not None:
            if call not in self.object_of:
                self._add(node, 1 << self._allocated(call, effect).index)
            if effect.moves is not None:
                (content,) = self._held_in.into(self.object_of[call].index)
                self._load(self.node(args[effect.moves]), content, "bits")
                self._load(self.node(args[effect.moves]), self._held_in.number(self.object_of[call].index), "number")
                if self._between is not None:
                    self._between.put(self.object_of[call].index, content, None)
        elif effect.returns is not None:
            self._copy(args[effect.returns], node)
        elif has_pointer(call.type):
            if not effect.nothing:
                self._edge(self._unknown_node, node)
            for arg in args:
                self._copy(arg, node)

    def _allocated(self, call: Instruction, effect: Effect) -> Object:
        """The object of an allocation. What variables lead to when a program calls is one for those of a group, and
        holds pointers that nobody knows, unless those have been asked for too."""
        group = found_group(call)
        made = self._found.get(group) if group is not None else None
        if made is None:
            made = self._object("heap", call, heap_size(call, effect), function_of(call))
        if group is not None:
            self.object_of[call] = self._found[group] = made
        if call.callee_name == FOUND:
            for node in self._held_in.into(made.index):
                self._edge(self._unknown_node, node)
        return made
