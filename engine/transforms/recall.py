"""Values of the primal sweep as the reverse sweep sees them.

Four ways, cheapest first: the value is still there (arguments, constants, straight-line code of a combined
derivative); it is an induction variable and follows from the iteration number; its memory still holds it
(`clobber.py`); it is cheap to compute again from such values. Otherwise it is saved (`storage.py`). Shadows of
pointers are found in the same four ways.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    CASTS,
    FLOAT_BINARY,
    INT_BINARY,
    Argument,
    Constant,
    ConstInt,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.transforms import apart, lanes
from irgrad.engine.transforms.liveness import at_one_level, computed_anyway
from irgrad.engine.transforms.plan import LOOP_WEIGHT, choose
from irgrad.engine.transforms.rows import libm_cost, pure_call
from irgrad.engine.transforms.sweep import STRUCTURAL, clean_call

if TYPE_CHECKING:
    from irgrad.engine.analyses.loops import Loop
    from irgrad.engine.transforms.reverse import Reverse

LIMIT = 28  # flops-like units that computing again may cost, in place of 8 bytes of tape
NEVER = 1 << 30
PURE = INT_BINARY | FLOAT_BINARY | CASTS | STRUCTURAL | frozenset(("icmp", "fcmp", "fneg"))
COSTS = {"fdiv": 4, "frem": 20, "sdiv": 6, "udiv": 6, "srem": 6, "urem": 6}


class Recall:
    """Finds values of one function in its reverse sweep."""

    def __init__(self, owner: Reverse) -> None:
        self.owner = owner
        self.costs: dict[Hashable, int] = {}
        self.cache: dict[Hashable, Value] = {}
        self.forced: set[Value] = set()
        self.demands: dict[Instruction, None] = {}  # values in loops that were saved, in order
        self.shifts: dict[Instruction, Value | None] = {}
        self.again: set[Instruction] = set()  # the plan: computed again from other saved values
        self.asked: dict[Instruction, None] = {}  # values outside of loops that the reverse sweep uses as they are
        self.idle: set[Instruction] = set()  # calls that the primal sweep makes for the tape alone

    def new_block(self) -> None:
        """Forget what was computed in the block before."""
        self.cache.clear()

    # -- how -------------------------------------------------------------------------------------------------

    def cost(self, value: Value) -> int:
        """Units to have `value` again without saving it; NEVER when it must be saved."""
        stack = [value]
        while stack:
            top = stack[-1]
            if top in self.costs:
                stack.pop()
                continue
            own, operands = self._parts(top)
            operands = [o for o in operands if not isinstance(o, Constant)]
            missing = [o for o in operands if o not in self.costs]
            if missing:
                if own >= NEVER:
                    self.costs[top] = NEVER
                    continue
                if len(stack) > 4 * LIMIT:
                    self.costs[top] = NEVER
                    continue
                stack += missing
                continue
            total = min(NEVER, own + sum(self._price(o, top) for o in operands))
            self.costs[top] = total if total <= LIMIT else NEVER
            stack.pop()
        return self.costs[value]

    def _price(self, operand: Value, user: Value) -> int:
        """Cost of an operand; one that must be saved is cheap when it is saved once per run of an inner loop."""
        cost = self.costs[operand]
        if cost < NEVER or not (isinstance(operand, Instruction) and isinstance(user, Instruction)):
            return cost
        outer, inner = self.owner.level(operand), self.owner.level(user)
        if inner is None or outer is inner or operand.type.is_aggregate:
            return cost
        return 2 if outer is None or (outer.depth < inner.depth and outer.contains(inner)) else cost

    def _parts(self, value: Value) -> tuple[int, list[Value]]:
        """Own cost and operands that would be needed again."""
        if isinstance(value, Constant | Argument):
            return 0, []
        if not isinstance(value, Instruction) or value in self.forced:
            return NEVER, []
        if self.owner.direct(value):
            return 0, []
        opcode = value.opcode
        if opcode == "phi":
            if value in self.owner.cells:
                return NEVER, []
            found = self.owner.recurrence(value)
            if found is not None:
                return 2, [found[0], found[1]]
            latest = self.shift(value)
            return (3, [self.owner.entering(value), latest]) if latest is not None else (NEVER, [])
        if opcode == "load":
            if self.owner.clobber.clobbered(value):
                return NEVER, []
            return 1, [value.operands[0]]
        if opcode in PURE:
            if value.type is ty.F80 or value.type.is_aggregate or self._elsewhere(value):
                return NEVER, []
            return COSTS.get(opcode, 1), list(value.operands)
        if opcode == "call" and pure_call(value):
            return libm_cost(value), list(value.args)
        return NEVER, []

    def _elsewhere(self, value: Instruction) -> bool:
        """Computed again on buffers that have moved, it might be another."""
        return self.owner.taped is not None and self.owner.taped.addresses(value)

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
            self.asked[value] = None
            return self.owner.sweep.values[value]
        if value in self.again or self.cost(value) < NEVER:
            result = self._again(value)
        else:
            result = self._saved(value)
        self.cache[value] = result
        return result

    def _again(self, value: Instruction) -> Value:
        b = self.owner.b
        if value.opcode == "phi":
            return self._iterate(value, self.value) if self.owner.recurrence(value) else self._previous(value)
        operands = [self.value(o) for o in (value.args if value.opcode == "call" else value.operands)]
        if value.opcode == "call":
            operands.append(value.callee)
        new = Instruction(
            value.opcode, value.type, operands, flags=_safe_flags(value), pred=value.pred, elem=value.elem,
            align=value.align, indices=value.indices, call=clean_call(value.call),
            metadata={k: v for k, v in value.metadata.items() if k == "tbaa"},
        )  # fmt: skip
        return b.insert(new)

    def _iterate(self, phi: Instruction, recall: object, width: int = 1) -> Value:
        """start + iteration x step (x width, for a shadow)."""
        found = self.owner.recurrence(phi)
        assert found is not None and phi.block is not None
        start, step = found
        loop = self.owner.loops.of(phi.block)
        assert loop is not None
        b = self.owner.b
        count = self.owner.iteration(loop)
        base = recall(start)  # type: ignore[operator]
        if phi.type.is_ptr:
            offset = lanes.scaled(b, b.mul(count, self.value(step)), width)
            return apart.moved(b, base, offset, width) if isinstance(width, apart.Apart) else (
                b.gep(ty.I8, base, offset, flags=()))
        assert isinstance(phi.type, ty.IntType)
        if phi.type.bits < 64:
            count = b.cast("trunc", count, phi.type)
        elif phi.type.bits > 64:
            count = b.cast("zext", count, phi.type)
        return b.add(base, b.mul(count, self.value(step), ()), ())

    def shift(self, phi: Instruction) -> Value | None:
        """The value whose previous iteration a header phi holds (loads that a loop carries over to the next iteration).

        Only in counted loops whose body runs whole in every iteration; the chain of phis must end in a load that
        does not depend on them.
        """
        if phi not in self.shifts:
            self.shifts[phi] = None
            self.shifts[phi] = self._shift(phi)
        return self.shifts[phi]

    def _shift(self, phi: Instruction) -> Value | None:
        owner = self.owner
        loop = owner.level(phi)
        if loop is None or loop.header is not phi.block or loop.latch is None or loop.exiting != [loop.latch]:
            return None
        if owner.storage.top(loop) is None or not (phi.type.is_fp or phi.type.is_int):
            return None
        latest = phi.operands[phi.blocks.index(loop.latch)]
        if not isinstance(latest, Instruction) or owner.level(latest) is not loop or latest.block is None:
            return None
        if latest.opcode == "phi":
            return latest if latest.block is loop.header and self.shift(latest) is not None else None
        if latest.opcode != "load" or not owner.dom.dominates(latest.block, loop.latch):
            return None
        return latest if self.cost(latest.operands[0]) < NEVER else None

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
        latest = self.shift(phi)
        assert latest is not None
        found = self.value(latest)
        self.cache = outer
        return b.select(first, entered, found)

    # -- the plan --------------------------------------------------------------------------------------------

    def plan(self) -> set[Instruction]:
        """What to compute again, from what the first pass saved in loops."""
        demands = [v for v in self.demands if self.owner.level(v) is not None]
        if not demands:
            return set()
        asked = [*self.asked, *(v for v in self.demands if self.owner.level(v) is None)]
        self.idle = at_one_level(self.owner) - computed_anyway(self.owner, asked)
        while True:
            saved, again = choose(demands, self._operands, self._weight)
            twice = again & self.idle
            if twice:
                twice &= computed_anyway(self.owner, [*asked, *saved])
            if not twice:
                return again
            self.idle -= twice

    def _operands(self, value: Instruction) -> list[Instruction] | None:
        """What is left to have before `value` can be computed again; None when it cannot."""
        if value.opcode == "phi":
            latest = self.shift(value) if value not in self.owner.cells else None
            parts: list[Value] = [] if latest is None else [self.owner.entering(value), latest]
            if latest is None:
                return None
        elif value.opcode == "load":
            if self.owner.clobber.clobbered(value):
                return None
            parts = [value.operands[0]]
        elif value.opcode in PURE and COSTS.get(value.opcode, 1) < 20 and not value.type.is_aggregate:
            if value.type is ty.F80 or self._elsewhere(value):
                return None
            parts = list(value.operands)
        elif value in self.idle:
            parts = list(value.args)
        else:
            return None
        return [
            p for p in parts
            if isinstance(p, Instruction) and not self.owner.direct(p) and self.cost(p) >= NEVER
        ]  # fmt: skip

    def _weight(self, value: Instruction) -> int:
        level = self.owner.level(value)
        cells = self.owner.cells.get(value)
        if cells is not None and cells.entering is None:  # the group shares one array
            return int(8 * LOOP_WEIGHT ** min(level.depth if level is not None else 0, 8)) // len(cells.keys)
        return int(ty.store_size(value.type) * LOOP_WEIGHT ** min(level.depth if level is not None else 0, 8))

    def _saved(self, value: Instruction) -> Value:
        self.demands[value] = None
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
        key = ("tape", call)
        self.owner.storage.save(key, ty.PTR, self.owner.level(call), lambda: tape, [("after", tape)])
        return self.load(key)

    def _obtainable(self, operand: Value, user: Value) -> bool:
        return self.cost(operand) < NEVER or self._price(operand, user) < NEVER

    def _shadow_again(self, value: Instruction) -> Value | None:
        """Pointer arithmetic is done again, and pointers are loaded again where nothing overwrote them."""
        b = self.owner.b
        apart = self.owner.taped is not None  # numbers may be kept, addresses may not
        if value.opcode == "getelementptr" and (apart or all(self._obtainable(o, value) for o in value.operands[1:])):
            operands = [self.shadow(value.operands[0]), *(self.value(o) for o in value.operands[1:])]
            return lanes.gep(b, value, operands, self.owner.unit.width)
        if value.opcode == "phi" and value.type.is_ptr and self.cost(value) < NEVER:
            return self._iterate(value, self.shadow, self.owner.unit.width)
        if value.opcode == "select" and (apart or self.cost(value.operands[0]) < NEVER):
            cond = self.value(value.operands[0])
            return b.select(cond, self.shadow(value.operands[1]), self.shadow(value.operands[2]))
        if value.opcode == "load" and not self.owner.clobber.clobbered(value) and value.type.is_ptr:
            return lanes.load(b, ty.PTR, self.shadow(value.operands[0]), self.owner.unit.width)
        return None


def _safe_flags(value: Instruction) -> tuple[str, ...]:
    """Flags for doing an operation again: wrapping flags hold, because it was executed with the same operands
    before."""
    return value.flags


__all__ = ["LIMIT", "NEVER", "ConstInt", "Function", "Recall"]
