"""The tape of a loop of chunks, as part of a tape of the caller's (see `taped.py`).

Threads share a loop whose iterations are calls of a chunk. A chunk has two halves as the root has, with a tape of its
own; the tapes of all chunks lie side by side in that of the root, each with room for the largest one:

    forward   T f.taped(arguments, tape, its bytes)                        the chunk; fills its tape
    reverse   {A^...} f.taped.rev(arguments with shadows, T t^, tape)      its reverse sweep

An argument that the reverse sweep does not use need not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.shared.conventions import reverse_type
from irgrad.engine.differentiate.shared.derived_functions import keep_own_places
from irgrad.engine.differentiate.shared.sweeps import PrimalSweep
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.differentiate.tape.tape_size import RoomWriter
from irgrad.engine.differentiate.tape.taped import Taped
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, ConstUndef, Function, Instruction, Value
from irgrad.engine.normalise.iterations import CHUNKS, ITERATION

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop

__all__ = ["ChunkTape", "Halves", "RootTape", "tape_of"]


@dataclass(slots=True)
class Halves:
    """The two halves of a chunk. tape: None until they are written; used: the arguments of the second half that it
    uses."""

    forward: Function
    reverse: Function
    tape: ChunkTape | None = None
    used: frozenset[int] = frozenset()

    def written(self, tape: ChunkTape) -> None:
        """Both are."""
        tape.verify()
        uses = {o for instr in self.reverse.instructions() for o in instr.operands}
        self.tape, self.used = tape, frozenset(n for n, arg in enumerate(self.reverse.args) if arg in uses)


class _Chunks:
    """The chunks of a derivation."""

    def __init__(self, unit: Unit) -> None:
        self.made: dict[Function, Halves] = {}
        self.tapes: dict[Function, ChunkTape] = {}


def tape_of(owner: ReverseState) -> Taped:
    """The tape of a function whose two halves get it: the root, or one of its chunks."""
    if owner.fn is owner.unit.root:
        assert owner.unit.outputs is not None
        return RootTape(owner, owner.unit.outputs)
    return ChunkTape(owner)


class RootTape(Taped):
    """The tape of a root, with those of its chunks."""

    def derived_call(self, sweep: PrimalSweep, instr: Instruction) -> None:
        """Call the first half of a chunk; what is kept of it is where its tape is."""
        owner, callee, loop = self.owner, resolve(instr.callee), self.owner.level(instr)
        if not isinstance(callee, Function) or ITERATION not in (callee.name or "") or loop is None:
            self.refuse("an address would have to be kept", instr)
        if owner.unit.call_abi(instr).ret_shadow:
            self.refuse("an address would have to be kept", instr)
        top = owner.top(loop)
        if top is None or top.parent is not None:
            self.nested(loop)
        number = instr.args[0]
        counted = owner.recurrence(number) if isinstance(number, Instruction) and number.opcode == "phi" else None
        if counted is None or [_constant(part) for part in counted] != [0, 1]:
            self.refuse("the chunks of a loop are not counted from zero", instr)
        halves = self._halves(callee)
        assert self.tape is not None
        place = _Place(owner.chain(loop))
        for link in place.chain:
            owner.storage.dimension(top, link)
        for link, emit in ((top, self._reserve), (loop, self._begin)):
            block = owner.sweep.blocks[link.preheader]  # type: ignore[index]
            owner.storage.ends.setdefault(id(block), []).append(partial(emit, place, halves, instr))
        b = sweep.b
        own = b.gep(ty.I8, place.start, b.mul(sweep.value(number), place.bytes, ("nuw", "nsw")))
        args = [*(sweep.value(arg) for arg in instr.args), own, place.bytes]
        sweep.values[instr] = b.call(halves.forward, args)
        ends_at = [b.cast("ptrtoint", end, ty.I64) for end in (own, self.tape)]
        sweep.tapes[instr] = b.sub(ends_at[0], ends_at[1], ())

    def _reserve(self, place: _Place, halves: Halves, instr: Instruction, b: Builder) -> None:
        """Room for the tapes of all chunks, in front of the outermost of the loops around them."""
        assert halves.tape is not None
        top = place.chain[0]
        size = halves.tape.largest(b, instr, top, self.owner.sweep.value)
        count = self._iterations(place, place.chain[-1])
        total = b.mul(size, count, ("nuw", "nsw"))
        for link in place.chain[:-1]:
            total = b.mul(total, self._iterations(place, link), ("nuw", "nsw"))
        place.reserved(self.allocate(b, total), size, count)

    def _begin(self, place: _Place, halves: Halves, instr: Instruction, b: Builder) -> None:
        """Where the tapes of a loop's chunks begin, in front of it."""
        number: Value = ConstInt(ty.I64, 0)
        for link in place.chain[:-1]:
            times = b.mul(number, self._iterations(place, link), ("nuw", "nsw"))
            number = b.add(times, self.owner.storage.counter(link), ("nuw", "nsw"))
        place.begin(b, number)

    def _iterations(self, place: _Place, loop: Loop) -> Value:
        return self.owner.storage.dims[place.chain[0], loop]

    def _halves(self, fn: Function) -> Halves:
        unit = self.owner.unit
        made = unit.get(_Chunks).made
        if fn not in made:
            abi = unit.abis[fn]
            kinds = ty.function(fn.ftype.ret, (*fn.ftype.params, ty.PTR, ty.I64))
            forward = unit.new_function(f"taped.{fn.name}", kinds)
            reverse = unit.new_function(f"taped.rev.{fn.name}", reverse_type(fn.ftype, abi, unit.width))
            keep_own_places(fn, reverse, abi.shadow)
            made[fn] = Halves(forward, reverse)
            assert unit.reverse is not None, "no emitter of reverse derivatives"
            unit.reverse(unit, fn, abi, forward, reverse)
            made[fn].written(unit.get(_Chunks).tapes[fn])
        return made[fn]

    def reverse_of(self, instr: Instruction) -> tuple[Function, frozenset[int]]:
        """The second half of a chunk that a call runs, and which of its arguments that uses."""
        callee = resolve(instr.callee)
        assert isinstance(callee, Function)
        halves = self.owner.unit.get(_Chunks).made[callee]
        return halves.reverse, halves.used

    def within(self, b: Builder, distance: Value) -> Value:
        """A place in the tape, in the reverse sweep."""
        assert self.filled is not None
        return b.gep(ty.I8, self.filled, distance, flags=())

    def chunks(self) -> list[Function]:
        """The first halves of all chunks: they say what lies where in the tapes."""
        return [halves.forward for halves in self.owner.unit.get(_Chunks).made.values()]


