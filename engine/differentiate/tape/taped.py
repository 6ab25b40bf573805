"""A root as two functions, with the tape between them in memory of the caller.

    forward   void f.forward_with_tape(arguments, tape, pointer to its bytes)    the primal; fills the tape
    reverse   void f.reverse_from_tape(arguments only read, shadows, tape)       the reverse sweep

The two may run at different times, in different compiled units, the second one any number of times, and the buffers may
have moved in between. So the tape holds values and no addresses (its arrays are found by their offsets), the reverse
sweep never writes to it, and it reads no memory but the tape, its shadows, and arguments that the function only reads.
Memory of the function's own has its shadow in the reverse sweep alone. What cannot be had in this way is refused.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NoReturn

from irgrad.engine.analyses.memory.objects import has_pointer
from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.differentiate.shadow import persistent_memory
from irgrad.engine.differentiate.shadow.allocations import allocation_bytes
from irgrad.engine.differentiate.shared.refuse import place
from irgrad.engine.differentiate.shared.sweeps import PrimalSweep
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.differentiate.tape.tape_size import Room, RoomWriter
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop

ALIGN = 64
"""Alignment that a tape must have."""


class Untapeable(Unsupported):
    """The tape cannot be the caller's. Nothing is wrong with the derivative in one piece."""

    def __init__(self, because: str, where: str = "") -> None:
        super().__init__("the tape cannot be an array of the caller", where=where, because=because,
                         fix="nothing: the primal runs again in front of each reverse sweep")  # fmt: skip


