"""Which memory addresses of a program lead to, across the iterations that a grid runs: a points-to analysis by
inclusion (Andersen 1994), without the order of instructions, with what is stored at constant offsets apart.

It is of a whole program at a late stage: one function, and the bodies of the iterations that it calls. Memory is what
`irgrad.tape.alloc` and `alloca` reserve; all else, arguments and globals, is one memory of the world. What comes to the
world's knowledge is `lost`: addresses made numbers, put into vectors or structs, given to unknown functions, or stored
where the world reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstInt, ConstUndef, ConstZero, Function, Instruction, Value
from irgrad.engine.ir.opcodes import having

__all__ = ["WORLD", "Addresses", "Place", "copy_of", "step_of"]

_SILENT = ("llvm.lifetime.", "llvm.experimental.noalias.", "llvm.dbg.", "llvm.memset.", "irgrad.tape.finish",
           "irgrad.tape.at")  # fmt: skip
_COPIES = ("llvm.memcpy.", "llvm.memmove.")
_SAME = having("same_memory")
_APART = 8  # offsets of one memory that a value may have; more are any

WORLD = Argument(ty.PTR, "world", -1)
"""All memory that the program has not reserved itself."""

Place: TypeAlias = "tuple[Value, int | None]"
"""Memory, and bytes behind its begin: None for any."""


class Addresses:
    """fn: the program; bodies: of the functions without a body that it calls, by name. The first arguments of such a
    call are those of the body.

    sites: what `irgrad.tape.alloc` reserves, with the function it is in; lost: memory whose address the world knows
    """

    def __init__(self, fn: Function, bodies: Mapping[str, Function]) -> None:
        self.functions = [fn, *bodies.values()]
        self.sites = {i: f for f in self.functions for i in f.instructions() if _reserves(i)}
        self.lost: set[Value] = set()
        self._bodies = bodies
        self._given = {argument for body in bodies.values() for argument in body.args}
        self._places: dict[Value, set[Place]] = {}
        self._held: dict[Value, dict[int | None, set[Place]]] = {}
        self._changed = True
        while self._changed:
            self._changed = False
            for instr in self.instructions():
                self._flow(instr)

    def instructions(self) -> Iterator[Instruction]:
        """Of the program and its bodies."""
        for f in self.functions:
            yield from f.instructions()

    def places(self, pointer: Value) -> set[Place]:
        """Where an address leads to, at most; nowhere for null."""
        if isinstance(pointer, (ConstZero, ConstUndef)):
            return set()
        if pointer in self._given or isinstance(pointer, Instruction):
            return self._places.get(pointer, set())
        return {(WORLD, None)}

    def memories(self, pointer: Value) -> set[Value]:
        """The same without offsets."""
        return {memory for memory, _ in self.places(pointer)}

    def kept(self) -> set[Value]:
        """The memory whose addresses are stored."""
        return {m for rows in self._held.values() for places in rows.values() for m, _ in places}

    # -- the rules ----------------------------------------------------------------------------------------------------

    def _flow(self, instr: Instruction) -> None:
        name = (instr.callee_name or "") if instr.is_call else ""
        pointers = [o for o in instr.operands if _has_pointer(o.type)]
        if instr in self.sites or instr.opcode == "alloca":
            self._add(instr, {(instr, 0)})
        elif instr.opcode == "getelementptr" and instr.type.is_ptr:
            step = step_of(instr)
            self._add(instr, {(m, None if step is None or at is None else at + step)
                              for m, at in self.places(instr.operands[0])})  # fmt: skip
        elif instr.opcode in _SAME and instr.type.is_ptr:
            for pointer in pointers:
                self._add(instr, self.places(pointer))
        elif instr.opcode == "load":
            self._load(instr)
        elif instr.opcode == "store":
            if pointers != [instr.operands[1]]:
                self._store(*instr.operands)
        elif name.startswith(_COPIES):
            self._copy(*instr.operands[:2])
        elif name in self._bodies:
            for argument, value in zip(self._bodies[name].args, instr.args, strict=False):
                if value.type.is_ptr:
                    self._add(argument, self.places(value))
        elif instr.opcode == "icmp" or name.startswith(_SILENT) or (instr.traits.has("updates") and pointers == [
            instr.operands[0]
        ]):
            return
        else:
            self._lose(place for o in instr.operands for place in self._inside(o))
            if _has_pointer(instr.type):
                self._add(instr, {(WORLD, None)})

    def _inside(self, value: Value) -> set[Place]:
        return self.places(value) if value.type.is_ptr and not isinstance(value, Function) else set()

    def _load(self, load: Instruction) -> None:
        for memory, at in list(self.places(load.operands[0])):
            found = self._read(memory, at, ty.size_of(load.type))
            if load.type.is_ptr:
                self._add(load, found)
                if memory is WORLD or memory in self.lost:
                    self._add(load, {(WORLD, None)})
            else:
                self._lose(found)

    def _read(self, memory: Value, at: int | None, size: int) -> set[Place]:
        """The addresses that may be in some bytes of a memory."""
        rows = self._held.get(memory, {})
        return {place for offset, places in rows.items() for place in places
                if at is None or offset is None or (at < offset + 8 and offset < at + size)}  # fmt: skip

    def _store(self, value: Value, pointer: Value) -> None:
        kept = self._inside(value)
        if not value.type.is_ptr:
            return
        for memory, at in list(self.places(pointer)):
            self._hold(memory, at, kept)

    def _copy(self, target: Value, source: Value) -> None:
        kept = {place for memory, _ in self.places(source) for place in self._read(memory, None, 0)}
        if self.memories(source) & {WORLD, *self.lost}:
            kept.add((WORLD, None))
        for memory, _ in list(self.places(target)):
            self._hold(memory, None, kept)

    def _hold(self, memory: Value, at: int | None, kept: set[Place]) -> None:
        if memory is WORLD:
            self._lose(kept)
            return
        rows = self._held.setdefault(memory, {}).setdefault(at, set())
        if memory in self.lost:
            self._lose(kept)
        if not kept <= rows:
            rows |= kept
            self._changed = True

    def _lose(self, places: Iterable[Place]) -> None:
        work = [memory for memory, _ in places]
        while work:
            memory = work.pop()
            if memory is not WORLD and memory not in self.lost:
                self.lost.add(memory)
                work += [m for places in self._held.get(memory, {}).values() for m, _ in places]
                self._changed = True

    def _add(self, value: Value, places: set[Place]) -> None:
        have = self._places.setdefault(value, set())
        more = {(m, at) for m, at in places if (m, at) not in have and (m, None) not in have}
        for memory in {m for m, _ in more}:
            if sum(m is memory for m, _ in (*have, *more)) > _APART:
                more = {(m, at) for m, at in more if m is not memory} | {(memory, None)}
        if more:
            whole = {m for m, at in more if at is None}
            self._places[value] = {(m, at) for m, at in have if m not in whole} | more
            self._changed = True


def _reserves(instr: Instruction) -> bool:
    return instr.is_call and instr.callee_name == "irgrad.tape.alloc"


def _has_pointer(kind: ty.Type) -> bool:
    return kind.scalar.is_ptr or isinstance(kind, (ty.StructType, ty.ArrayType))


def step_of(step: Instruction) -> int | None:
    """The bytes that a getelementptr goes on, where they are constant and it has one index."""
    index = step.operands[1]
    if len(step.operands) != 2 or step.elem is None or not isinstance(index, ConstInt):
        return None
    return index.value * ty.size_of(step.elem)


def copy_of(instr: Instruction) -> bool:
    """Whether an instruction copies memory."""
    return instr.is_call and (instr.callee_name or "").startswith(_COPIES)
