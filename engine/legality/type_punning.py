"""Floats read as floats of another type: halves of a double as singles, a double with part of its bits replaced.

The value read is no differentiable function of the value written, so both are refused where they are active. Taking a
packed pair of singles apart, copying bits, and masks of the sign bit are no puns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.objects import bits_of
from irgrad.engine.differentiate.shared.refuse import BITS, refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import BITWISE, CHOICES, RESIZES, SHIFTS

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.rules.errors import Unsupported

_MOVES = CHOICES | RESIZES | SHIFTS | BITWISE
_FIX = "convert by a cast in the source, or use frexp, ldexp, copysign"


def refuse_puns(unit: Unit) -> None:
    """Raise Unsupported for the first active pun."""
    elements = ["" if name[:1].isdigit() else name for name in unit.request.elements]
    for fn in unit.pointers.functions:
        for problem in _problems(unit, fn, elements):
            raise problem


def _problems(unit: Unit, fn: Function, buffers: Sequence[str]) -> Iterator[Unsupported]:
    used = {o for i in fn.instructions() if i.opcode not in ("phi", "select") for o in i.operands}
    last: tuple[Value, Value] | None = None  # pointer and value of the last store in this block
    for instr in fn.instructions():
        if instr.is_terminator or instr.is_call:
            last = None
        if instr.opcode in ("load", "store"):
            value, pointer = (instr, instr.operands[0]) if instr.opcode == "load" else instr.operands
            if instr.opcode == "store":
                last = (pointer, value)
            elif _partly_stored(last, value, pointer) and unit.activity.value(value):
                what = f"part of the bits of an active `{value.type}` is replaced"
                yield refuse(unit, instr, what, because=BITS, fix=_FIX)
            if value.type.is_fp and unit.activity.pointer(pointer) and unit.activity.value(value):
                other = _declared(unit, pointer, value.type.scalar, buffers)
                if other:
                    what = f"memory of type `{other}` is used as `{value.type}`"
                    yield refuse(unit, instr, what, because=BITS, fix=_FIX)
                elif unit.types.nothing_but_integers(pointer, value.type):
                    what = f"memory that is used as integers is used as `{value.type}`"
                    yield refuse(unit, instr, what, because="whether its bytes are floats decides whether they have a "
                                 "derivative", fix="copy floats as floats, or with memcpy")  # fmt: skip
        elif instr.opcode == "bitcast" and instr.type.is_fp and instr in used and unit.activity.value(instr):
            # one that only meets others in a phi is the optimiser's doing: which of them is used, a tag decides
            source = instr.operands[0]
            if source.type.is_fp:
                if source.type.scalar is not instr.type.scalar:
                    what = f"the bits of an active `{source.type}` are read as `{instr.type}`"
                    yield refuse(unit, instr, what, because=BITS, fix=_FIX)
            else:
                what = _traced(unit, instr)
                if what:
                    yield refuse(unit, instr, what, because=BITS, fix=_FIX)


def _partly_stored(last: tuple[Value, Value] | None, value: Value, pointer: Value) -> bool:
    """Whether a load of floats reads what the store right before it wrote in part only; whole lanes are no part."""
    if last is None or last[0] is not pointer or not value.type.is_fp:
        return False
    size = ty.store_size(last[1].type)
    return size < ty.store_size(value.type) and size % ty.store_size(value.type.scalar) != 0


def _declared(unit: Unit, pointer: Value, scalar: ty.Type, buffers: Sequence[str]) -> str:
    """The float type that the signature gives to the buffer behind a pointer, when it is another one."""
    for bit in bits_of(unit.pointers.of(pointer)):
        obj = unit.pointers.objects[bit]
        if obj.kind == "argument" and isinstance(obj.site, Argument) and obj.site.index < len(buffers):
            name = buffers[obj.site.index]
            if name and name != str(scalar):
                return name
    return ""


def _traced(unit: Unit, cast: Instruction) -> str:
    """What is wrong with an integer that becomes a float, followed back to the floats its bits come from."""
    scalar = cast.type.scalar
    seen: set[Value] = set()
    stack: list[Value] = [cast.operands[0]]
    masked = False
    sources: list[ty.Type] = []
    while stack:
        value = stack.pop()
        if value in seen or not isinstance(value, Instruction):
            continue
        seen.add(value)
        if value.opcode == "bitcast" and value.operands[0].type.is_fp:
            if unit.activity.value(value) and not _loaded(value.operands[0]):
                sources.append(value.operands[0].type.scalar)
        elif value.opcode in _MOVES:
            masked |= value.opcode in BITWISE and any(_cuts(o, scalar) for o in value.operands)
            stack += value.operands[1:] if value.opcode == "select" else value.operands
    if sources and scalar not in sources:  # where several meet, a tag may tell which of them it is
        return f"the bits of an active `{sources[0]}` are read as `{scalar}`"
    if masked and sources and all(source is scalar for source in sources):
        return f"part of the bits of an active `{scalar}` is replaced"
    return ""


def _loaded(value: Value) -> bool:
    """Memory may hold one type now and another later (tagged unions): what a load gave tells nothing by itself."""
    return isinstance(value, Instruction) and value.opcode == "load"


def _cuts(operand: Value, scalar: ty.Type) -> bool:
    """A constant mask that leaves neither whole floats nor all but the sign nor all but last bits."""
    if not isinstance(operand, ConstInt) or not isinstance(operand.type, ty.IntType):
        return False
    width = getattr(scalar, "bits", 64)
    bits = operand.value & ((1 << operand.type.bits) - 1)
    part = (1 << width) - 1
    rest = part ^ ((1 << ty.last_bits(scalar)) - 1)
    for at in range(0, operand.type.bits, width):
        lane = bits >> at & part
        if lane not in (0, part, 1 << (width - 1), part >> 1) and lane & rest not in (0, rest):
            return True
    return False
