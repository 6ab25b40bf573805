"""Rounding errors in place of tangents: each shadow bounds the relative error of its value, to first order.

    z = f(x, y)      e_z = ( |e_x x df/dx| + |e_y y df/dy| ) / |z|  +  u

u is the unit roundoff of z's type, 2^-53 for a double. Of a value that is zero the shadow bounds the absolute error.
Data movement moves errors; what does not depend on an active argument counts as exact.

Source of the method: the standard model of floating-point arithmetic (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, sections 2.2 and 3.1), propagated by the partial derivatives of the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.differentiate.primitives.emit import Emitter
from irgrad.engine.differentiate.primitives.rows import Application
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.sweeps import PrimalCopy

__all__ = ["error_of_cast", "error_of_row"]

_EXACT = frozenset("fneg fabs copysign fmin fmax minnum maxnum minimum maximum minimumnum maximumnum".split())
"""Results that are one of the operands, but for its sign."""
_DIGITS = {"half": 11, "bfloat": 8, "float": 24, "double": 53, "x86_fp80": 64, "fp128": 113}
"""Binary digits of a significand."""


def error_of_row(sweep: PrimalCopy, instr: Instruction, applied: Application) -> Value:
    """The relative error of the result of an operation."""
    unit, b = sweep.unit, sweep.b
    if applied.row.outputs != ("ret",) or not applied.type.is_fp:
        raise refuse(unit, instr, "the rounding error of an operation with several results is not estimated",
                     fix="compute them one by one")
    emitter = Emitter(unit, b, applied.type)
    operands = [sweep.value(o) for o in applied.operands]
    total: Value | None = None
    for i, operand in enumerate(applied.operands):
        if not unit.activity.value(operand):
            continue
        moved = _alone(sweep, applied, operands, i)
        part = emitter.op("fabs", moved)
        total = part if total is None else emitter.op("add", total, part)
    own = emitter.const(0.0 if _exact(instr) else _roundoff(applied.type))
    if total is None:
        return own
    size = emitter.op("fabs", sweep.values[instr])
    relative = emitter.op("add", emitter.op("div", total, size), own)
    return emitter.where(emitter.cmp("eq", size, emitter.const(0.0)), total, relative)


def _alone(sweep: PrimalCopy, applied: Application, operands: list[Value], at: int) -> Value:
    """How far the error of one operand moves the result."""
    b, shadow, value = sweep.b, sweep.shadow(applied.operands[at]), operands[at]
    emitter = Emitter(sweep.unit, b, value.type)
    alone: list[Value | None] = [None] * len(operands)
    absolute = emitter.op("mul", shadow, value)
    alone[at] = emitter.where(emitter.cmp("eq", value, emitter.const(0.0)), shadow, absolute)
    return applied.tangent(sweep.unit, b, operands, sweep.values[applied.instr], alone)


def error_of_cast(sweep: PrimalCopy, instr: Instruction, moved: Value) -> Value:
    """The relative error of a value in a wider or a narrower type, of which `moved` is that of the operand."""
    if instr.opcode != "fptrunc":
        return moved
    emitter = Emitter(sweep.unit, sweep.b, instr.type)
    return emitter.op("add", moved, emitter.const(_roundoff(instr.type)))


def _exact(instr: Instruction) -> bool:
    name = (instr.callee_name or "") if instr.is_call else instr.opcode
    plain = name.removeprefix("llvm.").partition(".")[0]
    return plain in _EXACT or (plain[-1:] in ("f", "l") and plain[:-1] in _EXACT)


def _roundoff(type_: ty.Type) -> float:
    return float(0.5 ** _DIGITS[str(type_.scalar)])
