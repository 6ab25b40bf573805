"""The sweep that copies a function and computes shadows beside it.

With `tangents` it is the whole of forward mode: the shadow of an active float is its tangent, the shadow of a pointer
is the pointer to the tangents. Without, it is the primal half of reverse mode: only pointers have shadows (they point
to adjoints).

The shadow of a value has the type of the value, so pointers, floats, structs of both and vectors need no distinction.
"""

from __future__ import annotations

from collections.abc import Callable

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT
from irgrad.engine.analyses.memory.objects import holds_address
from irgrad.engine.analyses.memory.tbaa import NO_POINTER
from irgrad.engine.differentiate.forward.rounding import error_of_cast, error_of_row
from irgrad.engine.differentiate.layout import separate_shadows
from irgrad.engine.differentiate.layout.leaves import REASSOCIATE, has_float, has_pointer, zero_of
from irgrad.engine.differentiate.primitives.application import application
from irgrad.engine.differentiate.primitives.rows import Application
from irgrad.engine.differentiate.shadow import distances, runtime_activity, tagged_words
from irgrad.engine.differentiate.shadow.carried import BITS, shadow_of_address, shadow_of_bits
from irgrad.engine.differentiate.shadow.tagged_words import Either
from irgrad.engine.differentiate.shared import untold
from irgrad.engine.differentiate.shared.alias_scopes import primal_scope, shadow_scope
from irgrad.engine.differentiate.shared.copying import STRUCTURAL, clean_call, kept_metadata, shadow_metadata
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    MetadataValue,
    Value,
)
from irgrad.engine.ir.types import may_hold_pointer


