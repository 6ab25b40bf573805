"""What has to be saved, and what is computed again, so that the reverse sweep can read what it reads.

Each thing that is read is there, or is computed again from others, or is saved. Saving asks for more: an array for its
address and its extents, a record for the link to the record before. All of it is followed until nothing is new.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.differentiate.tape.varying import Varying
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Instruction
from irgrad.engine.ir.types import Type
from irgrad.engine.schedule.loop_schedule import Levels, LoopSchedule

if TYPE_CHECKING:
    from irgrad.engine.differentiate.tape.reads import Read
    from irgrad.engine.differentiate.tape.recomputation import Recomputation

Why = Hashable  # the instruction whose reverse reads something, or the key that needs it


@dataclass(frozen=True, slots=True)
class Saved:
    """Something that the primal sweep saves.

    level: the innermost loop around it; loops: those that an array of it ranges over, none where it is a slot (of the
    function or of the record of an iteration); span: cells of the array beyond the iterations
    """

    type: Type
    level: Loop | None
    loops: tuple[Loop, ...]
    span: int
    why: Why


class Demands:
    """The closure of what is read. Keys of what is saved: an instruction; ("shadow", i) and ("tape", i) of one;
    ("cells", i), the array of a group; ("count", loop), ("dim", top, loop), ("record", loop), ("from", block);
    ("array", key), the address of an array, ("values", key) where the values of an iteration lie side by side in it;
    ("mask", key) of rows; ("end", i) and ("end", ("shadow", i)), what something
    that is stepped back was in the last iteration."""

    def __init__(self, rules: Recomputation, schedule: LoopSchedule, varying: Varying) -> None:
        self.facts = rules.facts
        self.varying = varying
        self.schedule = schedule
        self.cells = rules.cells
        self.rules = rules
        self.saved: dict[Hashable, Saved] = {}
        self.shared: dict[Instruction, Hashable] = {}  # values in the array of a group
        self.values: dict[Instruction, None] = {}  # values that are saved, in order
        self.direct: dict[Instruction, None] = {}  # values that are read as they are
        self.computed: dict[Instruction, Why] = {}  # values that are computed again
        self.shadows: dict[Instruction, Why] = {}  # the same of shadows
        self.levels: dict[Hashable, Levels] = {}  # groups whose arrays steps work on
        self._recorded: set[Loop] = set()
        self._dims: set[tuple[Loop, Loop]] = set()
        self._work: list[tuple[str, object, Why]] = []

    def read(self, item: Read, why: Why) -> None:
        """Follow what one read asks for."""
        self._work.append((item.what, item.subject, why))
        while self._work:
            what, subject, reason = self._work.pop()
            if what == "value":
                self._value(subject, reason)
            elif what == "shadow":
                self._shadow(subject, reason)
            elif what == "tape":
                assert isinstance(subject, Instruction)
                if not self.facts.direct(subject):
                    kind = ty.I64 if self.facts.caller_tape else ty.PTR  # see `Recall.tape`
                    self._save(("tape", subject), kind, self.facts.level(subject), reason)
            elif what == "count":
                assert isinstance(subject, Loop)
                self._count(subject, reason)
            else:
                assert isinstance(subject, Block)
                kind = ty.I8 if len(self.facts.cfg.preds(subject)) < 128 else ty.I32
                self._save(("from", subject), kind, self.facts.loops.of(subject), reason)

    def _value(self, value: object, why: Why) -> None:
        if not isinstance(value, Instruction) or value in self.computed or value in self.values:
            return
        if self.facts.direct(value):
            self.direct[value] = None
        elif self.rules.computes(value):
            self.computed[value] = why
            self._work += [("value", part, value) for part in self.rules.parts(value)]
            self._last(value, value, value.type)
        else:
            self.values[value] = None
            self._save(value, value.type, self.facts.level(value), why)

    def _shadow(self, value: object, why: Why) -> None:
        key = ("shadow", value)
        if not isinstance(value, Instruction) or value in self.shadows or key in self.saved:
            return
        facts = self.facts
        if not facts.has_shadow(value) or facts.direct(value):
            return
        if facts.caller_tape and value in facts.own_memory:  # made by the reverse sweep
            return
        parts = self.rules.shadow_parts(value)
        if parts is None:
            self._save(key, facts.unit.wide(value.type), facts.level(value), why)
            return
        self.shadows[value] = why
        shadows, values = parts
        self._work += [("value", part, key) for part in values]
        self._work += [("shadow", part, key) for part in shadows]
        self._last(value, key, facts.unit.wide(value.type))

    def _last(self, value: Instruction, key: Hashable, type_: Type) -> None:
        """What is stepped back begins with what the last iteration began with."""
        if value in self.rules.reversals:
            loop = self.facts.level(value)
            assert loop is not None
            self._save(("end", key), type_, loop.parent, key)

    # -- saving ----------------------------------------------------------------------------------------------

    def _save(self, key: Hashable, type_: Type, level: Loop | None, why: Why) -> None:
        if key in self.saved or key in self.shared:
            return
        if level is None or self.facts.top(level) is None:
            self.saved[key] = Saved(type_, level, (), 0, why)
            if level is not None:
                self._record(level, key)
            return
        cells = self.cells.get(key) if isinstance(key, Instruction) else None
        if cells is None:
            self._array(key, type_, level, 0, why)
            return
        assert isinstance(key, Instruction)
        group = ("cells", cells.members[0])
        self.shared[key] = group
        if group not in self.saved:
            self._array(group, type_, level, cells.span, key)
            found = self.schedule.levels(self.cells, cells, level)
            if found is not None:
                self._levels(group, found)

    def _array(self, key: Hashable, type_: Type, level: Loop, span: int, why: Why) -> None:
        top, chain = self.facts.chain(level)[0], self.ranges(key, level)
        self.saved[key] = Saved(type_, level, tuple(chain), span, why)
        for loop in chain:
            self._extent(top, loop, key)
        self._save(("array", key), ty.PTR, top.parent, key)

    def one_array(self, group: Hashable, members: list[Hashable], level: Loop) -> None:
        """These keys of one level, of one type and over the same loops, share the array of a group."""
        for key in members:
            address: Hashable = ("array", key)
            while (dropped := self.saved.pop(address, None)) is not None and dropped.loops:
                address = ("array", address)
        self._save(("array", group), ty.PTR, self.facts.chain(level)[0].parent, members[0])

    def ranges(self, key: Hashable, level: Loop) -> list[Loop]:
        """The loops over whose iterations an array of something at this level ranges."""
        value = key[1] if isinstance(key, tuple) and key[0] == "shadow" else key
        if isinstance(value, Instruction):
            return self.varying.over(value, level)
        return self.facts.chain(level)

    def _levels(self, group: Hashable, levels: Levels) -> None:
        self.levels[group] = levels
        if levels.result is not None:  # rows that are left out are computed again, see level_rows.py
            key = ("mask", group)
            self._save(key, ty.I64, None, group)
            self._extent(levels.steps, levels.inner, key)
            self._extent(levels.steps, levels.steps, key)
            self._work += [("value", value, key) for value in levels.outside()]

    def _extent(self, top: Loop, loop: Loop, why: Why) -> None:
        """The iterations of a loop of a flat nest."""
        if (top, loop) in self._dims or self.facts.constant_trip(loop) is not None:
            return
        self._dims.add((top, loop))
        if not self.rules.computes_trip(loop):
            self._save(("dim", top, loop), ty.I64, top.parent, why)
            return
        count = self.facts.trip(loop)
        assert count is not None
        self._work += [("value", use, why) for use in count.uses]

    def _count(self, loop: Loop, why: Why) -> None:
        top = self.facts.top(loop)
        if self.facts.constant_trip(loop) is not None:
            return
        if top is not None:
            self._extent(top, loop, why)
        else:
            self._save(("count", loop), ty.I64, loop.parent, why)

    def _record(self, loop: Loop, why: Why) -> None:
        """The link to the last record of a loop, which belongs to the level outside."""
        if loop in self._recorded:
            return
        self._recorded.add(loop)
        self._save(("record", loop), ty.PTR, loop.parent, why)


__all__ = ["Demands", "Saved", "Why"]
