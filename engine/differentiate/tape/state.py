"""The state of a reverse derivative while it is emitted: where the reverse sweep stands, adjoints, the arena.

`Reverse` puts the parts together that emit it; they see each other through the protocols below.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NoReturn, Protocol

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.trips import TripCount
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.shadow.accumulate import accumulate
from irgrad.engine.differentiate.shadow.carried import add
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
from irgrad.engine.differentiate.shared.sweeps import PrimalSweep, Recalled
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.places import Flat, Slot
from irgrad.engine.differentiate.tape.recomputation import Recomputation
from irgrad.engine.differentiate.tape.tape_plan import TapePlan
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, CallInfo, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.types import Type

__all__ = ["CallerTape", "ControlFlow", "FilledAgain", "Recall", "ReverseState", "TapeStore", "WindowAdjoints"]

Emit = Callable[[Builder], None]


class Recall(Recalled, Protocol):
    """Values in the reverse sweep (see `rematerialise.py`)."""

    cache: dict[Hashable, Value]
    rules: Recomputation

    def new_block(self) -> None: ...
    def load(self, key: Hashable) -> Value: ...
    def extent(self, loop: Loop) -> Value: ...


class TapeStore(Protocol):
    """Where saved values lie (see `storage.py`)."""

    slots: dict[Hashable, Slot]
    flats: dict[Hashable, Flat]
    shared: dict[Hashable, tuple[Flat, int]]
    records: list[Loop]
    after: dict[int, list[Emit]]
    starts: dict[int, list[tuple[int, Emit]]]
    ends: dict[int, list[Emit]]
    dims: dict[tuple[Loop, Loop], Value]
    counters: dict[Loop, Instruction]

    def save(
        self, key: Hashable, type_: Type, level: Loop | None, value: Callable[[], Value],
        where: list[tuple[str, object]],
    ) -> None: ...  # fmt: skip
    def dimension(self, top: Loop, loop: Loop) -> None: ...
    def counter(self, loop: Loop) -> Instruction: ...
    def load_flat(
        self, b: Builder, flat: Flat, recall: Callable[[Hashable], Value], iteration: Callable[[Loop], Value],
        shift: int = 0,
    ) -> Value: ...  # fmt: skip
    def extent(self, top: Loop, loop: Loop, recall: Callable[[Hashable], Value]) -> Value: ...
    def record_type(self, loop: Loop | None) -> tuple[ty.StructType, list[Slot]]: ...
    def push(self, b: Builder, loop: Loop) -> None: ...
    def pop(self, b: Builder, loop: Loop) -> None: ...
    def pack(self, b: Builder) -> Value: ...
    def unpack(self, b: Builder, record: Value) -> None: ...


class CallerTape(Protocol):
    """A tape in memory of the caller (see `taped.py`)."""

    shadows: dict[Instruction, Value]
    start: Block | None
    arena: Value | None
    cotangent: Value | None

    def bind_forward(self, sweep: PrimalSweep) -> None: ...
    def allocate(self, b: Builder, size: Value) -> Value: ...
    def own_memory(self, sweep: PrimalSweep, instr: Instruction) -> None: ...
    def check(self, key: Hashable, type_: Type) -> None: ...
    def unknown_count(self, loop: Loop) -> NoReturn: ...
    def nested(self, loop: Loop) -> NoReturn: ...
    def derived_call(self, sweep: PrimalSweep, instr: Instruction) -> None: ...
    def reverse_of(self, instr: Instruction) -> tuple[Function, frozenset[int]]: ...
    def within(self, b: Builder, distance: Value) -> Value: ...
    def close(self, b: Builder) -> None: ...
    def entry(self, top: Builder) -> None: ...
    def bind_reverse(self) -> Value: ...
    def begin(self, block: Block) -> None: ...
    def unpack(self, b: Builder, tape: Value) -> None: ...


class FilledAgain(Protocol):
    """Rows of an array that the reverse sweep computes again (see `level_rows.py`)."""

    def fill_again(self, block: Block, new_block: Callable[[str], Block]) -> None: ...


class ControlFlow(Protocol):
    """The control flow of the reverse sweep (see `reverse/backward.py`)."""

    again: dict[Loop, FilledAgain]

    def generate(self) -> None: ...


class WindowAdjoints(Protocol):
    """Adjoints of neighbouring loads (see `reverse/neighbours.py`)."""

    def give(self, load: Instruction, amount: Value) -> bool: ...
    def finish(self, loop: Loop) -> None: ...
    def flush(self, loop: Loop) -> None: ...


class ReverseState(ReverseFacts):
    """What is known about one function, and how far its reverse derivative is."""

    sweep: PrimalSweep
    storage: TapeStore
    recall: Recall
    flow: ControlFlow
    neighbours: WindowAdjoints
    taped: CallerTape | None

    def __init__(self, unit: Unit, fn: Function, abi: Abi, target: Function, *, split: bool) -> None:
        super().__init__(unit, fn, abi, split=split)
        self.plan = TapePlan(self)
        self.target = target  # function of the reverse sweep
        self.needs_arena = False
        self.arena: Value | None = None
        self.lent = fn in unit.lent and not split  # the caller's, which is emptied in place of given back
        self.b = Builder(Block())  # insertion point of the reverse sweep
        self.stacks: dict[bool, list[Instruction]] = {True: [], False: []}
        self.zeroed: list[Instruction] = []
        self.local: dict[Value, Value] = {}
        self.accumulators: dict[Value, Instruction] = {}
        self.iterations: dict[Loop, Instruction] = {}
        self.limits: dict[Loop, Instruction] = {}
        self.stepped: dict[tuple[Instruction, bool], Instruction] = {}
        self.reverse_values: dict[Value, Value] = {}
        self.reverse_shadows: dict[Value, Value] = {}

    # -- trip counts -----------------------------------------------------------------------------------------

    def emit_trip(self, b: Builder, loop: Loop) -> Value:
        """The trip count as instructions of the primal sweep."""
        count = self.trip(loop)
        assert count is not None
        if count.const is not None:
            return ConstInt(ty.I64, count.const)
        return self.remapped(b, count, {use: self.sweep.value(use) for use in count.uses})

    def remapped(self, b: Builder, count: TripCount, values: dict[Value, Value]) -> Value:
        """A trip count emitted on other values than those of the original function."""
        scratch = Builder(Block())
        result = count.emit(scratch)
        for instr in scratch.block.instructions:
            instr.operands = [values.get(o, o) for o in instr.operands]
            b.insert(instr)
        return values.get(result, result)

    # -- stack variables and the arena -----------------------------------------------------------------------

    def stack(self, type_: Type, *, forward: bool) -> Instruction:
        """A stack variable of the primal (forward) or reverse sweep, inserted in the entry block at the end."""
        new = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=type_, align=ty.align_of(type_))
        self.stacks[forward or not self.split].append(new)
        return new

    def allocate(self, b: Builder, size: Value) -> Value:
        """Memory of the arena, in the primal sweep."""
        self.needs_arena = True
        if self.taped is not None:
            return self.taped.allocate(b, size)
        fn = self.unit.runtime("irgrad.tape.alloc")
        return b.call(fn, [self.arena_value(), size])

    def arena_value(self) -> Value:
        """The arena: a parameter of a split derivative, acquired by a combined one."""
        if self.arena is None:
            acquire = self.unit.runtime("irgrad.tape.acquire")
            self.arena = Instruction("call", ty.PTR, [acquire], call=CallInfo(acquire.ftype))
        self.needs_arena = True
        return self.arena

    def take_arena(self, arena: Value) -> None:
        """The arena is given: a parameter, or memory that stands for it."""
        self.arena = arena

    def uses_arena(self) -> None:
        """Something lies in the arena: it has to be acquired and given back."""
        self.needs_arena = True

    def emit_in(self, block: Block, *, at: int | None = None) -> Builder:
        """The reverse sweep goes on in this block."""
        self.b = Builder(block, at=at)
        return self.b

    # -- arguments in the reverse sweep ----------------------------------------------------------------------

    def reverse_argument(self, arg: Argument) -> Value:
        """The argument as the reverse sweep has it."""
        return self.reverse_values.get(arg) or self.sweep.values[arg]

    def reverse_shadow_argument(self, arg: Argument) -> Value:
        """The shadow of an argument as the reverse sweep has it."""
        found = self.reverse_shadows.get(arg) or self.sweep.shadows.get(arg)
        return found if found is not None else zero_of(self.unit.wide(arg.type))

    # -- adjoints of SSA values ------------------------------------------------------------------------------

    def give(self, value: Value, amount: Value | None) -> None:
        """adjoint(value) += amount."""
        if amount is None or not self.active(value):
            return
        b = self.b
        b.flags = self.unit.flags
        if value in self.one_block:
            before = self.local.get(value)
            self.local[value] = amount if before is None else add(self.unit, b, value, before, amount)
        else:
            pointer, type_ = self.accumulator(value), self.unit.wide(value.type)
            accumulate(self.unit, b, value, amount, lambda: b.load(type_, pointer),
                       lambda total, _: b.store(total, pointer))  # fmt: skip
        b.flags = ()

    def take(self, value: Value) -> Value | None:
        """Read and clear adjoint(value); None when nothing was ever added."""
        if value in self.one_block:
            return self.local.pop(value, None)
        if value not in self.accumulators and value not in self.carried and not isinstance(value, Argument):
            return None
        pointer = self.accumulator(value)
        type_ = self.unit.wide(value.type)
        result = self.b.load(type_, pointer)
        self.b.store(zero_of(type_), pointer)
        return result

    def accumulator(self, value: Value) -> Instruction:
        """The stack variable of an adjoint, zero at the start."""
        if value not in self.accumulators:
            self.accumulators[value] = self.zeroed_stack(self.unit.wide(value.type))
        return self.accumulators[value]

    def zeroed_stack(self, type_: Type) -> Instruction:
        """A stack variable of the reverse sweep that starts from zero."""
        self.zeroed.append(self.stack(type_, forward=False))
        return self.zeroed[-1]

    # -- iteration numbers -----------------------------------------------------------------------------------

    def iteration_slot(self, loop: Loop) -> Instruction:
        """Where the reverse sweep counts a loop down (or up)."""
        if loop not in self.iterations:
            self.iterations[loop] = self.stack(ty.I64, forward=False)
        return self.iterations[loop]

    def limit_slot(self, loop: Loop) -> Instruction:
        """The number of the last iteration, of a loop that counts up."""
        if loop not in self.limits:
            self.limits[loop] = self.stack(ty.I64, forward=False)
        return self.limits[loop]

    def stepped_slot(self, phi: Instruction, *, shadow: bool = False) -> Instruction:
        """What a phi that is stepped back, or its shadow, was in the iteration that the reverse sweep is in."""
        if (phi, shadow) not in self.stepped:
            kind = self.unit.wide(phi.type) if shadow else phi.type
            self.stepped[phi, shadow] = self.stack(kind, forward=False)
        return self.stepped[phi, shadow]

    def iteration(self, loop: Loop) -> Value:
        """Number of the iteration that the reverse sweep is in."""
        key = ("iteration", loop)
        cached = self.recall.cache.get(key)
        if cached is None:
            cached = self.recall.cache[key] = self.b.load(ty.I64, self.iteration_slot(loop))
        return cached
