"""Calls whose callee runs both of its sweeps in the reverse sweep of the caller, and leaves no tape.

The primal sweep calls the function as it is; the reverse sweep calls its combined derivative, which computes the primal
once more and keeps all of it in registers. That is right where the function can be run again: it writes to memory of
its own alone, and what it reads of other memory does not change before the reverse sweep is through. It pays where
running it again costs less than keeping what its reverse reads. Method: checkpointing at call boundaries (Griewank and
Walther, Evaluating Derivatives, chapter 12), without nesting deeper than the prices allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.control.promises import SILENT
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.primitives.rows import libm_cost, operation_cost, pure_call
from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.ir.opcodes import PURE, TERMINATORS

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["CombinedCalls"]



class CombinedCalls:
    """The answers for the calls of one function. `kept`: the bytes that a function's tape holds outside of loops, by
    the plan of its two sweeps as functions of their own."""

    def __init__(self, facts: ReverseFacts, kept: Callable[[ReverseFacts], int]) -> None:
        self.facts = facts
        self.kept = kept
        self.bodies = facts.unit.get(Bodies)
        self._found: dict[Instruction, bool] = {}

    def runs(self, call: Instruction) -> bool:
        """Whether both sweeps of the callee run in the reverse sweep."""
        if call not in self._found:
            self._found[call] = self._runs(call)
        return self._found[call]

    def callees(self) -> Iterator[Function]:
        """The functions that are called so."""
        for call, runs in self._found.items():
            if runs:
                yield from self.facts.unit.call_targets(call)

    def _runs(self, call: Instruction) -> bool:
        callee = resolve(call.callee)
        if not isinstance(callee, Function) or call.call is None or call.call.fn_type is not callee.ftype:
            return False
        if self.facts.unit.call_abi(call).ret_shadow:
            return False
        if not self.bodies.repeatable(callee) or not self.pays(callee):
            return False
        read = self.bodies.reads(callee)
        return not read or not self.facts.clobber.changed_after(call, read, itself=False)


    def pays(self, fn: Function) -> bool:
        """Whether running `fn` again costs less than its tape and the tape's address."""
        found = self.bodies.pays.get(fn)
        if found is None:
            unit = self.facts.unit
            kept = self.kept(ReverseFacts(unit, fn, unit.abis[fn], split=True))
            found = self.bodies.pays[fn] = self.bodies.work(fn) * 8 <= unit.request.costs.tape * (kept + 8)
        return found


class Bodies:
    """Which functions can be run again, and what that costs."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self._repeatable: dict[Function, bool] = {unit.root: False}
        self.pays: dict[Function, bool] = {}  # see `CombinedCalls`
        self._work: dict[Function, int] = {}
        self._variables: dict[Function, int] = {}

    def repeatable(self, fn: Function) -> bool:
        """Whether running `fn` again gives the same result and changes nothing: it has no loop, writes to variables of
        its own alone, calls only such functions, and does not call itself."""
        if fn not in self._repeatable:
            self._repeatable[fn] = False  # while it is looked at: a function that leads back to itself is none
            self._repeatable[fn] = self._looks_repeatable(fn)
        return self._repeatable[fn]

    def _looks_repeatable(self, fn: Function) -> bool:
        if not any(block.terminator.opcode == "ret" for block in fn.blocks) or get(Loops, fn).all:
            return False
        own = self._own(fn)
        return all(self._repeats(instr, fn, own) for instr in fn.instructions())

    def _own(self, fn: Function) -> int:
        """Objects that are variables of `fn`."""
        if not self._variables:
            for obj in self.unit.pointers.objects:
                if obj.kind == "alloca" and obj.function is not None:
                    self._variables[obj.function] = self._variables.get(obj.function, 0) | 1 << obj.index
        return self._variables.get(fn, 0)

    def _repeats(self, instr: Instruction, fn: Function, own: int) -> bool:
        opcode = instr.opcode
        if instr.volatile or instr.ordering:
            return False
        if opcode in PURE or opcode in ("phi", "load") or (opcode in TERMINATORS and not instr.is_call):
            return True
        if opcode == "alloca":
            return instr.block is fn.entry
        if opcode == "store":
            written = self.unit.pointers.instr_writes(instr)
            return bool(written) and not written & ~own
        return opcode == "call" and self._call_repeats(instr, own)

    def _call_repeats(self, call: Instruction, own: int) -> bool:
        callee = resolve(call.callee)
        if not isinstance(callee, Function):
            return False
        if (callee.name or "").startswith(SILENT) or pure_call(call):
            return True
        if callee.is_declaration:
            effect = self.unit.pointers.effect(call)
            moved = effect is not None and (effect.copy is not None or effect.fill is not None)
            return moved and not self.unit.pointers.instr_writes(call) & ~own
        return callee in self.unit.abis and self.repeatable(callee)

    def reads(self, fn: Function) -> int:
        """Objects that `fn` or what it calls reads, its own variables apart."""
        return self.unit.pointers.reads(fn) & ~self._all_own(fn, set())

    def _all_own(self, fn: Function, seen: set[Function]) -> int:
        seen.add(fn)
        mask = self._own(fn)
        for instr in fn.instructions():
            callee = resolve(instr.callee) if instr.is_call else None
            if isinstance(callee, Function) and not callee.is_declaration and callee not in seen:
                mask |= self._all_own(callee, seen)
        return mask

    def work(self, fn: Function) -> int:
        """What running `fn` costs, in additions."""
        if fn not in self._work:
            self._work[fn] = sum(map(self._cost, fn.instructions()))
        return self._work[fn]

    def _cost(self, instr: Instruction) -> int:
        costs = self.unit.request.costs
        if not instr.is_call:
            return operation_cost(instr, costs) if instr.opcode in PURE else 1
        callee = resolve(instr.callee)
        if isinstance(callee, Function) and not callee.is_declaration:
            return self.work(callee)
        return libm_cost(instr, costs) if pure_call(instr) else 1
