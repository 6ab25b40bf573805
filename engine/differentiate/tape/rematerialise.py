"""Values of the primal sweep as the reverse sweep sees them: there, computed again or read from the tape, as the plan
says (`tape_plan.py`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.layout.shadow_memory import PRIMAL, ShadowMemory
from irgrad.engine.differentiate.shared.alias_scopes import primal_scope, shadow_scope
from irgrad.engine.differentiate.shared.copying import clean_call, shadow_metadata
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Constant, ConstInt, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop


class Recall:
    """Finds values of one function in its reverse sweep."""

    def __init__(self, owner: ReverseState) -> None:
        self.owner = owner
        self.rules = owner.plan.rules
        self.cache: dict[Hashable, Value] = {}

    def new_block(self) -> None:
        """Forget what was computed in the block before."""
        self.cache.clear()

    # -- values ----------------------------------------------------------------------------------------------

    def value(self, value: Value) -> Value:
        """`value` at the insertion point of the reverse sweep."""
        if isinstance(value, Constant):
            return value
        if isinstance(value, Argument):
            return self.owner.reverse_argument(value)
        assert isinstance(value, Instruction)
        if value in self.cache:
            return self.cache[value]
        if self.owner.direct(value):
            return self.owner.sweep.values[value]
        if self.rules.computes(value):
            result = self._again(value)
        else:
            result = self._saved(value)
        self.cache[value] = result
        return result

    def _again(self, value: Instruction) -> Value:
        b = self.owner.b
        if value.opcode == "phi":
            if self.owner.alternates(value):
                return self._alternate(value)
            if value in self.rules.reversals:
                return b.load(value.type, self.owner.stepped_slot(value))
            return self._iterate(value, self.value) if self.owner.recurrence(value) else self._previous(value)
        operands = [self.value(o) for o in (value.args if value.opcode == "call" else value.operands)]
        if value.opcode == "call":
            operands.append(value.callee)
        new = Instruction(
            value.opcode, value.type, operands, flags=value.flags, pred=value.pred, elem=value.elem,
            align=value.align, indices=value.indices, call=clean_call(value.call),
            metadata={**b.metadata, **{k: v for k, v in value.metadata.items() if k == "tbaa"},
                      **primal_scope(self.owner.unit, value)},
        )  # fmt: skip
        return b.insert(new)

    def _iterate(self, phi: Instruction, recall: Callable[[Value], Value], memory: ShadowMemory = PRIMAL) -> Value:
        """start + iteration x step, in the memory of the primal or in that of shadows."""
        found = self.owner.recurrence(phi)
        assert found is not None and phi.block is not None
        start, step = found
        loop = self.owner.loops.of(phi.block)
        assert loop is not None
        b = self.owner.b
        count = self.owner.iteration(loop)
        base = recall(start)
        if phi.type.is_ptr:
            return memory.advanced(b, base, b.mul(count, self.value(step)))
        assert isinstance(phi.type, ty.IntType)
        if phi.type.bits < 64:
            count = b.cast("trunc", count, phi.type)
        elif phi.type.bits > 64:
            count = b.cast("zext", count, phi.type)
        return b.add(base, b.mul(count, self.value(step), ()), ())

    def _alternate(self, phi: Instruction) -> Value:
        """The start in even iterations, its negative in odd ones."""
        owner, b = self.owner, self.owner.b
        loop = owner.level(phi)
        assert loop is not None
        odd = b.cast("trunc", owner.iteration(loop), ty.I1)
        start = self.value(owner.entering(phi))
        return b.select(odd, b.fneg(start), start)

    def _previous(self, phi: Instruction) -> Value:
        """The start in iteration 0, else what the iteration before computed last."""
        owner, b = self.owner, self.owner.b
        loop = owner.level(phi)
        assert loop is not None
        now = owner.iteration(loop)
        first = b.icmp("eq", now, ConstInt(ty.I64, 0))
        entered = self.value(self.owner.entering(phi))
        outer, self.cache = self.cache, {}
        before = b.select(first, ConstInt(ty.I64, 0), b.sub(now, ConstInt(ty.I64, 1), ()))
        self.cache["iteration", loop] = before
        latest = self.rules.shift(phi)
        assert latest is not None
        found = self.value(latest)
        self.cache = outer
        return b.select(first, entered, found)

    # -- the tape --------------------------------------------------------------------------------------------

    def _saved(self, value: Instruction) -> Value:
        self.save(value)
        return self.load(value)

    def save(self, value: Instruction) -> None:
        """Have `value` saved by the primal sweep."""
        new = self.owner.sweep.values[value]
        self.owner.storage.save(value, value.type, self.owner.level(value), lambda: new, [self._place(value, new)])

    def _place(self, old: Instruction, new: Value) -> tuple[str, object]:
        if isinstance(new, Instruction):
            return ("after", new)
        return ("start", self.owner.sweep.blocks[old.block])  # type: ignore[index]

    def load(self, key: Hashable) -> Value:
        """Something saved, by its key."""
        if key in self.cache:
            return self.cache[key]
        storage, b = self.owner.storage, self.owner.b
        if key in storage.slots:
            slot = storage.slots[key]
            result = b.load(slot.type, slot.reverse)
        else:
            flat, shift = storage.shared[key] if key in storage.shared else (storage.flats[key], 0)
            result = storage.load_flat(b, flat, self.load, self.owner.iteration, shift)
        self.cache[key] = result
        return result

    def extent(self, loop: Loop) -> Value:
        """Number of iterations of a counted loop, computed again in the reverse sweep."""
        key = ("extent", loop)
        if key not in self.cache:
            count = self.owner.trip(loop)
            assert count is not None
            taken = self.owner.remapped(self.owner.b, count, {use: self.value(use) for use in count.uses})
            self.cache[key] = self.owner.b.add(taken, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        return self.cache[key]

    # -- shadows of pointers ---------------------------------------------------------------------------------

    def shadow(self, value: Value) -> Value:
        """Shadow of a pointer at the insertion point of the reverse sweep."""
        sweep = self.owner.sweep
        if isinstance(value, Constant):
            return sweep.shadow(value)
        if isinstance(value, Argument):
            return self.owner.reverse_shadow_argument(value)
        assert isinstance(value, Instruction)
        key = ("shadow", value)
        if key in self.cache:
            return self.cache[key]
        if self.owner.taped is not None and value in self.owner.taped.shadows:
            return self.owner.taped.shadows[value]
        found = sweep.shadows.get(value)
        if found is None:
            return sweep.shadow(value)
        if self.owner.direct(value):
            return found
        result = self._shadow_again(value)
        if result is None:
            where = [self._place(value, found)]
            type_ = self.owner.unit.wide(value.type)
            self.owner.storage.save(key, type_, self.owner.level(value), lambda: found, where)
            result = self.load(key)
        self.cache[key] = result
        return result

    def tape(self, call: Instruction) -> Value:
        """What the primal sweep of a call left for its reverse."""
        tape = self.owner.sweep.tapes[call]
        if self.owner.direct(call):
            return tape
        key, taped = ("tape", call), self.owner.taped
        kind = ty.PTR if taped is None else ty.I64  # where it begins in the tape of the caller's
        self.owner.storage.save(key, kind, self.owner.level(call), lambda: tape, [("after", tape)])
        found = self.load(key)
        return found if taped is None else taped.within(self.owner.b, found)

    def _shadow_again(self, value: Instruction) -> Value | None:
        """Pointer arithmetic is done again, and pointers are loaded again where nothing overwrote them."""
        if self.rules.shadow_parts(value) is None:
            return None
        b, memory = self.owner.b, self.owner.unit.memory
        if value.opcode == "getelementptr":
            operands = [self.shadow(value.operands[0]), *(self.value(o) for o in value.operands[1:])]
            return memory.address(b, value, operands)
        if value in self.rules.reversals:
            return b.load(self.owner.unit.wide(value.type), self.owner.stepped_slot(value, shadow=True))
        if value.opcode == "phi":
            return self._iterate(value, self.shadow, memory)
        if value.opcode == "select":
            cond = self.value(value.operands[0])
            return b.select(cond, self.shadow(value.operands[1]), self.shadow(value.operands[2]))
        tags = shadow_metadata(value) | shadow_scope(self.owner.unit, value, value.type)
        return memory.load(b, ty.PTR, self.shadow(value.operands[0]), metadata=tags)


__all__ = ["Recall"]
