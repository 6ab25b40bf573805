"""What is refused before any derivative is made, because following it would be a guess: each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.kinds import CONFLICT
from irgrad.engine.analyses.objects import may_hold_pointer
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.transforms.refuse import refuse

if TYPE_CHECKING:
    from irgrad.engine.transforms.unit import Unit

_UNWINDING = frozenset("invoke landingpad resume catchswitch catchpad catchret cleanuppad cleanupret".split())


def refuse_undecidable(unit: Unit) -> None:
    """Raise Unsupported for the first instruction that no derivative can follow soundly."""
    for fn in unit.pointers.functions:
        for instr in unit.activity.bit_arithmetic(fn):
            raise refuse(unit, instr, "integer arithmetic on the bits of an active float makes a float again")
        if unit.activity.function(fn):
            _refuse_in(unit, fn)


def _refuse_in(unit: Unit, fn: Function) -> None:
    for instr in fn.instructions():
        if instr.opcode in _UNWINDING:
            raise refuse(
                unit, instr, "an exception that is caught inside of an active function",
                because="the reverse sweep does not run through unwinding edges",
                fix="return an error code, or catch the exception outside of the function that is differentiated",
            )  # fmt: skip
        if instr.opcode in ("load", "store") and _through_unknown(unit, instr):
            raise refuse(
                unit, instr, "an active float moves through a pointer of unknown origin",
                because="its memory is not known, so neither is the memory of its derivatives",
                fix="take the pointer from an argument, a variable or an allocation of the same program",
            )  # fmt: skip
        if instr.opcode in ("load", "store") and unit.mode == "reverse" and _float_or_pointer(unit, instr):
            raise refuse(
                unit, instr, "the bytes that are moved here may be a float or a pointer",
                because="a float's adjoint flows back, a pointer's shadow does not, and only the program knows which",
                fix="keep floats and pointers in members of their own, or use forward mode",
            )  # fmt: skip
        if instr.opcode in ("bitcast", "inttoptr") and _pointer_as_float(unit, instr):
            raise refuse(
                unit, instr, "a pointer travels as a float",
                because="the same bytes of a union hold floats and pointers, and only the program knows which",
                fix="keep floats and pointers in members of their own",
            )  # fmt: skip


def _through_unknown(unit: Unit, instr: Instruction) -> bool:
    value, address = (instr, instr.operands[0]) if instr.opcode == "load" else instr.operands
    return bool(unit.pointers.of(address) & 1) and unit.activity.value(value)


def _float_or_pointer(unit: Unit, instr: Instruction) -> bool:
    """An active integer whose memory holds floats here and pointers there (closures of different shapes in one
    buffer)."""
    value, address = (instr, instr.operands[0]) if instr.opcode == "load" else instr.operands
    if not value.type.scalar.is_int or not unit.activity.value(value):
        return False
    if not any(kind is CONFLICT for _, kind in unit.types.access(address, ty.store_size(value.type))):
        return False
    return not unit.differentiable(value) or unit.activity.pointer(value)


def _pointer_as_float(unit: Unit, cast: Instruction) -> bool:
    source = cast.operands[0]
    if cast.opcode == "inttoptr":
        return isinstance(source, Instruction) and source.opcode == "bitcast" and source.operands[0].type.is_fp
    return cast.type.is_fp and may_hold_pointer(source.type) and bool(unit.pointers.of(source))
