"""Reverse mode: the primal sweep, then its control flow run backwards, each instruction handing its adjoint to its
operands.

    combined   void f.rev(A a, A a', ...)                   both sweeps in one function (roots, in normal form)
    split      {T, T', tape} f.aug(A a, A a', arena)        the primal sweep, and
               {A a^...} f.rev(A a, A a', T t^, tape)       the reverse sweep (callees; roots: see `taped.py`)

(x': shadow pointer; x^: adjoint of a scalar). Method: reverse accumulation on the optimised SSA form with a taped
control flow; the adjoint of an SSA value lives in an accumulator that is read and cleared where the value was
defined. Accumulators of values that live inside one block never exist in memory; LLVM's mem2reg turns the others into
SSA values.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.cfg import Cfg
from irgrad.engine.analyses.dominators import Dominators
from irgrad.engine.analyses.induction import Induction
from irgrad.engine.analyses.loops import Loop, Loops
from irgrad.engine.analyses.trips import TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import (
    Argument,
    Block,
    Constant,
    ConstInt,
    Function,
    Instruction,
    Value,
    const_float,
)
from irgrad.engine.ir.types import Type
from irgrad.engine.transforms.adjoints import guarded_values
from irgrad.engine.transforms.augment import Augment
from irgrad.engine.transforms.backward import Backward
from irgrad.engine.transforms.carried import add
from irgrad.engine.transforms.cells import find_cells, handed_on
from irgrad.engine.transforms.clobber import Clobber
from irgrad.engine.transforms.leaves import zero_of
from irgrad.engine.transforms.neighbours import Neighbours
from irgrad.engine.transforms.recall import NEVER, Recall
from irgrad.engine.transforms.reductions import free_sums
from irgrad.engine.transforms.storage import Storage
from irgrad.engine.transforms.taped import Taped
from irgrad.engine.transforms.taped import outside as beyond
from irgrad.engine.transforms.unit import Abi, Unit


class Reverse:
    """Generates the reverse derivative of one function."""

    def __init__(self, unit: Unit, fn: Function, abi: Abi, primal: Function, reverse: Function) -> None:
        self.unit = unit
        self.fn = fn
        self.abi = abi
        self.target = reverse  # function of the reverse sweep
        self.split = primal is not reverse
        self.cfg = Cfg(fn)
        self.loops = Loops(self.cfg, Dominators(self.cfg))
        self.dom = self.loops.dom
        loose = unit.quiet and unit.flags
        self.free_sums = free_sums(fn, self.loops) if loose else set()
        self.induction = Induction(fn, self.cfg, self.loops)
        self.taped = Taped(self, unit.outputs) if self.split and fn is unit.root and unit.outputs is not None else None
        outside = beyond(unit) if self.taped else unit.every_write | unit.between if self.split else unit.outside_root
        self.clobber = Clobber(self.cfg, unit.pointers, self.induction, outside)
        self.sweep = Augment(self, primal)
        self.storage = Storage(self)
        self.cells = find_cells(self)
        self.recall = Recall(self)
        self.needs_arena = False
        self.arena: Value | None = None
        self.b = Builder(Block())  # insertion point of the reverse sweep
        self.stacks: dict[bool, list[Instruction]] = {True: [], False: []}
        self.zeroed: list[Instruction] = []
        self.local: dict[Value, Value] = {}
        self.accumulators: dict[Value, Instruction] = {}
        self.iterations: dict[Loop, Instruction] = {}
        self.limits: dict[Loop, Instruction] = {}
        self.recurrences: dict[Instruction, tuple[Value, Value] | None] = {}
        self.reverse_values: dict[Value, Value] = {}
        self.reverse_shadows: dict[Value, Value] = {}
        self.exit = next((b for b in self.cfg.rpo if b.terminator.opcode == "ret"), None)
        self.one_block = _used_in_one_block(fn)
        self.guarded = guarded_values(fn)
        self.live: set[Block] = set()  # blocks from which the exit can be reached
        self.flow = Backward(self)
        self.neighbours = Neighbours(self)

    # -- whole -----------------------------------------------------------------------------------------------

    def generate(self) -> Reverse:
        """Fill the target function(s): once to learn what the reverse sweep asks for, again when the plan can do
        better. Returns the one that filled them."""
        self._emit()
        again = self.recall.plan()
        together = handed_on(self, {v for v in self.recall.demands if v not in again})
        if not again and not together:
            return self
        primal, reverse = self.sweep.target, self.target
        primal.blocks.clear()
        reverse.blocks.clear()
        second = Reverse(self.unit, self.fn, self.abi, primal, reverse)
        second.recall.again = again
        second.cells.update(together)
        second._emit()
        self.storage = second.storage
        return second

    def _emit(self) -> None:
        self.sweep.generate(self.cfg.rpo)
        self.flow.generate()
        if self.unit.flags:
            primal = set(self.sweep.blocks.values())
            share_reciprocals(b for b in self.target.blocks if b not in primal)

    # -- facts about the function ----------------------------------------------------------------------------

    def level(self, value: Instruction) -> Loop | None:
        """Innermost loop around a definition."""
        assert value.block is not None
        return self.loops.of(value.block)

    def direct(self, value: Instruction) -> bool:
        """Whether the copy of `value` dominates the reverse sweep (combined derivative, straight-line code)."""
        if self.split or value.block is None or self.exit is None:
            return False
        return self.loops.of(value.block) is None and self.dom.dominates(value.block, self.exit)

    def recurrence(self, phi: Instruction) -> tuple[Value, Value] | None:
        """(start, step) of an induction variable in a loop header."""
        if phi.block is None or not (phi.type.is_int or phi.type.is_ptr):
            return None
        loop = self.loops.of(phi.block)
        if loop is None or loop.header is not phi.block:
            return None
        if phi not in self.recurrences:
            self.recurrences[phi] = self._recurrence(phi)
        return self.recurrences[phi]

    def _recurrence(self, phi: Instruction) -> tuple[Value, Value] | None:
        found = self.induction.recurrence(phi)
        if found is None:
            return None
        start, step = found
        kind = ty.I64 if phi.type.is_ptr else phi.type
        if not step.terms:
            return start, ConstInt(kind, step.const)
        if len(step.terms) == 1 and step.const == 0:
            symbol, coefficient = next(iter(step.terms.items()))
            if coefficient == 1 and isinstance(symbol, Value) and symbol.type is kind:
                return start, symbol
        return None

    def entering(self, phi: Instruction) -> Value:
        """Value with which a header phi enters its loop."""
        assert phi.block is not None
        loop = self.loops.of(phi.block)
        assert loop is not None
        return next(v for v, b in zip(phi.operands, phi.blocks, strict=True) if not loop.contains(b))

    def trip(self, loop: Loop) -> TripCount | None:
        """The trip count expression (back edges taken) of a loop with a single way out."""
        return self.induction.trip_count(loop)

    def constant_trip(self, loop: Loop) -> int | None:
        """The trip count when it is a literal."""
        count = self.trip(loop)
        return count.const if count is not None else None

    def trip_known_before(self, loop: Loop, outer: Loop) -> bool:
        """Whether the trip count of `loop` is computable at the entry of `outer`."""
        count = self.trip(loop)
        if count is None:
            return False
        return all(not (isinstance(u, Instruction) and outer.contains(u.block)) for u in count.uses)

    def trip_recalled(self, loop: Loop) -> bool:
        """Whether the reverse sweep computes the trip count again rather than having it saved."""
        count = self.trip(loop)
        if count is None or (self.taped is not None and any(use.type.is_ptr for use in count.uses)):
            return False
        return all(self.recall.cost(use) < NEVER for use in count.uses)

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
            from irgrad.engine.ir.model import CallInfo

            self.arena = Instruction("call", ty.PTR, [acquire], call=CallInfo(acquire.ftype))
        self.needs_arena = True
        return self.arena

    # -- arguments in the reverse sweep ----------------------------------------------------------------------

    def reverse_argument(self, arg: Argument) -> Value:
        """The argument as the reverse sweep has it."""
        return self.reverse_values.get(arg) or self.sweep.values[arg]

    def reverse_shadow_argument(self, arg: Argument) -> Value:
        """The shadow of an argument as the reverse sweep has it."""
        found = self.reverse_shadows.get(arg) or self.sweep.shadows.get(arg)
        return found if found is not None else zero_of(self.unit.wide(arg.type))

    # -- adjoints of SSA values ------------------------------------------------------------------------------

    def active(self, value: Value) -> bool:
        """Whether a value has an adjoint."""
        return not isinstance(value, Constant) and self.unit.differentiable(value)

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
            pointer = self.accumulator(value)
            b.store(add(self.unit, b, value, b.load(self.unit.wide(value.type), pointer), amount), pointer)
        b.flags = ()

    def take(self, value: Value) -> Value | None:
        """Read and clear adjoint(value); None when nothing was ever added."""
        if value in self.one_block:
            return self.local.pop(value, None)
        if value not in self.accumulators and value not in self.flow.carried and not isinstance(value, Argument):
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

    def iteration(self, loop: Loop) -> Value:
        """Number of the iteration that the reverse sweep is in."""
        key = ("iteration", loop)
        cached = self.recall.cache.get(key)
        if cached is None:
            cached = self.recall.cache[key] = self.b.load(ty.I64, self.iteration_slot(loop))
        return cached


def share_reciprocals(blocks: Iterable[Block]) -> None:
    """Several divisions by one square root become one and products with it. The root of a normal number has a
    reciprocal that neither overflows nor underflows, which is not so for other divisors."""
    for block in blocks:
        by_root: dict[Value, list[Instruction]] = {}
        for instr in block.instructions:
            below = instr.operands[1] if instr.opcode == "fdiv" else None
            if isinstance(below, Instruction) and (below.callee_name or "").startswith("llvm.sqrt."):
                by_root.setdefault(below, []).append(instr)
        for root, quotients in by_root.items():
            if len(quotients) < 2:
                continue
            first = quotients[0]
            one = Instruction("fdiv", root.type, [const_float(root.type, 1.0), root], flags=first.flags)
            one.block = block
            block.instructions.insert(block.instructions.index(first), one)
            for quotient in quotients:
                quotient.opcode, quotient.operands = "fmul", [quotient.operands[0], one]


def _used_in_one_block(fn: Function) -> set[Value]:
    """Instructions whose uses all stand in the block of their definition, phis apart."""
    outside: set[Value] = set()
    result: set[Value] = set()
    for block in fn.blocks:
        for instr in block.instructions:
            result.add(instr)
            for operand in instr.operands:
                if isinstance(operand, Instruction) and (operand.block is not block or instr.opcode == "phi"):
                    outside.add(operand)
            if instr.opcode == "phi":
                outside.add(instr)
    return result - outside


__all__ = ["Reverse", "zero"]
