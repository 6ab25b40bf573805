"""Memory that a program keeps from call to call in its variables has a shadow that lives as long.

    static double *work; static long room;
    if (room < n) { free(work); work = malloc(n * sizeof *work); room = n; }

A later call finds the memory that an earlier one has allocated, and its shadow behind the shadow of the variable. So
such shadows come from a list of their own (`runtime/persistent_memory.ll`), neither from the tape nor from what one
call frees; where each call writes the variable before it reads it, nobody finds that memory again. What the memory
holds when a call begins depends on no argument of this call: as for variables, the derivatives in it start from zero.
Where the call is differentiated again, so is the list: its blocks have shadows there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.activity.activity import objects_of
from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, Layout
from irgrad.engine.analyses.memory.carried_over import carried_over
from irgrad.engine.analyses.memory.objects import FOUND, TABLE, Object
from irgrad.engine.analyses.types.records import Pattern
from irgrad.engine.differentiate.layout import lanes, separate_shadows
from irgrad.engine.differentiate.shadow.copies import layout_of_copy
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.differentiate.shared.sweeps import AdjointSweep, PrimalCopy
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstAggregate, ConstInt, ConstZero, GlobalVariable, Instruction, Value, is_zero
from irgrad.engine.runtime.persistent_memory import BESIDE, CLEAR, FREE, NEW, PREFIX, SHADOW, TYPES

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = [
    "clear", "clear_floats", "forget", "free", "kept_objects", "lasts", "new",
    "outlives",
]  # fmt: skip

_ONCE = 1 << 40
"""The period of what does not repeat."""


def kept_objects(unit: Unit) -> int:
    """Allocations that a variable may lead to when a call begins, and what is freed by the same code as those."""
    pointers, variables = unit.pointers, unit.get(_variables)
    heap = sum(1 << o.index for o in pointers.objects if o.kind == "heap")
    sites = ((o, o.site) for o in pointers.objects if isinstance(o.site, Instruction))
    own = sum(1 << o.index for o, site in sites if site.callee_name in (NEW, BESIDE))
    kept = (pointers.reachable(variables) & heap if variables else 0) | own
    freed = [pointers.of(call.args[effect.frees]) & heap for call, effect in pointers.effects.items()
             if effect.frees is not None and effect.frees < len(call.args)]  # fmt: skip
    before = -1
    while kept and before != kept:
        before = kept
        for mask in freed:
            kept |= mask if mask & kept else 0
    return kept


def _variables(unit: Unit) -> int:
    return carried_over(unit.pointers, unit.types.ranges.places)


def lasts(unit: Unit, memory: Value) -> bool:
    """Whether a pointer may lead to such memory, or to a variable: a later call reads the shadow pointers there."""
    return bool(unit.pointers.of(memory) & (unit.get(kept_objects) | unit.get(_variables)))


def outlives(unit: Unit, memory: Value) -> bool:
    """Whether a pointer may lead to such memory."""
    return bool(unit.pointers.of(memory) & unit.get(kept_objects))


def new(sweep: PrimalCopy, instr: Instruction, size: Value, align: Value) -> Value:
    """The shadow of an allocation that may outlive the call; `size`: its bytes, for all lanes."""
    unit, b = sweep.unit, sweep.b
    owner: Value = ConstZero(ty.PTR)
    fields: Value = ConstZero(ty.PTR)
    if instr.callee_name == FOUND and is_zero(instr.args[1]) and unit.activity.object(unit.pointers.object_of[instr]):
        raise refuse(
            unit, instr, "an active float moves through a pointer of unknown origin",
            because="its memory is not known, so neither is the memory of its derivatives",
            fix="take the pointer from an argument, a variable or an allocation of the same program",
        )  # fmt: skip
    floats = [o for o in objects_of(unit.pointers, unit.pointers.of(instr)) if unit.activity.object(o)]
    if floats:
        owner = _tag(unit, instr)
        fields = _fields(unit, instr, floats) if any(unit.activity.holds_pointers(o) for o in floats) else fields
    align = lanes.at_least(b, align) if unit.memory.scale > 1 and not unit.memory.separate else align
    made = [_made(sweep, instr, [owner, fields, size, align], lane)
            for lane in range(unit.width if unit.memory.separate else 1)]  # fmt: skip
    return separate_shadows.join(b, ty.PTR, made) if unit.memory.separate else made[0]


def _made(sweep: PrimalCopy, instr: Instruction, args: list[Value], lane: int) -> Value:
    """A new block, or the one beside an allocation that was there before the call."""
    unit, b = sweep.unit, sweep.b
    own, number = sweep.value(instr), ConstInt(ty.I64, lane)
    if instr.callee_name in (FOUND, TABLE, BESIDE):
        beside = unit.declare(BESIDE, TYPES[BESIDE], "nounwind")
        return b.call(beside, [_tag(unit, instr), args[0], args[1], own, args[2], args[3], number])
    made = b.call(unit.declare(NEW, TYPES[NEW], "nounwind", "noalias"), args)
    if FOUND in unit.module.functions:
        b.call(unit.declare(SHADOW, TYPES[SHADOW], "nounwind"), [made, _tag(unit, instr), own, number])
    return made


def _fields(unit: Unit, call: Instruction, objects: list[Object]) -> GlobalVariable:
    """Where the floats lie among the pointers: a constant for `irgrad.kept.clear`."""
    layouts = {_period_and_fields(unit.types.object_layout(obj)) for obj in objects}
    period, fields = layouts.pop()
    if layouts or not fields or any(kind is CONFLICT for _, kind in fields):
        raise refuse(
            unit, call, "memory with pointers beside active floats is kept in a variable",
            because="a later call would find in it the derivatives of an earlier one, and which bytes are floats is "
                    "not known",
            fix="keep the pointers and the floats in different memory, or allocate it in each call",
        )  # fmt: skip
    scale = unit.memory.scale
    floats = [(at * scale, ty.size_of(kind) * scale) for at, kind in fields if isinstance(kind, ty.FloatType)]
    numbers = [period * scale, len(floats), *(n for field in floats for n in field)]
    name = f"{PREFIX}fields.{'.'.join(map(str, numbers))}"
    body = ty.array(len(numbers), ty.I64)
    init = ConstAggregate(body, [ConstInt(ty.I64, n) for n in numbers])
    variables = unit.module.globals
    found = variables.setdefault(name, GlobalVariable(name, body, init, True, "internal"))
    assert isinstance(found, GlobalVariable)
    return found


def _period_and_fields(layout: Pattern | Layout) -> tuple[int, Layout]:
    return (layout.period, layout.fields) if isinstance(layout, Pattern) else (_ONCE, layout)


def forget(sweep: PrimalCopy, memory: Value, arena: Value | None) -> None:
    """Free the shadow of what a pointer leads to: now, or with an arena."""
    for at in separate_shadows.each(sweep.b, sweep.shadow(memory), sweep.unit.width):
        free(sweep.unit, sweep.b, at, arena)


def free(unit: Unit, b: Builder, memory: Value, arena: Value | None) -> None:
    """Free such memory: now, or with an arena."""
    name = FREE[arena is not None]
    b.call(unit.declare(name, TYPES[name], "nounwind"), [memory] if arena is None else [arena, memory])


def clear(unit: Unit, b: Builder, again: Instruction | None = None) -> None:
    """The derivatives in kept memory start from zero. `again`: the call that says so of what is differentiated."""
    if unit.get(kept_objects):
        b.call(unit.declare(CLEAR, TYPES[CLEAR], "nounwind"), [_tag(unit, again)])


def clear_floats(r: AdjointSweep, fill: Instruction, where: tuple[int, int, int], length: Value) -> None:
    """The reverse of a memset: the adjoints of what it overwrites are cleared, and shadow pointers stay."""
    unit, b, target = r.unit, r.b, fill.args[where[0]]
    period, fields = layout_of_copy(unit, fill, where)
    length = b.to_i64(length, signed=False)
    for offset, kind in fields:
        if isinstance(kind, ty.FloatType):
            for name, extra in unit.memory.helpers(b, kind, length, period, offset):
                for at in separate_shadows.each(b, r.recall.shadow(target), unit.width):
                    b.call(unit.runtime(f"irgrad.adjoint.clear.{name}"), [at, *extra])


def _tag(unit: Unit, call: Instruction | None) -> GlobalVariable:
    """What tells this derivative's blocks from those of others, and the shadows of their blocks from its own."""
    name = (call.callee_name or "") if call is not None else ""
    own = call.args[0] if call is not None and (name.startswith(PREFIX) or name == BESIDE) else None
    name = f"{own.name}." if isinstance(own, GlobalVariable) else f"{PREFIX}of.{unit.root.name}."
    name += f"{'jvp' if unit.mode == 'forward' else 'vjp'}{unit.width}"
    variables = unit.module.globals
    if name not in variables:
        variables[name] = GlobalVariable(name, ty.I8, ConstInt(ty.I8, 0), True, "internal")
    found = variables[name]
    assert isinstance(found, GlobalVariable)
    return found