class Taped:
    """What the two halves of a root do differently from those of a callee."""

    def __init__(self, owner: ReverseState, outputs: frozenset[int]) -> None:
        self.owner = owner
        self.outputs = outputs
        self.rooms: list[tuple[Block, Value]] = []  # where arrays are allocated, and their bytes
        self.hidden: set[Value] = set()  # stand for what one half does not have
        self.shadows: dict[Instruction, Value] = {}  # of the function's own memory, in the reverse sweep
        self.local: list[Instruction] = []
        self.start: Block | None = None
        self.arena: Value | None = None  # of the reverse sweep, for shadows of unknown size
        self.tape: Value | None = None
        self.filled: Value | None = None  # the same in the reverse sweep
        self.bytes: Value | None = None
        self.cotangent: Value | None = None  # of what the function returns

    def refuse(self, because: str, instr: Instruction | None = None) -> NoReturn:
        """Raise Untapeable."""
        raise Untapeable(because, place(self.owner.unit, instr) if instr is not None else "")

    def _absent(self, name: str | None) -> Argument:
        stand_in = Argument(ty.PTR, name, -1)
        self.hidden.add(stand_in)
        return stand_in

    # -- the primal sweep ------------------------------------------------------------------------------------

    def bind_forward(self, sweep: PrimalSweep) -> None:
        """Arguments of the primal sweep: it has no shadows."""
        *primal, self.tape, self.bytes = sweep.target.args
        for i, (old, new) in enumerate(zip(sweep.fn.args, primal, strict=True)):
            new.name = old.name
            sweep.values[old] = new
            if self.owner.abi.shadow[i]:
                sweep.shadows[old] = self._absent(old.name)

    def allocate(self, b: Builder, size: Value) -> Value:
        """An array on the tape."""
        owner = self.owner
        arena = owner.arena
        if arena is None:
            arena = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=ty.array(2, ty.PTR), align=8)
            owner.take_arena(arena)
        self.rooms.append((b.block, size))
        return b.call(owner.unit.runtime("irgrad.tape.carve"), [arena, size])

    def own_memory(self, sweep: PrimalSweep, instr: Instruction) -> None:
        """An alloca or an allocation: as it is, without shadow."""
        block = instr.block
        assert block is not None
        sweep.copy(instr)
        if not sweep.shadowed(instr):
            return
        owner = self.owner
        if persistent_memory.outlives(owner.unit, instr):
            self.refuse("memory with a shadow is kept in a variable", instr)
        if owner.loops.of(block) is not None or owner.exit is None or not owner.dom.dominates(block, owner.exit):
            self.refuse("memory with a shadow is allocated in a loop or on one of several paths", instr)
        sweep.shadows[instr] = self._absent(instr.name)
        self.local.append(instr)

    def check(self, key: Hashable, type_: Type) -> None:
        """Refuse to keep an address."""
        if has_pointer(type_) and not (isinstance(key, tuple) and key[0] == "array"):
            shown = key[1] if isinstance(key, tuple) else key
            self.refuse("an address would have to be kept", shown if isinstance(shown, Instruction) else None)
        if isinstance(key, Instruction) and type_.scalar.is_int and self.owner.unit.pointers.of(key):
            self.refuse("an address would have to be kept, as a number", key)

    def unknown_count(self, loop: Loop) -> NoReturn:
        """Refuse a loop that keeps records."""
        self.refuse("the iterations of a loop cannot be counted before it", loop.header.terminator)

    def nested(self, loop: Loop) -> NoReturn:
        """Refuse an array per iteration of a loop."""
        self.refuse("the iterations of a loop are only known inside of the loop around it", loop.header.terminator)

    def derived_call(self, sweep: PrimalSweep, instr: Instruction) -> None:
        """Refuse a call that keeps a tape of its own (see `chunk_tape.py`)."""
        self.refuse("an address would have to be kept", instr)

    def reverse_of(self, instr: Instruction) -> tuple[Function, frozenset[int]]:
        """The reverse sweep of such a call, and which of its arguments it uses."""
        raise NotImplementedError

    def within(self, b: Builder, distance: Value) -> Value:
        """Where the tape of such a call is."""
        raise NotImplementedError

    def close(self, b: Builder) -> None:
        """The record, and the end of the primal sweep."""
        self.keep_record(b)
        b.ret()

    def keep_record(self, b: Builder) -> None:
        """The record of what is outside of loops, at the start of the tape."""
        storage = self.owner.storage
        kind, slots = storage.record_type(None)
        assert self.tape is not None
        for slot, offset in zip(slots, ty.field_offsets(kind), strict=False):
            value = b.load(slot.type, slot.forward)
            if slot.type.is_ptr:
                ends = [b.cast("ptrtoint", end, ty.I64) for end in (value, self.tape)]
                value = b.sub(ends[0], ends[1], ())
            b.store(value, b.gep(ty.I8, self.tape, offset), align=min(ty.align_of(value.type), 16))

    def entry(self, top: Builder) -> None:
        """Slots that are defined on every path; the rest of the tape as an arena."""
        for slot in self.owner.storage.record_type(None)[1]:
            top.store(zero_of(slot.type), slot.forward)
        arena = self.owner.arena
        if arena is None:
            return
        assert isinstance(arena, Instruction) and self.tape is not None
        top.insert(arena)
        top.store(top.gep(ty.I8, self.tape, self.fixed), arena)
        end = top.gep(ty.I8, self.tape, self.length(top))
        top.store(end, top.gep(ty.I8, arena, 8))

    def length(self, top: Builder) -> Value:
        """The bytes of the tape."""
        assert self.bytes is not None
        return top.load(ty.I64, self.bytes)

    @property
    def fixed(self) -> int:
        """Bytes of the record."""
        kind, slots = self.owner.storage.record_type(None)
        return -(-ty.size_of(kind) // 16) * 16 if slots else 0

    # -- the reverse sweep -----------------------------------------------------------------------------------

    def bind_reverse(self) -> Value:
        """Arguments of the reverse sweep, which has nothing of what the function writes; the tape."""
        owner = self.owner
        *given, tape = owner.target.args
        self.filled = tape
        new = iter(given)
        for i, old in enumerate(owner.fn.args):
            owner.reverse_values[old] = self._absent(old.name) if i in self.outputs else next(new)
            if owner.abi.shadow[i]:
                owner.reverse_shadows[old] = next(new)
        return tape

    def begin(self, block: Block) -> None:
        """Shadows of the function's own memory, from zero, in a block in front of the reverse sweep."""
        owner = self.owner
        self.start = block
        b = owner.emit_in(block)
        owner.recall.new_block()
        memory = owner.unit.memory
        for instr in self.local:
            count = owner.recall.value(instr.operands[0]) if instr.opcode == "alloca" else None
            if count is None:
                made = self._zeroed_room(b, memory.scaled(b, self._allocated(b, instr)))
            elif isinstance(count, ConstInt):
                made = self._on_stack(b, instr, count)
            else:
                made = self._zeroed_room(b, memory.scaled(b, self._extent(b, instr, count)))
            self.shadows[instr] = made

    def _extent(self, b: Builder, instr: Instruction, count: Value) -> Value:
        assert instr.elem is not None
        return b.mul(b.to_i64(count), ConstInt(ty.I64, ty.size_of(instr.elem)))

    def _on_stack(self, b: Builder, instr: Instruction, count: ConstInt) -> Value:
        twin = Instruction("alloca", ty.PTR, [count], elem=instr.elem, align=instr.align)
        size = self.owner.unit.memory.scaled(b, self._extent(b, instr, count))
        lanes.widen_alloca(twin, self.owner.unit.width)
        self.owner.stacks[False].append(twin)
        self._clear(b, twin, size)
        return twin

    def _allocated(self, b: Builder, instr: Instruction) -> Value:
        owner = self.owner
        call = Instruction("call", instr.type, [*(owner.recall.value(a) for a in instr.args), instr.callee],
                           call=instr.call)  # fmt: skip
        sweep, sweep.b = owner.sweep, b
        size = None if "malloc_usable_size" in owner.unit.module.functions else allocation_bytes(sweep, call)
        if size is None:
            self.refuse("the size of an allocation is not known", instr)
        return size

    def _zeroed_room(self, b: Builder, size: Value) -> Value:
        unit = self.owner.unit
        if self.arena is None:
            self.arena = b.call(unit.runtime("irgrad.tape.acquire"), [])
        space = b.add(size, ConstInt(ty.I64, ALIGN), ())
        pointer = b.call(unit.runtime("irgrad.tape.alloc"), [self.arena, space])
        negative = b.binary("sub", ConstInt(ty.I64, 0), b.cast("ptrtoint", pointer, ty.I64))
        aligned = b.gep(ty.I8, pointer, b.binary("and", negative, ConstInt(ty.I64, ALIGN - 1)))
        self._clear(b, aligned, size)
        return aligned

    def _clear(self, b: Builder, pointer: Value, size: Value) -> None:
        self.owner.unit.swept(size)
        ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
        fn = self.owner.unit.declare("llvm.memset.p0.i64", ftype)
        b.call(fn, [pointer, ConstInt(ty.I8, 0), size, ConstInt(ty.I1, 0)])

    def unpack(self, b: Builder, tape: Value) -> None:
        """The slots of the reverse sweep from the record."""
        storage = self.owner.storage
        kind, slots = storage.record_type(None)
        for slot, offset in zip(slots, ty.field_offsets(kind), strict=False):
            read = ty.I64 if slot.type.is_ptr else slot.type
            value = b.load(read, b.gep(ty.I8, tape, offset), min(ty.align_of(read), 16))
            b.store(b.gep(ty.I8, tape, value, flags=()) if slot.type.is_ptr else value, slot.reverse)

    # -- afterwards ------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Neither half uses what it does not have."""
        owner = self.owner
        for fn, what in ((owner.sweep.target, "shadow"), (owner.target, "memory")):
            _drop_unused(fn)
            shadows = set(owner.unit.shadow_globals.values())
            for instr in fn.instructions():
                if any(o in self.hidden for o in instr.operands):
                    self.refuse(f"the {what} of an argument or of local memory is needed where there is none", instr)
                if what == "shadow" and any(o in shadows for o in instr.operands):
                    self.refuse("addresses of variables are kept in memory", instr)

    def chunks(self) -> list[Function]:
        """The functions that fill parts of the tape."""
        return []

    def room(self) -> Room:
        """The bytes of the tape."""
        owner = self.owner
        old = {new: block for block, new in owner.sweep.blocks.items()}
        writer = self.writer()
        for block, size in self.rooms:
            if owner.loops.of(old[block]) is not None:
                self.refuse("an array is kept for each iteration of a loop", old[block].terminator)
            if not writer.add(size, self._conditions(old[block])):
                self.refuse("the iterations of a loop do not follow from integer arguments", old[block].terminator)
        return writer.room(self.fixed)

    def writer(self) -> RoomWriter:
        """For sizes that follow from integers behind arguments that the function only reads."""
        args = self.owner.sweep.target.args[:-2]
        return RoomWriter({new: i for i, new in enumerate(args) if i not in self.outputs})

    def _conditions(self, block: Block) -> list[tuple[Value, bool]]:
        """The branches on the way to a block that runs at most once, and what LLVM knows to be true there."""
        owner = self.owner
        found: list[tuple[Value, bool]] = []
        while True:
            known = [i for i in block.instructions if i.is_call and i.callee_name == "llvm.assume"]
            found += [(owner.sweep.value(i.args[0]), True) for i in known]
            above = owner.dom.idom(block)
            if above is None:
                return found
            end = above.terminator
            if end.opcode == "br" and len(end.operands) == 1 and owner.cfg.preds(block) == [above]:
                found.append((owner.sweep.value(end.operands[0]), end.blocks[0] is block))
            block = above


def _drop_unused(fn: Function) -> None:
    """Remove instructions without effect that nothing uses."""
    uses: dict[Value, int] = {}
    for instr in fn.instructions():
        for operand in instr.operands:
            uses[operand] = uses.get(operand, 0) + 1
    work = [i for i in fn.instructions() if not uses.get(i)]
    dead: set[Instruction] = set()
    while work:
        instr = work.pop()
        effect = (instr.traits.has("writes") and not instr.is_call) or instr.volatile or instr.ordering
        if instr in dead or effect or instr.is_terminator or (instr.is_call and not pure_call(instr)):
            continue
        dead.add(instr)
        for operand in instr.operands:
            uses[operand] -= 1
            if not uses[operand] and isinstance(operand, Instruction):
                work.append(operand)
    for block in fn.blocks:
        block.instructions = [i for i in block.instructions if i not in dead]
