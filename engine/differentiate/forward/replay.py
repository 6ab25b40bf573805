"""Forward mode in split form: the function runs once and keeps a log, the tangent pass follows later, by the log.

The tangent pass runs the function again, beside its tangents. By then the function itself has written over its inputs,
and the program may have written what it likes. So the first run logs, in order, each value that it loads from memory
that the program can reach; the second takes these values from the log in the same order, and stores nothing to such
memory but tangents. Memory of the function's own (its stack, what it allocates and frees) is the same in both runs.

    {ptr} NAME(A a, A a', arena)          runs the function, the log begins at the pointer that comes back
    void NAME.tangent(A a, A a', log)     tangents only
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.forward.forward import Forward
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.differentiate.shared.unit import Unit, open_memory
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, GlobalVariable, Instruction

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.call_effects import Effect
    from irgrad.engine.ir.model import Block, Value

__all__ = ["RESTORED", "RUNTIME", "SAVED", "TANGENT", "Tangents", "plan_of", "record", "refuse_log"]

TANGENT = ".tangent"
"""Ending of the name of the second half."""

_HARMLESS = ("llvm.lifetime.", "llvm.dbg.", "llvm.assume", "llvm.experimental.noalias")


def _step(name: str, following: str) -> str:
    """A function that gives the place of the next bytes of the log, and what it does for a chunk at the end of one."""
    return f"""define internal ptr @irgrad.log.{name}(i64 %size) {{
  %more = add i64 %size, 7
  %bytes = and i64 %more, -8
  %at = load ptr, ptr @irgrad.log.at, align 8
  %end = load ptr, ptr @irgrad.log.end, align 8
  %next = getelementptr i8, ptr %at, i64 %bytes
  %fits = icmp ule ptr %next, %end
  br i1 %fits, label %go, label %grow
grow:
{following}
  call void @irgrad.log.enter(ptr %chunk)
  %first = load ptr, ptr @irgrad.log.at, align 8
  %second = getelementptr i8, ptr %first, i64 %bytes
  br label %go
go:
  %place = phi ptr [ %at, %0 ], [ %first, %grow ]
  %after = phi ptr [ %next, %0 ], [ %second, %grow ]
  store ptr %after, ptr @irgrad.log.at, align 8
  ret ptr %place
}}
"""


RUNTIME = (
    """
; chunk: { end, data..., next } ; `end` is the place of `next`
@irgrad.log.at = internal thread_local global ptr null
@irgrad.log.end = internal thread_local global ptr null
@irgrad.log.arena = internal thread_local global ptr null
declare noalias ptr @irgrad.tape.alloc(ptr, i64)
define internal ptr @irgrad.log.chunk(i64 %size) {
  %large = icmp ugt i64 %size, 65520
  %data = select i1 %large, i64 %size, i64 65520
  %whole = add i64 %data, 16
  %arena = load ptr, ptr @irgrad.log.arena, align 8
  %chunk = call ptr @irgrad.tape.alloc(ptr %arena, i64 %whole)
  %last = add i64 %data, 8
  %end = getelementptr i8, ptr %chunk, i64 %last
  store ptr %end, ptr %chunk, align 8
  ret ptr %chunk
}
define internal void @irgrad.log.enter(ptr %chunk) {
  %end = load ptr, ptr %chunk, align 8
  %data = getelementptr i8, ptr %chunk, i64 8
  store ptr %data, ptr @irgrad.log.at, align 8
  store ptr %end, ptr @irgrad.log.end, align 8
  ret void
}
"""
    + _step("put", "  %chunk = call ptr @irgrad.log.chunk(i64 %bytes)\n  store ptr %chunk, ptr %end, align 8")
    + _step("get", "  %chunk = load ptr, ptr %end, align 8")
)
SAVED = """  %old.at = load ptr, ptr @irgrad.log.at, align 8
  %old.end = load ptr, ptr @irgrad.log.end, align 8
  %old.arena = load ptr, ptr @irgrad.log.arena, align 8
"""
RESTORED = """  store ptr %old.at, ptr @irgrad.log.at, align 8
  store ptr %old.end, ptr @irgrad.log.end, align 8
  store ptr %old.arena, ptr @irgrad.log.arena, align 8
