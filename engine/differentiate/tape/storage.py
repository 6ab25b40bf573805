"""Where the reverse sweep finds what the primal sweep computed.

Each saved item belongs to a loop level, the innermost loop around its definition:

    no loop           a slot: a stack variable that LLVM turns back into a register; a split derivative carries the
                      slots of this level over in one record
    counted loop      an element of a flat array, allocated before the outermost loop of the nest whose trip counts
                      are all known there; indexed by the iteration numbers
    uncounted loop    a slot again; at the end of each iteration the slots of the loop go to a record on a linked
                      list, and the reverse sweep takes the records back one by one

Arrays and records come from the arena of `helpers.py`, which frees everything when the outermost derivative ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.analyses.evolution.guards import conditions, extent
from irgrad.engine.differentiate.shared.alias_scopes import tape_scope
from irgrad.engine.differentiate.tape.level_rows import Rows
from irgrad.engine.differentiate.tape.places import Flat, Slot
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.ir.types import Type
from irgrad.engine.schedule.loop_schedule import Cells

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop

Emit = Callable[[Builder], None]
_AT = "irgrad.tape.at"
_KEEP_WHAT_WAS_SAID = ("irgrad.tape.alloc", "llvm.")


class Storage:
    """Decides and emits the storage of one function's derivative."""

    def __init__(self, owner: ReverseState) -> None:
        self.owner = owner
        self.slots: dict[Hashable, Slot] = {}
        self.flats: dict[Hashable, Flat] = {}
        self.shared: dict[Hashable, tuple[Flat, int]] = {}
        self.levels: dict[Loop | None, list[Hashable]] = {None: []}
        self.after: dict[int, list[Emit]] = {}  # id of a copied instruction -> what follows it
        self.starts: dict[int, list[tuple[int, Emit]]] = {}  # id of a copied block -> (rank, what follows its phis)
        self.ends: dict[int, list[Emit]] = {}  # id of a copied block -> what precedes its terminator
        self.dims: dict[tuple[Loop, Loop], Value] = {}
        self.counters: dict[Loop, Instruction] = {}
        self.records: list[Loop] = []
        self.lines: dict[Loop, str] = {}  # where loops stand in the source

    # -- saving ----------------------------------------------------------------------------------------------

    def save(
        self,
        key: Hashable,
        type_: Type,
        level: Loop | None,
        value: Callable[[], Value],
        where: list[tuple[str, object]],
    ) -> None:
        """Arrange that `value()` (a value of the primal sweep) is stored at each place of `where`: ("after",
        instruction), ("start", block) or ("end", block), all copies."""
        if key in self.slots or key in self.flats or key in self.shared:
            return
        self.owner.plan.require(key)
        if level is not None and self.owner.top(level) is not None:
            flat, shift = self._flat_of(key, type_, level)
            if key in self.shared and flat.span:
                return
            emit: Emit = lambda b: self._store_flat(b, flat, value(), shift)  # noqa: E731
        else:
            slot = self.slot(key, type_, level)
            emit = lambda b: _store(b, value(), slot.forward)  # noqa: E731
        for kind, place in where:
            phi = kind == "after" and isinstance(place, Instruction) and place.opcode == "phi"
            if kind == "start" or phi:
                block = place.block if isinstance(place, Instruction) else place
                self.starts.setdefault(id(block), []).append((_rank_of_save(level), emit))
            else:
                table = {"after": self.after, "end": self.ends}[kind]
                table.setdefault(id(place), []).append(emit)

    def slot(self, key: Hashable, type_: Type, level: Loop | None) -> Slot:
        """A slot that belongs to `level`."""
        if self.owner.taped is not None:
            self.owner.taped.check(key, type_)
        forward = self.owner.stack(type_, forward=True)
        reverse = self.owner.stack(type_, forward=False) if self.owner.split else forward
        self.slots[key] = Slot(type_, forward, reverse)
        if level is not None and level not in self.levels:
            self._record(level)
        self.levels.setdefault(level, []).append(key)
        return self.slots[key]

    def _record(self, loop: Loop) -> None:
        """Announce that `loop` keeps records: the pointer to the last one belongs to the level outside."""
        if self.owner.taped is not None:
            self.owner.taped.unknown_count(loop)
        self.levels[loop] = []
        self.records.append(loop)
        self.owner.uses_arena()
        key = ("record", loop)
        local = Slot(ty.PTR, self.owner.stack(ty.PTR, forward=True), self.owner.stack(ty.PTR, forward=False))
        self.slots[("last", loop)] = local
        preheader = self.owner.sweep.blocks[loop.preheader]  # type: ignore[index]
        self.ends.setdefault(id(preheader), []).append(lambda b: _store(b, zero(ty.PTR), local.forward))
        self.ends[id(preheader)].append(lambda b: self._for_loop(b, loop, ConstInt(ty.I64, -1)))
        exits = [("start", self.owner.sweep.blocks[e]) for e in loop.exits]
        for _, block in exits:
            self.starts.setdefault(id(block), []).append((-2 * loop.depth, lambda b: self.push(b, loop)))
        level = loop.parent
        if level is not None and self.owner.top(level) is not None:
            flat = self._flat(key, ty.PTR, level)
            emit: Emit = lambda b: self._store_flat(b, flat, b.load(ty.PTR, local.forward))  # noqa: E731
        else:
            slot = self.slot(key, ty.PTR, level)
            emit = lambda b: _store(b, b.load(ty.PTR, local.forward), slot.forward)  # noqa: E731
        for _, block in exits:
            self.starts.setdefault(id(block), []).append((_rank_of_save(level), emit))

    # -- flat arrays -----------------------------------------------------------------------------------------

    def _flat_of(self, key: Hashable, type_: Type, level: Loop) -> tuple[Flat, int]:
        """The array of a saved item, and its place in the array when neighbouring loads share one, or the values of an
        iteration."""
        if key in self.owner.plan.groups:
            group, place = self.owner.plan.groups[key]
            if self.owner.taped is not None:
                self.owner.taped.check(key, type_)
            if group.key not in self.flats:
                self._flat(group.key, type_, level, loops=group.loops, width=len(group.members))
            self.shared[key] = (self.flats[group.key], place)
            return self.shared[key]
        cells = self.owner.plan.cells.get(key) if isinstance(key, Instruction) else None
        if cells is None:
            return self._flat(key, type_, level), 0
        cell = ("cells", cells.members[0])
        if cell not in self.flats:
            flat = self._flat(cell, type_, level, cells.span)
            self.shared[key] = (flat, cells.shift)
            levels = self.owner.plan.demands.levels.get(cell)
            if levels is not None:
                Rows(self.owner, levels, flat)
                return self.shared[key]
            values, highest = self.owner.sweep.values, cells.highest
            self.after.setdefault(id(values[highest]), []).append(
                lambda b: self._store_flat(b, flat, values[highest], cells.span)
            )
            preheader = self.owner.sweep.blocks[level.preheader]  # type: ignore[index]
            self.ends.setdefault(id(preheader), []).append(lambda b: self._first_cells(b, flat, cells, level))
        self.shared[key] = (self.flats[cell], cells.shift)
        return self.shared[key]

    def _first_cells(self, b: Builder, flat: Flat, cells: Cells, level: Loop) -> None:
        """The cells that the highest load never reads: stored in front of the loop, whose first iteration reads
        them."""
        if cells.entering is not None:
            self._store_flat(b, flat, self.owner.sweep.value(cells.entering), 0, entry=True)
            return
        first = at_entry(self.owner, b, level, cells.lowest.operands[0])
        size = ty.store_size(flat.type)
        for k in range(cells.span):
            cell = b.load(flat.type, b.gep(ty.I8, first, k * size), align=cells.lowest.align)
            self._store_flat(b, flat, cell, k, entry=True)

    def _flat(
        self, key: Hashable, type_: Type, level: Loop, span: int = 0, *, loops: Sequence[Loop] = (), width: int = 1
    ) -> Flat:
        top, chain = self.owner.chain(level)[0], loops or self.owner.plan.demands.ranges(key, level)
        if self.owner.taped is not None:
            if top.parent is not None:
                self.owner.taped.nested(level)
            self.owner.taped.check(key, type_)
        flat = self.flats[key] = Flat(key, type_, top, chain, span, width)
        self.owner.uses_arena()
        for loop in chain:
            self.dimension(top, loop)
        preheader = self.owner.sweep.blocks[top.preheader]  # type: ignore[index]

        def allocate(b: Builder) -> None:
            count: Value = ConstInt(ty.I64, 1)
            for loop in reversed(chain):
                extra = ConstInt(ty.I64, span if loop is level else 0)
                some = b.add(self._extent_of(b, top, loop), extra, ("nuw", "nsw"))
                if flat.levels is not None and loop is top:
                    some = flat.levels.rows(b, some, count)
                count = b.mul(count, some, ("nuw", "nsw"))
            size = b.mul(count, ConstInt(ty.I64, width * ty.size_of(type_)), ("nuw", "nsw"))
            self._for_loop(b, level, count)
            memory = self.owner.allocate(b, b.add(size, ConstInt(ty.I64, flat.slack)))
            flat.emitted_at(b.gep(ty.I8, memory, flat.slack) if flat.slack else memory)

        self.ends.setdefault(id(preheader), []).append(allocate)
        self._save_outside(("array", key), ty.PTR, top, lambda: self._known(flat.pointer))
        return flat

    def _for_loop(self, b: Builder, loop: Loop, count: Value) -> None:
        """Tell the arena what the memory is for that is asked for next: iterations of a loop in the source."""
        owner = self.owner
        if loop not in self.lines:
            texts = (locate(owner.unit.module, i) for i in loop.header.instructions)
            self.lines[loop] = next(filter(None, texts), "")
        place = self.lines[loop]
        if owner.taped is None and place:
            said = [owner.arena_value(), count, owner.unit.text_constant(place)]
            if not _was_said(b, said):
                b.call(owner.unit.runtime(_AT), said)

    def _extent_of(self, b: Builder, top: Loop, loop: Loop) -> Value:
        """Iterations to make room for. The count of an inner loop is asked for before the loop's own guard, and means
        nothing where that fails: it may have wrapped around, in 32 or in 64 bits."""
        dim = self.dims[top, loop]
        count = self.owner.trip(loop)
        if loop is top or count is None or isinstance(dim, ConstInt):
            return dim
        guards = conditions(self.owner.cfg, self.owner.dom, top, loop) or ()
        return extent(b, count, dim, guards, self.owner.sweep.value)

    def dimension(self, top: Loop, loop: Loop) -> None:
        """Make the number of iterations of `loop` available at the entry of `top` and to the reverse sweep."""
        if (top, loop) in self.dims:
            return
        self.dims[top, loop] = ConstInt(ty.I64, -1)
        preheader = self.owner.sweep.blocks[top.preheader]  # type: ignore[index]

        def emit(b: Builder) -> None:
            flags = ("nuw", "nsw") if loop is top else ()
            self.dims[top, loop] = b.add(self.owner.emit_trip(b, loop), ConstInt(ty.I64, 1), flags)

        if self.owner.constant_trip(loop) is not None:
            emit(Builder(Block()))
            return
        self.ends.setdefault(id(preheader), []).append(emit)
        if not self.owner.recall.rules.computes_trip(loop):
            self._save_outside(("dim", top, loop), ty.I64, top, lambda: self.dims[top, loop])

    def _save_outside(self, key: Hashable, type_: Type, loop: Loop, value: Callable[[], Value]) -> None:
        preheader = self.owner.sweep.blocks[loop.preheader]  # type: ignore[index]
        self.save(key, type_, loop.parent, value, [("end", preheader)])

    @staticmethod
    def _known(value: Value | None) -> Value:
        assert value is not None
        return value

    def _store_flat(self, b: Builder, flat: Flat, value: Value, shift: int = 0, *, entry: bool = False) -> None:
        top = flat.top
        index: Value = ConstInt(ty.I64, 0)
        for loop in flat.chain:
            extra = ConstInt(ty.I64, flat.span if loop is flat.chain[-1] else 0)
            counter = ConstInt(ty.I64, 0) if entry and loop is flat.chain[-1] else self.counter(loop)
            index = b.add(b.mul(index, b.add(self.dims[top, loop], extra)), counter)
        index = b.add(_times(b, index, flat.width), ConstInt(ty.I64, shift))
        assert flat.pointer is not None
        kept = b.cast("zext", value, ty.I8) if flat.type is ty.I1 else value  # LLVM stores vectors of i1 one by one
        b.store(kept, b.gep(kept.type, flat.pointer, index), in_arena(kept.type), self._scope(flat))

    def counter(self, loop: Loop) -> Instruction:
        """The iteration number of a loop in the primal sweep (0 in the first iteration)."""
        return self.counters[loop]

    def load_flat(
        self, b: Builder, flat: Flat, recall: Callable[[Hashable], Value], iteration: Callable[[Loop], Value],
        shift: int = 0,
    ) -> Value:  # fmt: skip
        """Element of the current reverse iteration."""
        top = flat.top
        index: Value = ConstInt(ty.I64, 0)
        for loop in flat.chain:
            extra = ConstInt(ty.I64, flat.span if loop is flat.chain[-1] else 0)
            number = iteration(loop)
            if flat.levels is not None and flat.levels.levels.result is not None and loop is top:
                number = flat.levels.place(b, number, recall(("mask", flat.key)))
            index = b.add(b.mul(index, b.add(self.extent(top, loop, recall), extra)), number)
        index = b.add(_times(b, index, flat.width), ConstInt(ty.I64, shift))
        kept = ty.I8 if flat.type is ty.I1 else flat.type
        value = b.load(kept, b.gep(kept, recall(("array", flat.key)), index), in_arena(kept), self._scope(flat))
        return value if kept is flat.type else b.cast("trunc", value, flat.type)

    def _scope(self, flat: Flat) -> dict[str, str]:
        """The program's own accesses go to rows that steps work on."""
        return {} if flat.levels is not None else tape_scope(self.owner.unit, self.owner.fn, flat)

    def extent(self, top: Loop, loop: Loop, recall: Callable[[Hashable], Value]) -> Value:
        """Iterations of `loop`, in the reverse sweep."""
        constant = self.owner.constant_trip(loop)
        if constant is not None:
            return ConstInt(ty.I64, constant + 1)
        if self.owner.recall.rules.computes_trip(loop):
            return self.owner.recall.extent(loop)
        return recall(("dim", top, loop))

    # -- records ---------------------------------------------------------------------------------------------

    def record_type(self, loop: Loop | None) -> tuple[ty.StructType, list[Slot]]:
        """Type of a record of this level (link first) and its slots.

        Fields are addressed by their offsets: the type may have thousands of fields, and naming it at each access
        would make the text grow with the square of the function.
        """
        slots = [self.slots[key] for key in self.levels.get(loop, [])]
        link: list[Type] = [ty.PTR] if loop is not None else []
        return ty.struct((*link, *(s.type for s in slots))), slots

    def push(self, b: Builder, loop: Loop) -> None:
        """Append the record of the iteration that ends (emitted once everything is known)."""
        kind, slots = self.record_type(loop)
        last = self.slots[("last", loop)]
        record = self.owner.allocate(b, ConstInt(ty.I64, ty.size_of(kind)))
        b.store(b.load(ty.PTR, last.forward), record)
        for slot, offset in zip(slots, ty.field_offsets(kind)[1:], strict=False):
            b.store(b.load(slot.type, slot.forward), b.gep(ty.I8, record, offset), align=in_arena(slot.type))
        b.store(record, last.forward)

    def pop(self, b: Builder, loop: Loop) -> None:
        """Take the last record back into the slots of the reverse sweep."""
        kind, slots = self.record_type(loop)
        last = self.slots[("last", loop)]
        record = b.load(ty.PTR, last.reverse)
        for slot, offset in zip(slots, ty.field_offsets(kind)[1:], strict=False):
            b.store(b.load(slot.type, b.gep(ty.I8, record, offset), in_arena(slot.type)), slot.reverse)
        b.store(b.load(ty.PTR, record), last.reverse)

    def pack(self, b: Builder) -> Value:
        """Record of the outermost level of a split derivative; null when there is nothing to carry."""
        kind, slots = self.record_type(None)
        if not slots:
            return zero(ty.PTR)
        self.owner.uses_arena()
        record = self.owner.allocate(b, ConstInt(ty.I64, ty.size_of(kind)))
        for slot, offset in zip(slots, ty.field_offsets(kind), strict=False):
            b.store(b.load(slot.type, slot.forward), b.gep(ty.I8, record, offset), align=in_arena(slot.type))
        return record

    def unpack(self, b: Builder, record: Value) -> None:
        """Fill the slots of the reverse function from the record."""
        kind, slots = self.record_type(None)
        for slot, offset in zip(slots, ty.field_offsets(kind), strict=False):
            b.store(b.load(slot.type, b.gep(ty.I8, record, offset), in_arena(slot.type)), slot.reverse)


