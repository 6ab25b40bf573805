"""Loops, their trip counts, and what the tape holds of their iterations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.loop_classes import classify
from irgrad.engine.differentiate.primitives.rows import libm_cost, operation_cost, pure_call
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction
from irgrad.engine.ir.opcodes import PURE
from irgrad.engine.report.choices import choices_of
from irgrad.engine.report.counts import Counts
from irgrad.engine.report.facts import FunctionFacts, KeptValue, LoopFacts, RecalledValue
from irgrad.engine.report.formulas import Formula
from irgrad.engine.report.sizes import ALIGNED, Size
from irgrad.engine.report.words import place_of

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.tape.demands import Saved
    from irgrad.engine.differentiate.tape.tape_plan import TapePlan
    from irgrad.engine.normalise.segments import Segments
    from irgrad.engine.report.derivation import Planned
    from irgrad.engine.report.words import Words

__all__ = ["function_facts"]

_KINDS = {"shadow": "shadow", "tape": "rule", "array": "address", "count": "count", "dim": "count", "from": "path",
          "record": "link", "mask": "count", "cells": "value", "end": "value"}  # fmt: skip


def function_facts(planned: Planned, words: Words, *, root: bool) -> FunctionFacts:
    """One function with its loops."""
    return _Reader(planned, words, root).facts()


def _segments(made: Segments) -> str:
    """How a loop keeps states, in words."""
    choice, arrays = made.choice, len(made.saved)
    if choice.fused:
        return "fused: both sweeps of one iteration at a time, while the function runs; the tape is that of one"
    often = f"each {choice.unit:,} iterations" if choice.unit > 1 else "each iteration"
    if choice.bytes:
        often = f"as many as fit {choice.bytes // 2:,} bytes, and a tape of {choice.bytes // 2:,}"
    elif choice.states:
        often = f"{choice.states:,} at once, placed by binomial checkpointing"
    memory = f" and {arrays} piece{'s' if arrays > 1 else ''} of memory" if arrays else ""
    memory += " and what lies behind addresses in tables" if made.rows else ""
    return f"states in place of a tape, {often}: {ty.size_of(made.state)} bytes{memory}"


class _Reader:
    def __init__(self, planned: Planned, words: Words, root: bool) -> None:
        self.planned = planned
        self.words = words
        self.root = root
        self.reverse = planned.facts
        self.loops = planned.facts.loops.all
        self.dependence = Dependence(planned.fn, planned.facts.unit.pointers, planned.facts.induction)
        self.counts = Counts(planned.facts, words.scalar, self._iteration)

    def _iteration(self, loop: Loop) -> str:
        place = self.words.loop_place(loop)[0]
        return f"i{place.line}" if place else f"i({loop.header.name or '?'})"

    def facts(self) -> FunctionFacts:
        fn, words = self.planned.fn, self.words
        made = self.reverse.unit.segments.get(fn)
        if made is not None:
            name, at = words.function(fn), place_of(made.place)
            return FunctionFacts(name, at, False, 0, (), (), (), segments=_segments(made))
        kept, recalled = self._kept(None), self._recalled(None)
        split = 0 if self.root else self._record(None)
        loops = tuple(map(self._loop, self.loops))
        rows = zip(loops, self.loops, strict=True)
        loops = tuple(replace(made, choices=self._choices(loop, loops)) for made, loop in rows)
        own = tuple(words.place(i) for i in self.reverse.own_memory if i.is_call and self.planned.plan is not None)
        repeated = self.planned.plan is not None and not self.root and not self.reverse.split
        name, place = words.function(fn), words.defined(fn)
        return FunctionFacts(name, place, self.root, split, kept, recalled, loops, own, repeated)

    def _loop(self, loop: Loop) -> LoopFacts:
        place, last = self.words.loop_place(loop)
        kept = self._kept(loop)
        arrays = [value.size for value in kept if value.where == "array"]
        record = self._record(loop)
        sizes: list[Size] | None = [size for size in arrays if size is not None]
        if sizes is not None and len(sizes) < len(arrays):
            sizes = None
        if record and sizes is not None:
            outer = self._outer(loop)
            sizes = [*sizes, Size(record, (), outer[0], exact=outer[1])] if outer is not None else None
        parent = self.loops.index(loop.parent) if loop.parent is not None else None
        own = sum(value.bytes for value in kept if value.where == "array")
        return LoopFacts(
            self.words.function(self.planned.fn), self.loops.index(loop), parent, loop.depth, place, last,
            self.counts.iterations(loop), own + record, tuple(sizes) if sizes is not None else None, kept,
            self._recalled(loop), *self._class(loop),
        )  # fmt: skip

    def _choices(self, loop: Loop, found: Sequence[LoopFacts]) -> tuple[str, ...]:
        """What an outermost loop may keep that keeps anything."""
        if loop.depth > 1 or self.planned.plan is None or self.words.kernel.options.device:
            return ()
        inside = [made for made, other in zip(found, self.loops, strict=True) if loop.contains(other.header)]
        calls = any(i.is_call and isinstance(i.callee, Function) and i.callee in self.reverse.unit.abis
                    for block in loop.blocks for i in block.instructions)  # fmt: skip
        if not calls and not any(made.kept or made.bytes for made in inside):
            return ()
        known = None if any(made.sizes is None for made in inside) else [s for made in inside for s in made.sizes or ()]
        return choices_of(self.reverse.unit, self.planned.fn, loop, self.words, self.words.loop_place(loop)[0], known,
                          self._work(loop), calls=calls)  # fmt: skip

    def _work(self, outermost: Loop) -> tuple[Size, ...] | None:
        """Additions of all iterations of a nest, branches taken; None where loops are not counted."""
        found: dict[Loop, int] = {}
        for block in outermost.blocks:
            loop = self.reverse.loops.of(block)
            if loop is not None:
                found[loop] = found.get(loop, 0) + sum(map(self._cost, block.instructions))
        rows = [(cost, self._outer(loop)) for loop, cost in found.items()]
        known = tuple(Size(cost, (), outer[0]) for cost, outer in rows if outer is not None)
        return known if len(known) == len(rows) else None

    def _cost(self, instr: Instruction) -> int:
        costs = self.reverse.unit.request.costs
        if instr.opcode == "call":
            return libm_cost(instr, costs) if pure_call(instr) else 1
        arithmetic = instr.opcode in PURE or instr.opcode in ("load", "store")
        return operation_cost(instr, costs) if arithmetic else 0

    def _class(self, loop: Loop) -> tuple[str, str]:
        """What the iterations hand to one another: the class, and in words."""
        found = classify(self.dependence, loop)
        said: str = found.name
        if found.carried:
            first = found.carried[0]
            lines = dict.fromkeys(str(self.words.value_place(i, loop)) for i in (first.first, first.second))
            said += f": {' and '.join(lines)}, {first.relation.because}"
            more = len(found.carried) - 1
            said += f" (and {more} more)" if more else ""
            promises = {item.relation.promise for item in found.carried}
            said += f"; {first.relation.promise}" if "" not in promises else ""
        elif found.recurrences or found.reductions:
            values = found.recurrences or found.reductions
            said += f" over {', '.join(dict.fromkeys(str(self.words.value_place(v, loop)) for v in values))}"
        return found.name, said

    # -- what is kept --------------------------------------------------------------------------------------------

    def _kept(self, level: Loop | None) -> tuple[KeptValue, ...]:
        plan = self.planned.plan
        if plan is None:
            return ()
        return tuple(self._value(plan, key, saved) for key, saved in plan.saved.items() if saved.level is level)

    def _value(self, plan: TapePlan, key: Hashable, saved: Saved) -> KeptValue:
        value, what = _subject(key)
        where = "array" if saved.loops else "variable" if saved.level is None else "record"
        over = tuple(self.words.loop_place(loop)[0].line for loop in saved.loops)
        size = self._array(plan, key, saved) if saved.loops else None
        name, opcode = self._named(value)
        place = self.words.value_place(value, saved.level)
        return KeptValue(what, name, opcode, str(saved.type), ty.store_size(saved.type), where, over, size, place,
                         self._asked(plan, key))  # fmt: skip

    def _named(self, value: object) -> tuple[str, str]:
        if isinstance(value, Instruction):
            return value.name or "", self.words.opcode(value)
        if isinstance(value, Block):
            return value.name or "", "block"
        return getattr(getattr(value, "header", None), "name", None) or "", "loop"

    def _array(self, plan: TapePlan, key: Hashable, saved: Saved) -> Size | None:
        extents: list[tuple[Formula, int]] = []
        levels = plan.demands.levels.get(key)
        exact = True
        for number, loop in enumerate(saved.loops):
            count = self.counts.iterations(loop)
            if count is None:
                return None
            more = saved.span if number == len(saved.loops) - 1 else 0
            if levels is not None and not number:
                more, exact = more + 1, levels.result is None
            extents.append((count, more))
        outer = self._outer(saved.loops[0].parent)
        entered = self.counts.entered(saved.loops[0])
        if outer is None:
            return None
        slack = -(-levels.low // ALIGNED) * ALIGNED if levels is not None else 0
        return Size(ty.size_of(saved.type), tuple(extents), outer[0], slack, exact and entered and outer[1])

    def _outer(self, level: Loop | None) -> tuple[tuple[tuple[int, Formula], ...], bool] | None:
        """The loops down to this one, with their iterations, and whether each is entered always; None where one is not
        counted."""
        found: list[tuple[int, Formula]] = []
        exact = True
        while level is not None:
            count = self.counts.iterations(level)
            if count is None:
                return None
            found.append((self.counts.numbers[level], count))
            exact = exact and self.counts.entered(level)
            level = level.parent
        return tuple(found[::-1]), exact

    def _record(self, level: Loop | None) -> int:
        """Bytes of the record of an iteration, or of a call: what is kept there is one struct, behind a link."""
        plan = self.planned.plan
        if plan is None:
            return 0
        types = [saved.type for saved in plan.saved.values() if saved.level is level and not saved.loops]
        if not types:
            return 0
        whole = ty.struct((*([ty.PTR] if level is not None else []), *types))
        return -(-ty.size_of(whole) // ALIGNED) * ALIGNED

    # -- what is not ---------------------------------------------------------------------------------------------

    def _recalled(self, level: Loop | None) -> tuple[RecalledValue, ...]:
        plan = self.planned.plan
        if plan is None:
            return ()
        found = []
        for value in plan.demands.computed:
            if self.reverse.level(value) is level:
                again = "stepped back" if value in plan.rules.reversals else "recomputed"
                how = "reloaded" if value.opcode == "load" else again
                found.append(RecalledValue(how, value.name or "", self.words.opcode(value), str(value.type),
                                           self.words.value_place(value, level), self._asked(plan, value)))  # fmt: skip
        return tuple(found)

    def _asked(self, plan: TapePlan, key: Hashable) -> str:
        """The instruction at the end of the way to who asked: the one whose reverse reads it."""
        here: Hashable = key
        seen: set[Hashable] = set()
        while here not in seen:
            seen.add(here)
            reason = self._reader_of_group(plan, here) or plan._reason(here)
            if reason is None:
                break
            here = reason
        if isinstance(here, Instruction):
            return self.words.instruction(here)
        return plan.name(here)

    def _reader_of_group(self, plan: TapePlan, key: Hashable) -> Hashable | None:
        """Who reads one of the values that share an array; they ask for the array, and it for the first of them."""
        if not (isinstance(key, tuple) and key[0] == "cells"):
            return None
        shared = plan.demands.shared
        for read, why in plan.reads.items.items():
            if isinstance(read.subject, Instruction) and shared.get(read.subject) == key:
                return why
        computed = plan.demands.computed
        return next((reader for reader in computed if any(shared.get(v) == key for v in reader.operands
                                                          if isinstance(v, Instruction))), None)  # fmt: skip


def _subject(key: Hashable) -> tuple[object, str]:
    """What a key of the plan is about, and its kind in words."""
    if not isinstance(key, tuple):
        return key, "value"
    kind = _KINDS.get(str(key[0]), "value")
    about = key[1] if key[0] != "dim" else key[2]
    return (_subject(about)[0] if isinstance(about, tuple) else about), kind


