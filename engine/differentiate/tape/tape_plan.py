"""The plan of a tape: for each value that the reverse sweep reads, whether it is still there, computed again or saved.

It is made before an instruction of the derivative is, from what the reverse of each instruction reads (`reads.py`),
what can be computed again (`recomputation.py`) and the minimum cut between what must be saved and what is read
(`min_cut.py`). Emission follows it: it asks for nothing that is not planned.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
from irgrad.engine.differentiate.tape.combined_calls import CombinedCalls
from irgrad.engine.differentiate.tape.demands import Demands, Why
from irgrad.engine.differentiate.tape.liveness import at_one_level, computed_anyway
from irgrad.engine.differentiate.tape.min_cut import LOOP_WEIGHT, choose
from irgrad.engine.differentiate.tape.reads import Reads
from irgrad.engine.differentiate.tape.recomputation import NEVER, Recomputation
from irgrad.engine.differentiate.tape.reversible import Reversal, reversals_of
from irgrad.engine.differentiate.tape.side_by_side import side_by_side
from irgrad.engine.differentiate.tape.varying import Varying
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Block, Instruction
from irgrad.engine.schedule.loop_schedule import Cells, LoopSchedule, StencilSchedule

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.conventions import Abi
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.differentiate.tape.demands import Saved

__all__ = ["TapePlan", "plans_of"]


class TapePlan:
    """The plan for one function."""

    def __init__(self, facts: ReverseFacts) -> None:
        self.facts = facts
        self.schedule: LoopSchedule = (facts.unit.request.schedule or StencilSchedule)(facts)
        self.combined = CombinedCalls(facts, lambda callee: TapePlan(callee).bytes_outside_of_loops)
        self.reads = Reads(facts, self.schedule, self.combined)
        cells = self.schedule.cells
        varying = Varying(facts)
        asked = {read.subject for read in self.reads.items if read.what == "value"}
        rules = Recomputation(
            facts, cells, self._reversals(), lambda load: load not in asked and varying.streamed(load)
        )
        demands = self._close(Demands(rules, self.schedule, varying))
        again = _cut(demands)
        together = self.schedule.handed_on([v for v in demands.values if v not in again])
        if again or together:
            chosen = rules.with_choice({**cells, **together}, frozenset(again))
            demands = self._close(Demands(chosen, self.schedule, varying))
        self.demands = demands
        self.groups = side_by_side(demands)
        self.rules = demands.rules
        self.cells = demands.cells
        self.saved = demands.saved

    def _reversals(self) -> dict[Instruction, Reversal]:
        down = (loop for loop in self.facts.loops.all if not self.schedule.counts_up(loop))
        return {phi: reversal for loop in down for phi, reversal in reversals_of(self.facts, loop).items()}

    def stepped(self, loop: Loop, *, shadows: bool) -> list[Reversal]:
        """The numbers and pointers of a loop that the reverse sweep steps back, or the shadows, in this order."""
        wanted = self.demands.shadows if shadows else self.demands.computed
        return [r for phi, r in self.rules.reversals.items() if phi.block is loop.header and phi in wanted]

    def _close(self, demands: Demands) -> Demands:
        for read, why in self.reads.items.items():
            demands.read(read, why)
        return demands

    @property
    def bytes_outside_of_loops(self) -> int:
        """What the tape of one call holds beside what it keeps of iterations."""
        return sum(ty.store_size(saved.type) for saved in self.saved.values() if saved.level is None)

    # -- what emission asks ----------------------------------------------------------------------------------

    def require(self, key: Hashable) -> None:
        """Raises AssertionError for something to be saved that is not planned: `reads.py` lacks what a handler of
        the reverse sweep reads."""
        if key not in self.saved and key not in self.demands.shared:
            fn = self.facts.fn.name
            raise AssertionError(f"internal error: the plan of the tape of `{fn}` lacks {self.name(key)}")

    # -- the plan as text ------------------------------------------------------------------------------------

    def why(self, key: Hashable) -> list[str]:
        """Who asked for something that is saved or computed again: from the key that needs it to the instruction whose
        reverse reads it."""
        found: list[str] = []
        here: Why = key
        seen: set[Why] = set()
        while here not in seen:
            seen.add(here)
            reason = self._reason(here)
            if reason is None:
                break
            here = reason
            found.append(self.name(here))
        return found

    def _reason(self, key: Why) -> Why | None:
        demands = self.demands
        if key in self.saved:
            return self.saved[key].why
        if isinstance(key, Instruction):
            return demands.shared.get(key, demands.computed.get(key))
        shadow = key[1] if isinstance(key, tuple) and key[0] == "shadow" else None
        return demands.shadows.get(shadow) if isinstance(shadow, Instruction) else None

    def name(self, key: Why) -> str:
        """A key in words, with its line in the source."""
        if isinstance(key, Instruction):
            what = key.callee_name or key.opcode if key.is_call else key.opcode
            name = f"%{key.name} = " if key.name else ""
            line = locate(self.facts.unit.module, key)
            return f"{name}{what}{f' ({line})' if line else ''}"
        if isinstance(key, Block):
            return f"block {key.name or '?'}"
        if isinstance(key, tuple):
            return " ".join([str(key[0]), "of", *map(self.name, key[1:])])
        return f"loop {getattr(getattr(key, 'header', None), 'name', None) or '?'}"

    def lines(self) -> Iterator[str]:
        """For each loop, what is kept of an iteration, what is read again, what is computed again, and for whom."""
        levels: list[Loop | None] = [None, *self.facts.loops.all]
        for level in levels:
            kept = [(k, s) for k, s in self.saved.items() if s.level is level]
            computed = [v for v in self.demands.computed if self.facts.level(v) is level]
            if not kept and not computed:
                continue
            size = sum(ty.store_size(s.type) for _, s in kept)
            yield f"{self._title(level)}: {size} bytes" + (" an iteration" if level is not None else "")
            for key, saved in kept:
                yield f"  kept        {self.name(key)}: {saved.type}, {self._place(saved)}; for {self._asked(key)}"
            for value in computed:
                word = "stepped    " if value in self.rules.reversals else "recomputed "
                word = "reloaded   " if value.opcode == "load" else word
                yield f"  {word} {self.name(value)}; for {self._asked(value)}"

    def __str__(self) -> str:
        return "\n".join([f"tape of {self.facts.fn.name}", *self.lines()])

    def _asked(self, key: Why) -> str:
        first, *others = self.why(key)
        return f"{first}, read by the reverse of {others[-1]}" if others else first

    def _title(self, level: Loop | None) -> str:
        if level is None:
            return "outside of loops"
        lines = (locate(self.facts.unit.module, i) for i in level.header.instructions)
        line = next((text for text in lines if text), "")
        return f"loop {level.header.name or '?'}{f' ({line})' if line else ''}, depth {level.depth}"

    def _place(self, saved: Saved) -> str:
        if saved.loops:
            over = ", ".join(loop.header.name or "?" for loop in saved.loops)
            return f"array over {over}" + (f" and {saved.span} cells" if saved.span else "")
        return "slot" if saved.level is None else "record"


def plans_of(unit: Unit, abi: Abi) -> list[TapePlan]:
    """The plans of a root whose sweeps run in one call, and of the functions that its derivative calls."""
    found = [TapePlan(ReverseFacts(unit, unit.root, abi, split=False))]
    seen = {(unit.root, False)}
    for plan in found:  # grows
        called = [
            (fn, True) for read in plan.reads.items if read.what == "tape"
            for fn in unit.call_targets(read.subject)  # type: ignore[arg-type]
        ]  # fmt: skip
        for fn, split in [*called, *((fn, False) for fn in plan.combined.callees())]:
            if (fn, split) not in seen:
                seen.add((fn, split))
                found.append(TapePlan(ReverseFacts(unit, fn, unit.abis[fn], split=split)))
    return found


# -- the choice --------------------------------------------------------------------------------------------------------


def _cut(demands: Demands) -> set[Instruction]:
    """What to compute again, of what would be saved in loops: the minimum cut. Calls that the primal sweep makes for
    the tape alone cost nothing there when they are made in the reverse sweep in its place."""
    facts, rules = demands.facts, demands.rules
    wanted = [v for v in demands.values if facts.level(v) is not None]
    if not wanted:
        return set()
    asked = [*demands.direct, *(v for v in demands.values if facts.level(v) is None)]
    calls = at_one_level(facts) - computed_anyway(facts, asked)
    while True:
        again_cost = partial(_again_price, demands, calls)
        saved, again = choose(wanted, partial(rules.missing, calls=calls), partial(_price, demands), again_cost)
        twice = again & calls
        if twice:
            twice &= computed_anyway(facts, [*asked, *saved])
        if not twice:
            return again
        calls -= twice


def _price(demands: Demands, value: Instruction) -> int:
    """Bytes to save a value, times a weight for each loop around it, but for those that do not change it."""
    runs = _runs(demands, value)
    level = demands.facts.level(value)
    if level is not None and demands.facts.top(level) is not None:
        runs = max(1, runs // LOOP_WEIGHT ** (len(demands.facts.chain(level)) - len(demands.ranges(value, level))))
    cells: Cells | None = demands.cells.get(value)
    if cells is not None and cells.entering is None:  # the group shares one array
        return int(8 * runs) // len(cells.keys)
    return int(ty.store_size(value.type) * runs)


def _again_price(demands: Demands, calls: set[Instruction], value: Instruction) -> int:
    """What making a call again costs, as bytes of tape. Arithmetic costs nothing here: chains of it are short. calls:
    those that cost nothing either."""
    cost = demands.rules.call_cost(value)
    if value in calls or cost >= NEVER:
        return 0
    return 8 * _runs(demands, value) * cost // demands.rules.limit


def _runs(demands: Demands, value: Instruction) -> int:
    level = demands.facts.level(value)
    return int(LOOP_WEIGHT ** min(level.depth if level is not None else 0, 8))