class Sweep:
    """Copies `fn` into blocks of `target`; `values` maps old to new, `shadows` old values to the shadow of the new."""

    def __init__(self, unit: Unit, fn: Function, target: Function, *, tangents: bool) -> None:
        self.unit = unit
        self.fn = fn
        self.target = target
        self.tangents = tangents
        self.activity = unit.activity
        self.values: dict[Value, Value] = {}
        self.shadows: dict[Value, Value] = {}
        self.blocks: dict[Block, Block] = {}
        self.pending: list[tuple[Instruction, Instruction, bool]] = []
        self.b = Builder(Block())
        self.instruction: Instruction | None = None
        self._free_sums = untold.free_sums(unit, fn)
        self._free_choices = untold.free_choices(fn, self._free_sums) if self._free_sums else {}
        self._handlers: dict[str, Callable[[Instruction], None]] = {
            "load": self.load, "store": self.store, "phi": self.phi, "alloca": self.alloca, "call": self.call,
            "ret": self.ret, "atomicrmw": self.atomic, "fptrunc": self.float_cast, "fpext": self.float_cast,
        }  # fmt: skip

    # -- what has a shadow -----------------------------------------------------------------------------------

    def shadowed(self, value: Value) -> bool:
        """Whether the shadow of `value` exists in this sweep."""
        if self.tangents and self.activity.value(value):
            return True
        return may_hold_pointer(value.type) and self.activity.pointer(value)

    def value(self, value: Value) -> Value:
        """The copy of a value."""
        found = self.values.get(value)
        if found is not None:
            return found
        if isinstance(value, Constant):
            return value
        if isinstance(value, MetadataValue):
            return value
        raise KeyError(f"{value.name} of type {value.type} is not copied yet")

    def shadow(self, value: Value) -> Value:
        """The shadow of a value: zero for inactive floats, null for pointers that have none."""
        found = self.shadows.get(value)
        if found is not None:
            return found
        if isinstance(value, Constant) and (has_pointer(value.type) or holds_address(value)):
            return self.unit.shadow_constant(value)
        return zero_of(self.unit.wide(value.type))

    # -- the walk --------------------------------------------------------------------------------------------

    def make_blocks(self, order: list[Block]) -> None:
        """Empty copies of the blocks, appended to the target."""
        for old in order:
            new = Block(f"p.{old.name}" if old.name else None)
            new.function = self.target
            self.blocks[old] = new
            self.target.blocks.append(new)

    def run(self, order: list[Block]) -> None:
        """Copy the blocks in an order in which definitions come before uses (reverse postorder)."""
        for old in order:
            self.b = Builder(self.blocks[old])
            for instr in old.instructions:
                self.step(instr)
        self.close_phis()

    def step(self, instr: Instruction) -> None:
        """Copy one instruction and compute its shadow."""
        self.instruction = instr
        dbg = instr.metadata.get("dbg")
        self.b.metadata = {"dbg": dbg} if dbg else {}
        handler = self._handlers.get(instr.opcode)
        if handler is not None:
            handler(instr)
        elif instr.opcode in STRUCTURAL:
            self.structural(instr)
        else:
            self.plain(instr)

    def close_phis(self) -> None:
        """Fill the operands of copied phis, whose definitions exist only now."""
        for old, new, is_shadow in self.pending:
            for value in old.operands:
                new.operands.append(self.shadow(value) if is_shadow else self.value(value))
            new.blocks = [self.blocks[b] for b in old.blocks]
        self.pending.clear()

    def copy(self, instr: Instruction) -> Instruction:
        """The same instruction on the copied operands; sums that nobody is told may be reordered."""
        if instr in self._free_choices:
            pred, first, second = self._free_choices[instr]
            left, right = self.value(first), self.value(second)
            chosen = self.b.insert(Instruction("select", instr.type, [self.b.fcmp(pred, left, right), left, right]))
            self.values[instr] = chosen
            return chosen
        flags = tuple(dict.fromkeys((*instr.flags, *REASSOCIATE))) if instr in self._free_sums else instr.flags
        new = Instruction(
            instr.opcode, instr.type, [self.value(o) for o in instr.operands],
            name=instr.name, flags=flags, pred=instr.pred, elem=instr.elem, align=instr.align,
            blocks=[self.blocks[b] for b in instr.blocks], indices=instr.indices, call=clean_call(instr.call),
            volatile=instr.volatile, ordering=instr.ordering, clauses=instr.clauses,
            metadata=kept_metadata(instr) | primal_scope(self.unit, instr),
        )  # fmt: skip
        self.b.insert(new)
        self.values[instr] = new
        return new

    def like(self, instr: Instruction, operands: list[Value]) -> Instruction:
        """The same operation on other operands (used for shadows)."""
        new = Instruction(
            instr.opcode, self.unit.wide(instr.type), operands, flags=instr.flags, pred=instr.pred, elem=instr.elem,
            align=instr.align, indices=instr.indices, metadata=shadow_metadata(instr),
        )  # fmt: skip
        self.b.insert(new)
        return new

    def load_shadow(self, instr: Instruction) -> Value:
        """What shadow memory holds where `instr` loads."""
        self.unit.accessed(instr.type)
        pointer = self.shadow(instr.operands[0])
        tags = (self.unit.get(Either).tags(instr) or shadow_metadata(instr)) | shadow_scope(
            self.unit, instr, instr.type
        )
        found = self.unit.memory.load(self.b, instr.type, pointer, instr.align, tags)
        if self.unit.runtime_activity:
            return runtime_activity.read(self.unit, self.b, instr.type, self.value(instr.operands[0]), pointer, found)
        return found

    def store_shadow(self, instr: Instruction) -> None:
        """Store the shadow of what `instr` stores."""
        value, pointer = instr.operands
        self.unit.refuse_foreign(instr, pointer, value)
        self.unit.accessed(value.type)
        shadow = self.shadow(value)
        if runtime_activity.asked(self.unit, pointer, value):
            shadow = runtime_activity.kept(
                self.unit, self.b, value.type, self.value(pointer), self.shadow(pointer), shadow, self.value(value)
            )
        tags = {} if self.unit.get(Either).cleared(instr) else shadow_metadata(instr)
        tags |= self.unit.get(Either).tags(instr) | shadow_scope(self.unit, instr, value.type)
        self.unit.memory.store(self.b, value.type, shadow, self.shadow(pointer), instr.align, tags)

    # -- handlers --------------------------------------------------------------------------------------------

    def plain(self, instr: Instruction) -> None:
        """Arithmetic, comparisons, control flow: copied; with tangents the row of the opcode applies."""
        self.copy(instr)
        if instr in self.unit.facts.checked:
            distances.look(self, instr)
        if instr.opcode in BITS:
            if self.shadowed(instr):
                shadow_of_bits(self, instr)
        elif self.tangents and instr.type is not ty.VOID and self.activity.value(instr):
            applied = application(self.unit, instr)
            if applied is None:
                raise refuse(self.unit, instr, f"`{instr.opcode}` on an active value has no derivative")
            self.tangent_of_row(instr, applied)

    def structural(self, instr: Instruction) -> None:
        """Linear data movement: the same operation on the shadows."""
        self.copy(instr)
        if not self.shadowed(instr):
            return
        address = shadow_of_address(self, instr) if instr.opcode == "inttoptr" else None
        if address is not None:
            self.shadows[instr] = address
            return
        operands = [self.value(o) for o in instr.operands]
        moved = {"select": (1, 2), "insertvalue": (0, 1), "insertelement": (0, 1), "shufflevector": (0, 1)}
        chosen = moved.get(instr.opcode, (0,))
        for i in chosen:
            operands[i] = self.shadow(instr.operands[i])
        moved_lanes = self.unit.memory.structural(self.b, instr, operands, chosen)
        self.shadows[instr] = moved_lanes if moved_lanes is not None else self.like(instr, operands)

    def float_cast(self, instr: Instruction) -> None:
        """fptrunc, fpext: linear."""
        self.copy(instr)
        if self.shadowed(instr):
            moved = self.like(instr, [self.shadow(instr.operands[0])])
            self.shadows[instr] = error_of_cast(self, instr, moved) if self.unit.request.rounding else moved

    def phi(self, instr: Instruction) -> None:
        """Phi, and a phi of the shadows."""
        new = Instruction("phi", instr.type, [], name=instr.name, flags=instr.flags)
        self._insert_phi(new)
        self.values[instr] = new
        self.pending.append((instr, new, False))
        if self.shadowed(instr):
            twin = Instruction("phi", self.unit.wide(instr.type), [])
            self._insert_phi(twin)
            self.shadows[instr] = twin
            self.pending.append((instr, twin, True))

    def _insert_phi(self, new: Instruction) -> None:
        new.block = self.b.block
        self.b.block.instructions.append(new)

    def load(self, instr: Instruction) -> None:
        """Load, and a load from the shadow memory."""
        self.copy(instr)
        if NO_POINTER in instr.metadata and not self.tangents and self.activity.pointer(instr.operands[0]):
            tagged_words.look(self, instr)
        if self.shadowed(instr):
            self.shadows[instr] = self.load_shadow(instr)

    def store(self, instr: Instruction) -> None:
        """Store, and a store of the shadow."""
        value, pointer = instr.operands
        if not self.unit.discarded(pointer) or has_pointer(value.type):
            self.copy(instr)
        if not self.activity.pointer(pointer):
            return
        if has_pointer(value.type) or self._carries_pointer(value) or (self.tangents and self.stores_float(instr)):
            self.store_shadow(instr)
        elif not self.tangents and self.unit.get(Either).cleared(instr):
            tagged_words.clear(self, instr)
        if not self.tangents:
            tagged_words.check_reused(self.unit, instr)

    def _carries_pointer(self, value: Value) -> bool:
        return value.type.scalar.is_int and self.activity.pointer(value)

    def stores_float(self, instr: Instruction) -> bool:
        """Whether a store writes float bytes (an integer zero stored over floats, or a union with some, counts)."""
        value = instr.operands[0]
        if has_float(value.type) or self.unit.differentiable(value):
            return True
        layout = self.unit.types.ended(instr.operands[1], ty.store_size(value.type))
        return any(isinstance(kind, ty.FloatType) or kind is CONFLICT for _, kind in layout)

    def alloca(self, instr: Instruction) -> None:
        """Stack memory and its zeroed shadow."""
        new = self.copy(instr)
        if self.shadowed(instr):
            twin = self.unit.memory.allocate(self.b, instr, new.operands)
            self.shadows[instr] = twin
            self.zero_memory(twin, self.unit.memory.scaled(self.b, self.alloca_size(new)))

    def alloca_size(self, instr: Instruction) -> Value:
        """Bytes of a copied alloca."""
        assert instr.elem is not None
        from irgrad.engine.ir.model import ConstInt

        return self.b.mul(self.b.to_i64(instr.operands[0]), ConstInt(ty.I64, ty.size_of(instr.elem)))

    def zero_memory(self, pointer: Value, size: Value) -> None:
        """memset(pointer, 0, size), of each lane that lies apart."""
        from irgrad.engine.ir.model import ConstInt

        self.unit.swept(size)
        ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
        fn = self.unit.declare("llvm.memset.p0.i64", ftype)
        for at in separate_shadows.each(self.b, pointer, self.unit.width):
            self.b.call(fn, [at, ConstInt(ty.I8, 0), size, ConstInt(ty.I1, 0)])

    def atomic(self, instr: Instruction) -> None:
        """Atomic read-modify-write; desugared before unless inactive."""
        if self.activity.pointer(instr.operands[0]) and has_float(instr.operands[1].type):
            raise refuse(self.unit, instr, "an atomic operation on an active float was not lowered")
        self.copy(instr)

    def call(self, instr: Instruction) -> None:
        """Calls differ between forward and reverse."""
        raise NotImplementedError

    def ret(self, instr: Instruction) -> None:
        """Returns differ between forward and reverse."""
        raise NotImplementedError

    # -- rows ------------------------------------------------------------------------------------------------

    def tangent_of_row(self, instr: Instruction, applied: Application) -> None:
        """shadow(result) = sum of partial x tangent, over the active operands."""
        if self.unit.request.rounding:
            self.shadows[instr] = error_of_row(self, instr, applied)
            return
        self.shadows[instr] = applied.tangent(
            self.unit, self.b, [self.value(o) for o in applied.operands], self.values[instr],
            [self.shadow(o) if self.activity.value(o) else None for o in applied.operands],
        )  # fmt: skip


def bind_arguments(sweep: Sweep, pairs: list[tuple[Argument, Argument, Argument | None]]) -> None:
    """Map the old arguments to those of the derived function: (old, primal, shadow or None)."""
    for old, primal, shadow in pairs:
        sweep.values[old] = primal
        if shadow is not None:
            sweep.shadows[old] = shadow