def _constant(value: Value) -> int | None:
    return value.value if isinstance(value, ConstInt) else None


class _Place:
    """Where the tapes of a loop's chunks begin, and the bytes of each: known when the code in front of the loop is
    written, used before.

    chain: the loops, the outermost first; memory: of the tapes of all their iterations; count: chunks of the loop
    """

    def __init__(self, chain: Sequence[Loop]) -> None:
        self.chain = chain
        self.start = Instruction("getelementptr", ty.PTR, [], elem=ty.I8)
        self.bytes = Instruction("freeze", ty.I64, [])
        self.memory: Value = ConstUndef(ty.PTR)
        self.size: Value = ConstInt(ty.I64, 0)
        self.count: Value = ConstInt(ty.I64, 0)

    def reserved(self, memory: Value, size: Value, count: Value) -> None:
        """There is memory."""
        self.memory, self.size, self.count = memory, size, count

    def begin(self, b: Builder, number: Value) -> None:
        """It is known. number: of the iteration of the loops around."""
        distance = b.mul(number, b.mul(self.size, self.count, ("nuw", "nsw")), ("nuw", "nsw"))
        self.bytes.operands, self.start.operands = [self.size], [self.memory, distance]
        b.insert(self.bytes)
        b.insert(self.start)


class ChunkTape(Taped):
    """The tape of a chunk."""

    def __init__(self, owner: ReverseState) -> None:
        super().__init__(owner, frozenset())
        owner.unit.get(_Chunks).tapes[owner.fn] = self

    def close(self, b: Builder) -> None:
        """The record of what is outside of loops, at the start of the tape; the result of the chunk."""
        self.keep_record(b)
        exit_ = self.owner.exit
        assert exit_ is not None
        value = exit_.terminator.operands
        b.ret(self.owner.sweep.value(value[0]) if value else None)

    def length(self, top: Builder) -> Value:
        """The bytes of the tape."""
        assert self.bytes is not None
        return self.bytes

    def bind_reverse(self) -> Value:
        """All arguments: those that are not there are not used (see `verify`)."""
        owner = self.owner
        *given, tape = owner.target.args
        new = iter(given)
        for i, old in enumerate(owner.fn.args):
            owner.reverse_values[old] = next(new)
            if owner.abi.shadow[i]:
                owner.reverse_shadows[old] = next(new)
        self.cotangent = next(new) if owner.abi.ret_adjoint else None
        return tape

    def writer(self) -> RoomWriter:
        """For sizes that follow from the arguments, which are numbers."""
        return RoomWriter({}, {new: i for i, new in enumerate(self.owner.sweep.target.args[:-2])})

    def largest(self, b: Builder, call: Instruction, loop: Loop, value: Callable[[Value], Value]) -> Value:
        """The bytes of the largest tape of a loop's chunks, in front of the loop. call: of the chunk; value: what
        something from outside of the loop is there."""
        room = self.room()
        known: dict[int, Value] = {
            n: value(arg) for n, arg in enumerate(call.args)
            if not (isinstance(arg, Instruction) and loop.contains(arg.block))
        }  # fmt: skip
        read = {int(node[1]) for node in room.nodes if node[0] == "arg"} - {0}
        if not room.cheap or not read <= known.keys():
            self.refuse("the size of a chunk's tape does not follow from what is known before the loop", call)
        memo: dict[Hashable, Value] = {}
        found: Value = ConstInt(ty.I64, 0)
        for number in room.decides(0, 0, CHUNKS - 1):
            size = room.emit(b, {**known, 0: ConstInt(ty.I64, number)}, memo)
            if size is not found:
                found = b.select(b.icmp("ugt", size, found), size, found)
        return found
