"""What is refused before any derivative code is made: programs in which derivatives flow where no sweep can follow.

A silent zero is the worst answer. Each of these would be one: exceptions and long jumps (control flow that no sweep
runs backwards), floats handed on through `...`, integer arithmetic on the bits of active floats.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from irgrad.engine.analyses.activity.bits import Bits
from irgrad.engine.analyses.memory.byte_kinds import Layout, kind_size
from irgrad.engine.analyses.memory.call_effects import attribute_text
from irgrad.engine.differentiate.shared.refuse import refuse, refuse_bits
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.opcodes import OPCODES, of_kind
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

_LANES = of_kind("vector")
_JUMPS = frozenset("setjmp _setjmp __sigsetjmp sigsetjmp".split())


def screen(unit: Unit) -> None:
    """Raise Unsupported, naming instruction and source line, for the first thing that cannot be followed."""
    for instr, what in Bits(unit.activity).found:
        raise refuse_bits(unit, instr, what)
    for fn in unit.pointers.functions:
        active = unit.activity.function(fn)
        for instr in fn.instructions():
            problem = _variadic(unit, instr) or (
                active and (_control(unit, instr) or _kept(unit, instr) or _parts(unit, instr))
            )
            if problem:
                raise problem


def _control(unit: Unit, instr: Instruction) -> Unsupported | None:
    row = OPCODES[instr.opcode]
    if row.treatment == "refused" and row.kind in ("terminator", "exception"):
        return refuse(
            unit,
            instr,
            f"`{instr.opcode}` in code to be differentiated",
            because="the reverse of an exception or a computed jump is not known",
            fix="return an error code instead of throwing, or move the `try` out of the function",
        )
    callee = instr.callee if instr.is_call else None
    if isinstance(callee, Function) and (
        callee.name in _JUMPS or "returns_twice" in attribute_text(unit.module, callee.tail)
    ):
        return refuse(
            unit,
            instr,
            f"`{callee.name}` in code to be differentiated",
            because="a derivative cannot follow a long jump",
            fix="return an error code instead",
        )
    return None


def _kept(unit: Unit, instr: Instruction) -> Unsupported | None:
    """A pointer into memory with a shadow that a library function stores: it stores none of the shadow's."""
    effect = unit.pointers.effect(instr) if instr.is_call else None
    if effect is None or effect.keeps is None:
        return None
    place, kept = (unit.pointers.of(instr.args[i]) for i in effect.keeps)
    if not kept & unit.activity.shadowed_mask or not any(
        place >> obj.index & 1 and unit.activity.holds_pointers(obj) for obj in unit.pointers.objects
    ):
        return None
    return refuse(
        unit,
        instr,
        f"`{instr.callee_name or 'a function'}` stores a pointer into memory that holds active floats too",
        because="the pointer's shadow would not be stored with it",
        fix="keep the text in memory of its own",
    )


def _variadic(unit: Unit, instr: Instruction) -> Unsupported | None:
    """Active values among the `...` of a function that is to be differentiated."""
    if not instr.is_call or instr.call is None or not instr.call.fn_type.vararg:
        return None
    extra = instr.args[len(instr.call.fn_type.params) :]
    active = unit.activity
    given = [a for a in extra if active.varied(a) or any(active.varied_object(o) for o in active.flow.objects(a))]
    if not given or not any(_matters(unit, instr, fn) for fn in unit.call_targets(instr)):
        return None
    return refuse(
        unit,
        instr,
        "an active value is passed through `...`",
        because=f"{unit.activity.why(given[0])}, and variable arguments have no place for its derivative",
        fix="give the callee a fixed prototype, or pass an array and its length",
    )


def _matters(unit: Unit, call: Instruction, fn: Function) -> bool:
    """Whether what `fn` returns or writes, or what it calls writes, reaches an output. Only instructions of the program
    count: what a library function prints its arguments into holds no floats."""
    if unit.activity.useful(call):
        return True
    work, seen = [fn], {fn}
    for callee in work:  # grows while it runs
        for instr in callee.instructions():
            for pointer in _written(unit, instr):
                if any(map(unit.activity.useful_object, unit.activity.flow.objects(pointer))):
                    return True
            targets = unit.call_targets(instr) if instr.is_call else []
            work += [target for target in targets if target not in seen]
            seen |= set(targets)
    return False


def _written(unit: Unit, instr: Instruction) -> list[Value]:
    """The pointers that an instruction may write through."""
    row = instr.traits
    if row.address >= 0 and row.has("writes"):
        return [instr.operands[row.address]]
    effect = unit.pointers.effect(instr) if instr.is_call else None
    if effect is None or effect.inactive or effect.nothing or effect.fill is not None:
        return []
    if effect.copy is not None:
        return [instr.args[effect.copy[0]]]
    written = range(len(instr.args)) if effect.writes is None else effect.writes
    return [instr.args[i] for i in written if instr.args[i].type.scalar.is_ptr]


def _parts(unit: Unit, instr: Instruction) -> Unsupported | None:
    """Floats read as floats of another size, and integers that would be two different floats at once."""
    if not unit.activity.value(instr):
        return None
    wrong = False
    if instr.opcode == "bitcast":
        source = instr.operands[0].type.scalar
        wrong = source.is_fp and instr.type.scalar.is_fp and source is not instr.type.scalar
    elif instr.type.scalar.is_int:
        layout = unit.types.carries(instr)
        wrong = isinstance(layout, tuple) and _overlap(layout)
        if instr.opcode in _LANES and _cut(unit, instr):
            return refuse(
                unit,
                instr,
                "an active float is taken apart in a vector of integers",
                because=unit.activity.why(instr),
                fix="move whole floats, or keep the bytes out of what depends on the active arguments",
            )
    return refuse(unit, instr, "the bits of an active float are read as something else") if wrong else None


def _cut(unit: Unit, instr: Instruction) -> bool:
    """Lanes of integers that are put together, or taken out, may be shorter than the floats they carry."""
    kinds = unit.types.carriers.floats(instr) | unit.types.carriers.floats(instr.operands[0])
    vector = instr if instr.type.is_vector else instr.operands[0]
    return ty.store_size(vector.type.scalar) < max(map(ty.store_size, kinds), default=8)


def _overlap(layout: Layout) -> bool:
    return any(at + kind_size(kind) > after for (at, kind), (after, _) in pairwise(layout))


__all__ = ["screen"]