def at_entry(owner: ReverseState, b: Builder, loop: Loop, value: Value) -> Value:
    """A `_simple` value as it is in the first iteration, computed in front of the loop, in the primal sweep."""
    if not isinstance(value, Instruction) or not loop.contains(value.block):
        return owner.sweep.value(value)
    if value.opcode == "phi":
        return owner.sweep.value(owner.entering(value))
    operands = [at_entry(owner, b, loop, o) for o in value.operands]
    return b.insert(Instruction(value.opcode, value.type, operands, flags=value.flags, elem=value.elem))


def _was_said(b: Builder, said: Sequence[Value]) -> bool:
    """Whether the arena was told the same for memory that was asked for just before."""
    end = len(b.block.instructions) if b.at is None else b.at
    calls = (instr for n in range(end - 1, -1, -1) if (instr := b.block.instructions[n]).is_call)
    last = next((call for call in calls if not (call.callee_name or "").startswith(_KEEP_WHAT_WAS_SAID)), None)
    return last is not None and last.callee_name == _AT and all(map(_same, last.args, said))


def _same(a: Value, b: Value) -> bool:
    return a is b or (isinstance(a, ConstInt) and isinstance(b, ConstInt) and a.value == b.value)


def _times(b: Builder, index: Value, width: int) -> Value:
    return index if width == 1 else b.mul(index, ConstInt(ty.I64, width))


def _rank_of_save(level: Loop | None) -> int:
    """Order at a loop exit: the record of an inner loop, what the next loop saves, that loop's record, and so on
    outwards."""
    return -2 * (level.depth if level is not None else 0) - 1


def _store(b: Builder, value: Value, pointer: Value) -> None:
    b.store(value, pointer)


def in_arena(type_: Type) -> int:
    """Alignment of a value in the arena, whose pieces begin at multiples of 16 bytes only."""
    return min(ty.align_of(type_), 16)