"""


@dataclass(slots=True)
class Plan:
    """What the two runs do differently: loads that are logged; copies into the function's own memory of which the
    bytes are; stores, fills and copies to memory of the program, which are not repeated."""

    loads: set[Instruction] = field(default_factory=set)
    copies: set[Instruction] = field(default_factory=set)
    dropped: set[Instruction] = field(default_factory=set)


def plan_of(unit: Unit) -> Plan:
    """The plan for everything that the root may run. Raises Unsupported for what cannot be run twice."""
    pointers = unit.pointers
    mask = open_memory(unit)
    promised = [unit.root.args[i] for i in unit.request.kept]
    still = [pointers.object_of[arg] for arg in promised if arg in pointers.object_of]
    for obj in still:
        if pointers.writes(unit.root) >> obj.index & 1:
            mask |= 1 << obj.index
    for obj in pointers.objects:  # constants stay what they are
        if isinstance(obj.site, GlobalVariable) and obj.site.constant:
            mask &= ~(1 << obj.index)
    instructions = [i for fn in pointers.functions for i in fn.instructions()]
    written = [(i, w) for i in instructions if (w := _written(unit, i))]
    changed = True
    while changed:  # memory that may be the program's is treated as such
        changed = False
        for _, where in written:
            if where & mask and where & ~mask:
                mask |= where
                changed = True
    plan = Plan(dropped={i for i, where in written if where & mask})
    live = _returning(unit)
    for instr in instructions:
        if instr.block in live:
            _look(unit, plan, instr, mask)
    return plan


def _returning(unit: Unit) -> set[Block]:
    """The blocks that a run which returns may go through: a path that ends the program never has a second run."""
    found: set[Block] = set()
    work, seen = [unit.root], {unit.root}
    while work:
        fn = work.pop()
        before: dict[Block, list[Block]] = {}
        for block in fn.blocks:
            for after in block.terminator.blocks:
                before.setdefault(after, []).append(block)
        own = [block for block in fn.blocks if block.terminator.opcode == "ret"]
        while own:
            block = own.pop()
            if block not in found:
                found.add(block)
                own += before.get(block, [])
        for instr in (i for block in fn.blocks if block in found for i in block.instructions if i.is_call):
            fresh = [target for target in unit.pointers.callees(instr) or () if target.blocks and target not in seen]
            seen.update(fresh)
            work += fresh
    return found


def _written(unit: Unit, instr: Instruction) -> int:
    """The memory that a store, a fill or a copy writes."""
    if instr.opcode == "store":
        return unit.pointers.of(instr.operands[1])
    effect = unit.pointers.effect(instr) if instr.is_call else None
    where = effect and (effect.copy or effect.fill)
    return unit.pointers.of(instr.args[where[0]]) if where else 0


def _look(unit: Unit, plan: Plan, instr: Instruction, mask: int) -> None:
    if instr.opcode == "load":
        if unit.pointers.of(instr.operands[0]) & mask:
            plan.loads.add(instr)
    elif instr.traits.has("updates"):
        raise refuse(unit, instr, f"`{instr.opcode}` in a function whose tangent pass runs by itself",
                     because="it reads and writes memory at once, so it cannot be run again",
                     fix="__enzyme_fwddiff, which computes values and tangents together")  # fmt: skip
    elif instr.is_call:
        _look_at_call(unit, plan, instr, mask)


def _look_at_call(unit: Unit, plan: Plan, instr: Instruction, mask: int) -> None:
    pointers = unit.pointers
    name, effect = instr.callee_name or "", pointers.effect(instr)
    targets = pointers.callees(instr)
    if targets is None or not isinstance(instr.callee, Function):
        because = "which function it calls is known from memory that is not the same when the tangent pass runs"
        raise _twice(unit, instr, because)
    if name.startswith(_HARMLESS) or effect is None:
        return
    if effect.copy is not None and instr not in plan.dropped and pointers.of(instr.args[effect.copy[1]]) & mask:
        plan.copies.add(instr)
    if effect.copy or effect.fill or effect.nothing:
        return
    if effect.allocates and not effect.inactive:
        if pointers.of(instr) & mask:
            raise _twice(unit, instr, "the memory that it allocates outlives the function")
        return
    if effect.frees is not None and not pointers.of(instr.args[effect.frees]) & mask:
        return
    if not effect.inactive and effect.reads is not None and effect.writes is not None:
        touched = [instr.args[i] for i in effect.reads | effect.writes]
        if not any(pointers.of(value) & mask for value in touched):
            return
    raise _twice(unit, instr, "it does something that the program sees, or reads what may have been written over")


def refuse_log(unit: Unit, plan: Plan) -> None:
    """Raises Unsupported where the tangent pass needs what only a log has."""
    logged = plan.loads | plan.copies
    first = next((i for fn in unit.pointers.functions for i in fn.instructions() if i in logged), None)
    if first is not None:
        raise refuse(unit, first, "the tangent pass is given no tape, and needs one",
                     because="the function writes over memory that it reads here, or reads a variable",
                     fix="void *tape = __enzyme_augmentfwd(...) in place of running the function, and pass it on")


def _twice(unit: Unit, instr: Instruction, because: str) -> Exception:
    return refuse(unit, instr, "a call that the tangent pass cannot run again", because=because,
                  fix="__enzyme_fwddiff, which computes values and tangents together")  # fmt: skip


class Tangents(Forward):
    """The second run."""

    def __init__(self, unit: Unit, fn: Function, target: Function, abi: Abi, plan: Plan) -> None:
        super().__init__(unit, fn, target, abi)
        self.plan = plan

    def load(self, instr: Instruction) -> None:
        """The value from the log, its tangent from memory."""
        if instr not in self.plan.loads:
            super().load(instr)
            return
        self.values[instr] = self.b.load(instr.type, self._get(ConstInt(ty.I64, ty.size_of(instr.type))), 8)
        if self.shadowed(instr):
            self.shadows[instr] = self.load_shadow(instr)

    def store(self, instr: Instruction) -> None:
        """The tangent only, where the program can see it."""
        super().store(instr)
        self._drop(instr)

    def memory_call(self, instr: Instruction, effect: Effect) -> None:
        """Likewise; what is copied from the program's memory comes from the log."""
        super().memory_call(instr, effect)
        self._drop(instr)
        if instr in self.plan.copies:
            assert effect.copy is not None
            target, _, size = (self.value(instr.args[i]) for i in effect.copy)
            self._take_out(instr)
            length = self.b.to_i64(size)
            self.b.call(_memcpy(self.unit), [target, self._get(length), length, ConstInt(ty.I1, 0)])

    def call(self, instr: Instruction) -> None:
        """Functions without tangents have a second run of their own too."""
        if self.unit.call_targets(instr) and not self.activity.call(instr):
            self.derived_call(instr)
        else:
            super().call(instr)

    def _get(self, size: Value) -> Value:
        return self.b.call(self.unit.module.functions["irgrad.log.get"], [size])

    def _drop(self, instr: Instruction) -> None:
        if instr in self.plan.dropped:
            self._take_out(instr)

    def _take_out(self, instr: Instruction) -> None:
        """Remove the copy of an instruction that gives no value."""
        new = self.values.get(instr)
        if isinstance(new, Instruction) and new.block is not None:
            new.block.instructions.remove(new)


def _memcpy(unit: Unit) -> Function:
    return unit.declare("llvm.memcpy.p0.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1)))


def record(unit: Unit, plan: Plan) -> None:
    """Turn the functions of the unit into the first run."""
    put = unit.module.functions["irgrad.log.put"]
    for fn in unit.pointers.functions:
        fn.tail = "nounwind"  # what is said there about memory holds no longer
        for arg in fn.args:
            arg.attrs = "" if fn is unit.root else arg.attrs
        for block in fn.blocks:
            old, block.instructions = block.instructions, []
            b = Builder(block)
            for instr in old:
                block.instructions.append(instr)
                if instr.is_call and instr.call is not None and unit.call_targets(instr):
                    instr.call.fn_attrs = ""
                if instr in plan.loads:
                    b.store(instr, b.call(put, [ConstInt(ty.I64, ty.size_of(instr.type))]), 8)
                elif instr in plan.copies:
                    effect = unit.pointers.effect(instr)
                    assert effect is not None and effect.copy is not None
                    target, _, size = (instr.args[i] for i in effect.copy)
                    count = b.to_i64(size)
                    b.call(_memcpy(unit), [b.call(put, [count]), target, count, ConstInt(ty.I1, 0)])
