"""The primal sweep of reverse mode: the function itself, shadows of pointers, and calls in their augmented form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.call_effects import effect_of
from irgrad.engine.analyses.memory.objects import header_size, resolve
from irgrad.engine.differentiate.custom_rules.ruled import reverse_pair, ruled_site
from irgrad.engine.differentiate.forward.sweep import Sweep
from irgrad.engine.differentiate.layout import lanes, separate_shadows
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.primitives.application import application
from irgrad.engine.differentiate.reverse.early_frees import reads_nothing
from irgrad.engine.differentiate.shadow import persistent_memory, runtime_activity, tagged_words
from irgrad.engine.differentiate.shadow.allocations import allocation_alignment, allocation_bytes
from irgrad.engine.differentiate.shadow.copies import layout_of_copy, only_ends
from irgrad.engine.differentiate.shadow.releases import release_of, stated_free
from irgrad.engine.differentiate.shadow.tagged_words import Either
from irgrad.engine.differentiate.shared.conventions import augmented_type
from irgrad.engine.differentiate.shared.refuse import missing, refuse
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    CallInfo,
    ConstInt,
    ConstUndef,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.runtime.persistent_memory import FREE
from irgrad.engine.runtime.zero_tests import PREFIX

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.rule_sites import Site


_MAY_FAIL = ("malloc", "calloc", "aligned_alloc", "memalign")


class Augment(Sweep):
    """The primal sweep of one function, as part of a `Reverse`."""

    def __init__(self, owner: ReverseState, target: Function) -> None:
        super().__init__(owner.unit, owner.fn, target, tangents=False)
        self.owner = owner
        self.tapes: dict[Instruction, Value] = {}

    @property
    def caller_tape(self) -> bool:
        """Whether the tape is in memory of the caller."""
        return self.owner.caller_tape

    def allocate(self, size: Value) -> Value:
        """Memory of the arena, where the sweep stands."""
        return self.owner.allocate(self.b, size)

    def generate(self, order: list[Block]) -> None:
        """Copy all blocks."""
        if self.owner.taped is not None:
            self.owner.taped.bind_forward(self)
            self.make_blocks(order)
            self.run(order)
            return
        new = iter(self.target.args)
        abi = self.owner.abi
        for i, old in enumerate(self.fn.args):
            primal = next(new)
            primal.name = old.name
            self.values[old] = primal
            if abi.shadow[i]:
                self.shadows[old] = next(new)
        if self.owner.split:
            self.owner.take_arena(next(new))
        elif self.owner.lent:
            self.owner.take_arena(self.values[self.fn.args[-1]])
        self.make_blocks(order)
        self.run(order)

    def ret(self, instr: Instruction) -> None:
        """Left open: `backward` closes the block with the reverse sweep or the return of the augmented function."""

    # -- memory ----------------------------------------------------------------------------------------------

    def alloca(self, instr: Instruction) -> None:
        """Stack memory whose contents or shadow the reverse sweep needs outlives an augmented function or an
        iteration."""
        if self.owner.taped is not None:
            self.owner.taped.own_memory(self, instr)
            return
        lasting = self.owner.split or instr.block is not self.fn.entry
        if not lasting:
            super().alloca(instr)
            return
        assert instr.elem is not None
        size = self.b.mul(self.b.to_i64(self.value(instr.operands[0])), ConstInt(ty.I64, ty.size_of(instr.elem)))
        align = ConstInt(ty.I64, max(instr.align, ty.align_of(instr.elem)))
        self.values[instr] = self._room(size, align)
        if self.shadowed(instr):
            self.shadows[instr] = self._zeroed(size, align)

    def _room(self, size: Value, align: Value) -> Value:
        """Memory of the arena that begins at a multiple of `align`; the arena itself knows multiples of 16."""
        if isinstance(align, ConstInt) and align.value <= 16:
            return self.owner.allocate(self.b, size)
        pointer = self.owner.allocate(self.b, self.b.add(size, align))
        address = self.b.cast("ptrtoint", pointer, ty.I64)
        negative = self.b.binary("sub", ConstInt(ty.I64, 0), address)
        short = self.b.binary("and", negative, self.b.sub(align, ConstInt(ty.I64, 1)))
        return self.b.gep(ty.I8, pointer, short)

    def _zeroed(self, size: Value, align: Value) -> Value:
        """Shadow memory for `size` bytes of the primal's."""
        if self.unit.memory.scale > 1:
            size = self.unit.memory.scaled(self.b, size)
            align = lanes.at_least(self.b, align)
        if self.unit.memory.separate:
            pointer = separate_shadows.join(self.b, ty.PTR, [self._room(size, align) for _ in range(self.unit.width)])
        else:
            pointer = self._room(size, align)
        self.zero_memory(pointer, size)
        return pointer

    # -- calls -----------------------------------------------------------------------------------------------

    def call(self, instr: Instruction) -> None:
        """Copy inactive calls; allocate shadows; postpone frees; call augmented functions."""
        callee = resolve(instr.callee)
        name = callee.name if isinstance(callee, Function) else None
        if name is not None and name.startswith(("llvm.lifetime.", "llvm.stackrestore", "llvm.dbg.")):
            return
        if name == "irgrad.tape.reuse":
            return  # the reverse sweep reads what is in it; the arena is given back when that is through
        if isinstance(callee, Function) and callee.is_declaration:
            effect = effect_of(self.unit.module, instr, callee)
            if effect.allocates:
                self._allocation(instr)
                return
            if effect.frees is not None and self.owner.taped is not None:
                self.copy(instr)  # the reverse sweep reads none of it
                return
            if effect.frees is not None and reads_nothing(self.owner, instr.args[effect.frees]):
                self.copy(instr)
                return
            if effect.frees is not None:
                self._forget(instr.args[effect.frees])
            if effect.frees is not None and stated_free(self.unit, callee):
                self._release_later(instr, callee)
                return
            if effect.frees is not None:
                self._free_later(name, self.value(instr.args[effect.frees]))
                return
            if effect.copy is not None:
                if self.unit.discarded(instr.args[effect.copy[0]]) and instr.type is ty.VOID:
                    return
                self.copy(instr)
                self._copy_pointers(instr, effect.copy)
                return
            if effect.fill is not None:
                if self.unit.discarded(instr.args[effect.fill[0]]) and instr.type is ty.VOID:
                    return
                self.copy(instr)
                self._fill_pointers(instr, effect.fill)
                return
        if name is not None and name.startswith(PREFIX):
            self.values[instr] = ConstInt(ty.I1, 0)
            return
        if not self.activity.call(instr):
            self.copy(instr)
            return
        site = ruled_site(self.unit, instr)
        if site is not None:
            self.ruled_call(instr, site)
            return
        if self.unit.call_targets(instr):
            self.derived_call(instr)
            return
        if application(self.unit, instr) is None:
            raise missing(self.unit, instr)
        self.copy(instr)

    def _allocation(self, instr: Instruction) -> None:
        if self.owner.taped is not None:
            self.owner.taped.own_memory(self, instr)
            return
        new = self.copy(instr)
        if not self.shadowed(instr) and instr.callee_name not in _MAY_FAIL:
            return
        size = allocation_bytes(self, new)
        if size is None:
            raise refuse(self.unit, instr, "the size of this allocation is not known")
        if instr.callee_name in _MAY_FAIL:
            missing = self.b.icmp("eq", new, zero_of(ty.PTR))
            self.b.call(self.unit.runtime("irgrad.tape.need"), [self.owner.arena_value(), missing, size])
        if not self.shadowed(instr):
            return
        align = allocation_alignment(self, instr)
        if persistent_memory.outlives(self.unit, instr):
            self.shadows[instr] = persistent_memory.new(self, instr, self.unit.memory.scaled(self.b, size), align)
        else:
            before = ConstInt(ty.I64, header_size(instr))
            whole = self._zeroed(self.b.add(size, before), align)
            self.shadows[instr] = self.unit.memory.advanced(self.b, whole, before) if before.value else whole

    def _forget(self, memory: Value) -> None:
        if persistent_memory.outlives(self.unit, memory) and self.activity.pointer(memory):
            persistent_memory.forget(self, memory, self.owner.arena_value())

    def _free_later(self, name: str | None, memory: Value) -> None:
        """What a deallocator gets, when the reverse sweep is through."""
        if name == "__cxa_free_exception":  # memory of the C++ runtime
            release = self.unit.declare(name, ty.function(ty.VOID, (ty.PTR,)))
            later = self.unit.runtime("irgrad.tape.release_later")
            self.b.call(later, [self.owner.arena_value(), memory, release])
            return
        if name in FREE:
            persistent_memory.free(self.unit, self.b, memory, self.owner.arena_value())
            return
        arena = name in ("irgrad.tape.finish", "irgrad.tape.finish_later")
        free_later = self.unit.runtime(f"irgrad.tape.{'finish' if arena else 'free'}_later")
        self.b.call(free_later, [self.owner.arena_value(), memory])

    def _release_later(self, instr: Instruction, callee: Function) -> None:
        """A release by a function of the program, with all its arguments, when the reverse sweep is through."""
        place = self.owner.allocate(self.b, ConstInt(ty.I64, 8 * len(instr.args)))
        for i, arg in enumerate(instr.args):
            self.b.store(self.value(arg), self.b.gep(ty.I8, place, 8 * i), align=8)
        later = self.unit.runtime("irgrad.tape.release_later")
        self.b.call(later, [self.owner.arena_value(), place, release_of(self.unit, callee)])
        if instr.type is not ty.VOID:
            self.values[instr] = ConstUndef(instr.type)

    def _copy_pointers(self, instr: Instruction, where: tuple[int, int, int]) -> None:
        """Shadow pointers inside copied memory move in the primal sweep (adjoints of floats move in the reverse
        sweep)."""
        target, source = instr.args[where[0]], instr.args[where[1]]
        if not self.activity.pointer(target):
            return
        if only_ends(self.unit, instr, where):  # its pointers lead to memory without shadow (see `shadows.py`)
            self._fill_pointers(instr, where)
            return
        if instr in self.unit.get(Either).copies:
            tagged_words.copy_shadows(self, instr, where)
            return
        period, fields = layout_of_copy(self.unit, instr, where)
        offsets = [offset for offset, kind in fields if kind is ty.PTR]
        if not offsets:
            return
        size = self.value(instr.args[where[2]])
        for offset in offsets:
            fn = self.unit.runtime(f"irgrad.copy.pointers{self.unit.memory.suffix}")
            extra = self.unit.memory.places(self.b, size, period, offset)
            self._each(fn, [self.shadow(target), self.shadow(source)], extra, target)

    def _fill_pointers(self, instr: Instruction, where: tuple[int, int, int]) -> None:
        target = instr.args[where[0]]
        if not self.activity.pointer(target) or not self.unit.holds_pointers(target):
            return
        if self.unit.pointers.of(target) & self.unit.get(Either).objects:
            self.zero_memory(self.shadow(target), self.b.to_i64(self.value(instr.args[where[2]]), signed=False))
            return
        period, fields = layout_of_copy(self.unit, instr, where)
        self._clear(instr, target, where, period, [offset for offset, kind in fields if kind is ty.PTR])

    def _clear(
        self, instr: Instruction, target: Value, where: tuple[int, int, int], period: int, offsets: list[int]
    ) -> None:
        """Null for the shadow pointers of memory that is overwritten."""
        size = self.value(instr.args[where[2]])
        for offset in offsets:
            fn = self.unit.runtime(f"irgrad.clear.pointers{self.unit.memory.suffix}")
            extra = self.unit.memory.places(self.b, size, period, offset)
            self._each(fn, [self.shadow(target)], extra, target)

    def _each(self, fn: Function, shadows: list[Value], more: list[Value], target: Value) -> None:
        """Call a copy helper, once for each lane that lies apart."""
        for i, row in enumerate(separate_shadows.rows(self.b, shadows, self.unit.width)):
            size = more[0]
            if self.unit.runtime_activity:
                size = runtime_activity.sizes(self.unit, self.b, size, [self.value(target)], shadows[:1])[i][0]
            self.b.call(fn, [*row, size, *more[1:]])

    def ruled_call(self, instr: Instruction, site: Site) -> None:
        """The call, with a record of what its rule wants in the reverse sweep."""
        pair = reverse_pair(self.unit, self.owner.clobber, instr, site)
        if not pair.tape:
            self.copy(instr)
            return
        args: list[Value] = []
        for i, arg in enumerate(instr.args):
            args.append(self.value(arg))
            if pair.takes_shadows and pair.shape.shadow[i]:
                args.append(self.shadow(arg))
        call = self.b.call(pair.augmented, [*args, self.owner.arena_value()])
        if instr.type is not ty.VOID:
            self.values[instr] = self.b.extractvalue(call, 0)
        self.tapes[instr] = self.b.extractvalue(call, len(call.type.fields) - 1)  # type: ignore[attr-defined]

    def derived_call(self, instr: Instruction) -> None:
        """Call the augmented callee; its tape is one more value that the reverse sweep needs. A callee whose two
        sweeps run in the reverse sweep is called as it is."""
        assert instr.call is not None
        if self.owner.plan.combined.runs(instr):
            self.copy(instr)
            return
        if self.owner.taped is not None:
            self.owner.taped.derived_call(self, instr)
            return
        abi = self.unit.call_abi(instr)
        args: list[Value] = []
        for i, arg in enumerate(instr.args):
            args.append(self.value(arg))
            if i < len(abi.shadow) and abi.shadow[i]:
                args.append(self.shadow(arg))
        args.append(self.owner.arena_value())
        ftype = augmented_type(instr.call.fn_type, abi, self.unit.width)
        callee = resolve(instr.callee)
        if isinstance(callee, Function):
            from irgrad.engine.differentiate.shared.derived_functions import split_functions

            entry: Value = split_functions(self.unit, callee)[0]
        else:
            descriptor = separate_shadows.first(self.b, self.shadow(instr.callee), self.unit.width)
            entry = self.b.load(ty.PTR, self.b.gep(ty.PTR, descriptor, 1))
        call = self.b.insert(Instruction("call", ftype.ret, [*args, entry], call=CallInfo(ftype)))
        position = 0
        if instr.type is not ty.VOID:
            self.values[instr] = self.b.extractvalue(call, 0)
            position = 1
        if abi.ret_shadow:
            if self.shadowed(instr):
                self.shadows[instr] = self.b.extractvalue(call, position)
            position += 1
        self.tapes[instr] = self.b.extractvalue(call, position)


__all__ = ["Augment", "Unit", "augmented_type"]
