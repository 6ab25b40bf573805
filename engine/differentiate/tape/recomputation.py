"""Which values of the primal sweep the reverse sweep computes again, from what, and at what cost.

Five ways to have a value, cheapest first: it is still there (arguments, constants, straight-line code of a combined
derivative); it is an induction variable and follows from the iteration number; it is a number whose steps are undone
(`reversible.py`); its memory still holds it (`clobber.py`); it is cheap to compute again from such values. Otherwise it
is saved. Shadows of pointers are had in the same ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.primitives.rows import libm_cost, operation_cost, pure_call
from irgrad.engine.differentiate.tape.reversible import Reversal, hangs_on
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Constant, Instruction, Value
from irgrad.engine.ir.opcodes import PURE
from irgrad.engine.schedule.loop_schedule import Cells

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

NEVER = 1 << 30
_OPERATION = 2  # units of a call that is one instruction


class Recomputation:
    """The answers for one function. `cells`: values that share an array with their neighbours when they are saved;
    `again`: values that are computed again although others have to be saved for it; `reversals`: numbers
    and pointers that are stepped back; `streamed`: whether a load is read again for the sake of what is computed again
    from it, and no cache may hold it any more."""

    def __init__(
        self, facts: ReverseFacts, cells: Mapping[Instruction, Cells], reversals: Mapping[Instruction, Reversal],
        streamed: Callable[[Instruction], bool] = lambda _: False,
    ) -> None:  # fmt: skip
        self.facts = facts
        self.costs = facts.unit.request.costs
        self.limit = self.costs.tape
        self.cells = cells
        self.reversals = reversals
        self.streamed = streamed
        self.again: frozenset[Instruction] = frozenset()
        self._costs: dict[Value, int] = {}
        self._made: dict[Value, dict[Value, int]] = {}  # what is made for a value, itself as well, each with its units
        self._shifts: dict[Instruction, Value | None] = {}
        self._hangs: dict[Instruction, bool] = {}

    def with_choice(self, cells: Mapping[Instruction, Cells], again: frozenset[Instruction]) -> Recomputation:
        """The same with what was chosen: `again`, and values that are saved anyway in arrays together. No cost changes
        by that."""
        chosen = Recomputation(self.facts, cells, self.reversals, self.streamed)
        chosen.again, chosen._costs, chosen._made, chosen._shifts = again, self._costs, self._made, self._shifts
        return chosen

    # -- values ----------------------------------------------------------------------------------------------

    def computes(self, value: Instruction) -> bool:
        """Whether a value is computed again, rather than saved."""
        return value in self.again or self.cost(value) < NEVER

    def cost(self, value: Value) -> int:
        """Units to have `value` again without saving it, where what several of its parts are made from is made once;
        NEVER when it must be saved."""
        costs = self._costs
        if value in costs:
            return costs[value]
        stack = [value]
        while stack:
            top = stack[-1]
            if top in costs:
                stack.pop()
                continue
            own, operands = self._own_cost(top)
            operands = [o for o in operands if not isinstance(o, Constant)]
            missing = [o for o in operands if o not in costs]
            if missing:
                if own >= NEVER or len(stack) > 4 * self.limit:
                    costs[top] = NEVER
                    continue
                stack += missing
                continue
            costs[top] = self._total(top, own, operands)
            stack.pop()
        return costs[value]

    def _total(self, value: Value, own: int, operands: list[Value]) -> int:
        """The cost of a value whose operands have theirs."""
        made = {value: own} if own else {}
        for operand in operands:
            price = self._price(operand, value)
            if price >= NEVER:
                return NEVER
            made |= self._made[operand] if self._costs[operand] < NEVER else {operand: price}
        total = sum(made.values())
        if total > self.limit:
            return NEVER
        self._made[value] = made
        return total

    def _price(self, operand: Value, user: Value) -> int:
        """Cost of an operand; one that must be saved is cheap when it is saved once per run of an inner loop."""
        cost = self._costs[operand]
        if cost < NEVER or not (isinstance(operand, Instruction) and isinstance(user, Instruction)):
            return cost
        outer, inner = self.facts.level(operand), self.facts.level(user)
        if inner is None or outer is inner or operand.type.is_aggregate:
            return cost
        return 2 if outer is None or (outer.depth < inner.depth and outer.contains(inner)) else cost

    def _own_cost(self, value: Value) -> tuple[int, list[Value]]:
        """Own cost and operands that would be needed again."""
        if isinstance(value, Constant | Argument):
            return 0, []
        if not isinstance(value, Instruction):
            return NEVER, []
        if self.facts.direct(value):
            return 0, []
        opcode = value.opcode
        if opcode == "phi":
            if self.facts.alternates(value):
                return 3, [self.facts.entering(value)]
            if value in self.reversals:
                return 2, []
            if value in self.cells:
                return NEVER, []
            found = self.facts.recurrence(value)
            if found is not None:
                return 2, [found[0], found[1]]
            latest = self.shift(value)
            return (3, [self.facts.entering(value), latest]) if latest is not None else (NEVER, [])
        if opcode == "load":
            if self.facts.clobber.clobbered(value) or self._stays(value):
                return NEVER, []
            return self._reading(value), [value.operands[0]]
        if opcode in PURE:
            if value.type is ty.F80 or value.type.is_aggregate or self._elsewhere(value):
                return NEVER, []
            return operation_cost(value, self.costs), list(value.operands)
        if opcode == "call" and pure_call(value):
            return libm_cost(value, self.costs), list(value.args)
        return NEVER, []

    def _reading(self, load: Instruction) -> int:
        """What it costs to load a value again: where each iteration of all loops loads another one, an array of the
        tape would be no longer than what is loaded (sum of exponentials of 8 MB: 0.77 of the time with 8 MB of tape).
        """
        return self.costs.read(ty.store_size(load.type)) if load.type.is_fp and self.streamed(load) else 1

    def _stays(self, load: Instruction) -> bool:
        """Whether a pointer that is loaded outside of loops stays in a variable: the load that reads it again would
        stand in the innermost loop, behind stores of which nobody knows any more that they leave the pointer alone."""
        facts = self.facts
        outside = load.type.is_ptr and not facts.split and facts.level(load) is None
        return outside and bool(facts.loops.all) and not facts.direct(load)

    def _elsewhere(self, value: Instruction) -> bool:
        """Whether a result depends on where memory lies, and buffers may have moved: it might be another."""
        if not self.facts.caller_tape:
            return False
        if value.opcode in ("ptrtoint", "ptrtoaddr"):
            return True
        return value.opcode == "icmp" and value.operands[0].type.scalar.is_ptr

    def parts(self, value: Instruction) -> list[Value]:
        """What a value is computed again from."""
        if value.opcode == "phi":
            if self.facts.alternates(value):
                return [self.facts.entering(value)]
            if value in self.reversals:
                return [self.reversals[value].after, *self.reversals[value].operands()]
            found = self.facts.recurrence(value)
            latest = None if found is not None else self.shift(value)
            return list(found) if found is not None else [self.facts.entering(value), latest]  # type: ignore[list-item]
        return value.args if value.is_call else value.operands

    def missing(self, value: Instruction, calls: set[Instruction]) -> list[Instruction] | None:
        """What is left to have before `value` can be computed again; None when it cannot. `calls`: those that may be
        repeated at any cost."""
        if value.opcode == "phi" and self.facts.alternates(value):
            parts: list[Value] = [self.facts.entering(value)]
        elif value.opcode == "phi":
            latest = self.shift(value) if value not in self.cells else None
            if latest is None:
                return None
            parts = [self.facts.entering(value), latest]
        elif value.opcode == "load":
            if self.facts.clobber.clobbered(value):
                return None
            parts = [value.operands[0]]
        elif value.opcode in PURE and operation_cost(value, self.costs) < self._dear and not value.type.is_aggregate:
            if value.type is ty.F80 or self._elsewhere(value):
                return None
            parts = value.operands
        elif value in calls or self._cheap_call(value):
            parts = value.args
        else:
            return None
        direct = self.facts.direct
        return [p for p in parts if isinstance(p, Instruction) and not direct(p) and self.cost(p) >= NEVER]

    @property
    def _dear(self) -> int:
        """Units of one operation that is not made again from values that are saved for it."""
        return self.limit * 5 // 7

    def _cheap_call(self, value: Instruction) -> bool:
        """Whether a call is made again from values that are saved for it: on a CPU one that is a single operation, as a
        fused multiplication and addition, and none of what a loop hands on from iteration to iteration: it waits for
        chains of them (measured: 1.3 of the time of Euler steps). In nests alone, and in what loops may call: a tape of
        fewer iterations is still in a cache (bundle adjustment: 1.04 of the time with half of the tape)."""
        cost = self.call_cost(value)
        if self._dear > self.costs.call:
            return cost < self._dear and not (self.costs.waits and self._carried(value))
        level = self.facts.level(value)
        deep = level is not None and level.depth + self.facts.split > 1
        return deep and cost <= _OPERATION and not self._carried(value)

    def _carried(self, value: Instruction) -> bool:
        """Whether a value is computed from a number that a loop hands on."""
        stack = [value]
        while stack:
            item = stack[-1]
            if item in self._hangs:
                stack.pop()
                continue
            if item.opcode == "phi":
                loop = self.facts.level(item)
                self._hangs[item] = item.type.is_fp and loop is not None and loop.header is item.block
                continue
            parts = [o for o in item.operands if isinstance(o, Instruction)]
            missing = [o for o in parts if o not in self._hangs]
            stack += missing
            if not missing:
                self._hangs[item] = any(self._hangs[o] for o in parts)
        return self._hangs[value]

    def call_cost(self, value: Instruction) -> int:
        """Units to make a call again, NEVER for what is none, or has effects."""
        return libm_cost(value, self.costs) if value.opcode == "call" and pure_call(value) else NEVER

    # -- carried values --------------------------------------------------------------------------------------

    def shift(self, phi: Instruction) -> Value | None:
        """The value whose previous iteration a header phi holds (loads that a loop carries over to the next iteration).

        Only in counted loops whose body runs whole in every iteration; the chain of phis must end in a load that
        does not depend on them.
        """
        if phi not in self._shifts:
            self._shifts[phi] = None
            self._shifts[phi] = self._shift(phi)
        return self._shifts[phi]

    def _shift(self, phi: Instruction) -> Value | None:
        facts = self.facts
        loop = facts.level(phi)
        if loop is None or loop.header is not phi.block or loop.latch is None or loop.exiting != [loop.latch]:
            return None
        if facts.top(loop) is None or not (phi.type.is_fp or phi.type.is_int):
            return None
        latest = phi.operands[phi.blocks.index(loop.latch)]
        if not isinstance(latest, Instruction) or facts.level(latest) is not loop or latest.block is None:
            return None
        if latest.opcode == "phi":
            return latest if latest.block is loop.header and self.shift(latest) is not None else None
        if latest.opcode != "load" or not facts.dom.dominates(latest.block, loop.latch):
            return None
        address = latest.operands[0]  # read again an iteration earlier than what is stepped back stands
        return latest if self.cost(address) < NEVER and not hangs_on(address, self.reversals, loop) else None

    # -- shadows of pointers ---------------------------------------------------------------------------------

    def shadow_parts(self, value: Instruction) -> tuple[list[Value], list[Value]] | None:
        """The shadows and the values that the shadow of a pointer is computed again from; None when it is saved.

        Pointer arithmetic is done again, and pointers are loaded again where nothing overwrote them."""
        operands = value.operands
        numbers = self.facts.caller_tape  # numbers may be kept, addresses may not
        if value.opcode == "getelementptr":
            missing = sum(not self._obtainable(o, value) for o in operands[1:])
            if numbers or not missing or (missing == 1 and self._at_hand(operands[0])):
                return operands[:1], operands[1:]
        if value.opcode == "phi" and value.type.is_ptr and self.cost(value) < NEVER:
            if value in self.reversals:
                return [self.reversals[value].after], self.reversals[value].operands()
            found = self.facts.recurrence(value)
            assert found is not None
            return [found[0]], [found[1]]
        if value.opcode == "select" and (numbers or self.cost(operands[0]) < NEVER):
            return operands[1:], operands[:1]
        if value.opcode == "load" and value.type.is_ptr and not self._stays(value):
            return None if self.facts.clobber.clobbered(value) else (operands[:1], [])
        return None

    def _at_hand(self, pointer: Value) -> bool:
        """Whether the shadow of a pointer is had without saving anything: then a number that leads on from there is
        saved in place of an address; others may need that number as well."""
        while isinstance(pointer, Instruction) and not self.facts.direct(pointer):
            if pointer.opcode != "getelementptr" or not all(self._obtainable(o, pointer) for o in pointer.operands[1:]):
                return False
            pointer = pointer.operands[0]
        return True

    def _obtainable(self, operand: Value, user: Value) -> bool:
        return self.cost(operand) < NEVER or self._price(operand, user) < NEVER

    # -- trip counts -----------------------------------------------------------------------------------------

    def computes_trip(self, loop: Loop) -> bool:
        """Whether the reverse sweep computes a trip count again rather than having it saved."""
        count = self.facts.trip(loop)
        if count is None or (self.facts.caller_tape and any(use.type.is_ptr for use in count.uses)):
            return False
        return all(self.cost(use) < NEVER for use in count.uses)
