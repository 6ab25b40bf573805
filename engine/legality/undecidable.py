"""What is refused before any derivative is made, because following it would be a guess: each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import ACCESS, CONFLICT, PTR
from irgrad.engine.analyses.memory.objects import function_of, reads_bits_of_address, resolve, start_of
from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.differentiate.shadow.tagged_words import Either, refuse_word
from irgrad.engine.differentiate.shared.refuse import refuse, refuse_bits
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstExpr, Function, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, COMPARED_OR_ROUNDED, having, of_kind
from irgrad.engine.ir.types import may_hold_pointer
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.reinterpret.mixed import lanes_read

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

_MOST_STEPS = 64
_Held = tuple[Instruction | Argument, tuple[int, ...]]
"""A value that holds a float, in a struct at some place."""
_MOVES = (having("moves_bits") | having("combines_bits")) - of_kind("aggregate")
_UNWINDING = having("unwinds")
_COMPUTES = having("float_arithmetic") | having("about_numbers") | COMPARED_OR_ROUNDED


def refuse_undecidable(unit: Unit) -> None:
    """Raise Unsupported for the first instruction that no derivative can follow soundly."""
    vectors, tbaa = _filled_by_vectors(unit), Tbaa(unit.module)
    for fn in unit.pointers.functions:
        for instr in unit.activity.bit_arithmetic(fn):
            raise refuse_bits(unit, instr, "integer arithmetic on the bits of an active float makes a float again")
        for instr in fn.instructions():
            if instr.opcode == "inttoptr" and unit.pointers.of(instr) & 1 and _of_float_bits(instr.operands[0]):
                raise refuse_word(unit, instr)
            useful = instr.opcode == "bitcast" and instr.type.is_fp and unit.activity.useful(instr)
            if useful and _of_address(instr) and not (_bits_of_address(unit, instr) or _followed(unit, instr)):
                raise refuse_word(unit, instr)
        if unit.activity.function(fn):
            _refuse_in(unit, fn, vectors, tbaa)


def _refuse_in(unit: Unit, fn: Function, vectors: int, tbaa: Tbaa) -> None:
    users = uses_of(fn.blocks)
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
                fix=_known_memory(instr.operands[instr.opcode == "store"]),
            )  # fmt: skip
        if instr.opcode in ("load", "store") and unit.mode == "reverse" and _float_or_pointer(unit, instr):
            raise refuse_word(unit, instr, forward=True)
        if instr.opcode == "bitcast" and _pointer_as_float(unit, instr, users):
            raise refuse_word(unit, instr)
        if instr.opcode == "load" and _lost(unit, instr, vectors):
            raise refuse_word(unit, instr)
        if instr.opcode == "load" and instr.type.is_vector and instr.type.is_fp and not _said_float(instr, tbaa):
            places = _pointers_in(unit, instr)
            read = lanes_read(instr, users) if places else set()
            if places and (read is None or not read.isdisjoint(places)):
                raise refuse_word(unit, instr)


def _through_unknown(unit: Unit, instr: Instruction) -> bool:
    value, address = (instr, instr.operands[0]) if instr.opcode == "load" else instr.operands
    return bool(unit.pointers.of(address) & 1) and unit.activity.value(value)


def _known_memory(address: Value) -> str:
    """The way out where the memory behind an address is not known; names the variable that it was read from."""
    work: list[tuple[Value, bool]] = [(address, False)]
    for value, read in work:  # grows while it runs
        if isinstance(value, GlobalVariable) and read:
            return (f"hand over the memory that `{value.name}` leads to as an argument with its shadow; or let the "
                    "variable be null at first, and allocate its arrays with malloc, realloc or new before the "
                    "derivative is called")  # fmt: skip
        parts = value.operands if isinstance(value, Instruction | ConstExpr) and len(work) < _MOST_STEPS else ()
        found = read or (isinstance(value, Instruction) and value.opcode == "load")
        work += [(part, found) for part in parts if part.type is PTR and (part, found) not in work]
    return "take the pointer from an argument, a variable or an allocation of the same program"


def _float_or_pointer(unit: Unit, instr: Instruction) -> bool:
    """An active integer whose memory holds floats here and pointers there (closures of different shapes in one
    buffer)."""
    value, address = (instr, instr.operands[0]) if instr.opcode == "load" else instr.operands
    if not value.type.scalar.is_int or not unit.activity.value(value):
        return False
    if not any(kind is CONFLICT for _, kind in unit.types.access(address, ty.store_size(value.type))):
        return False
    return value not in unit.get(Either).values and (not unit.differentiable(value) or unit.activity.pointer(value))


def _pointer_as_float(unit: Unit, cast: Instruction, users: Uses) -> bool:
    """Whether a pointer may go on as a float. Where it is only computed with, what the cast makes is the float of a
    word that holds either; its derivative is that of the word, where the sweeps decide what that is."""
    source = cast.operands[0]
    if not (cast.type.is_fp and may_hold_pointer(source.type) and unit.pointers.of(source)):
        return False
    if reads_bits_of_address(cast, unit.pointers):
        return not _bits_of_address(unit, cast)
    if cast.type is not ty.F64 or not _stays_a_number(unit, cast, users):
        return True
    if unit.mode != "reverse" and unit.width == 1:
        return False
    return unit.activity.value(cast) and source not in unit.get(Either).values


def _followed(unit: Unit, cast: Instruction) -> bool:
    """Whether the shadow of a word is right for both, the tangent of a float (in reverse mode nothing, and an adjoint)
    and the shadow of an address, since no float travels as a pointer that has none."""
    if unit.width != 1 or not unit.types.carriers.either(cast.operands[0], 0):
        return False
    if unit.mode == "reverse" and cast.operands[0] not in unit.get(Either).values:
        return False
    return not _made_of(cast.operands[0], lambda v: v.opcode == "ptrtoint" and not _has_shadow(unit, v.operands[0]))


def _has_shadow(unit: Unit, pointer: Value) -> bool:
    """A pointer that a shadow moves with, or the address of memory that is made here."""
    obj = unit.pointers.object_of.get(resolve(start_of(pointer)))
    own = obj is not None and obj.kind in ("alloca", "heap", "global", "function")
    return own or unit.activity.pointer(pointer)


def _bits_of_address(unit: Unit, cast: Instruction) -> bool:
    """Whether a float of the bits of an address is a number for everyone."""
    fn = cast.block.function if cast.block is not None else None
    made = fn is not None and reads_bits_of_address(cast, unit.pointers)
    return made and fn is not None and _stays_a_number(unit, cast, uses_of(fn.blocks))


def _stays_a_number(unit: Unit, cast: Instruction, users: Uses) -> bool:
    """Whether no pointer comes of a float again: it is computed with, or kept where nothing but floats is, by this
    function or by those that it goes to."""
    seen: set[_Held] = {(cast, ())}
    work: list[_Held] = [(cast, ())]
    of = {function_of(cast): users}
    for value, path in work:  # grows while it runs
        fn = value.function if isinstance(value, Argument) else function_of(value)
        if fn is None:
            return False
        if fn not in of:
            of[fn] = uses_of(fn.blocks)
        for user in of[fn].get(value, ()):
            if user.opcode == "store" and user.operands[0] is value and not path:
                held = unit.types.access(user.operands[1], ty.store_size(value.type))
                if any(not isinstance(kind, ty.FloatType) for _, kind in held):
                    return False
                continue
            goes = _goes_to(unit, user, value, path)
            if goes is None and (path or not _computes(user)):
                return False
            work += [one for one in goes or () if one not in seen]
            seen.update(goes or ())
    return True


def _goes_to(unit: Unit, user: Instruction, value: Value, path: tuple[int, ...]) -> list[_Held] | None:
    """Where a float is handed on to, as it is; None where it is not. path: where in a struct it is"""
    op = user.opcode
    new: list[_Held]
    if op in CHOICES:
        return [(user, path)]
    if op == "extractvalue":
        inside = tuple(user.indices)
        return [(user, path[len(inside):])] if path[: len(inside)] == inside else []
    if op == "insertvalue":
        into = tuple(user.indices)
        new = [(user, (*into, *path))] if user.operands[1] is value else []
        return new if user.operands[0] is not value or path[: len(into)] == into else [*new, (user, path)]
    if op == "ret":
        return [(call, path) for call in unit.pointers.calls.get(function_of(user), ())]
    called = unit.pointers.callees(user) if user.is_call else None
    if not called or not all(fn.blocks for fn in called):
        return None
    args = [i for i, arg in enumerate(user.args) if arg is value]
    new = [(fn.args[i], path) for fn in called for i in args if i < len(fn.args)]
    return new


def _computes(user: Instruction) -> bool:
    intrinsic = user.is_call and (user.callee_name or "").startswith("llvm.") and user.type.is_fp
    return user.opcode in _COMPUTES or intrinsic


def _said_float(access: Instruction, tbaa: Tbaa) -> bool:
    """The source calls all of what is accessed floats; what LLVM joins of a float and a pointer has no such tag."""
    tag = access.metadata.get("tbaa")
    return tag is not None and isinstance(tbaa.kind(tag), ty.FloatType)


def _pointers_in(unit: Unit, load: Instruction) -> set[int]:
    """The lanes of a vector of floats that are known to hold pointers. Where the access or the pointer may be anywhere
    in an object that is not known: Eigen keeps a pointer in front of its arrays, and LLVM no longer tells which is
    which."""
    size = ty.store_size(load.type.scalar)
    lanes: set[int] = set()
    for bit, places in unit.types.ranges.places(load.operands[0]).items():
        if places.exact:
            for at, (where, kind, _, strength) in unit.types.record(bit).near(places, ty.store_size(load.type)):
                if kind is PTR and strength == ACCESS and where.exact:
                    lanes.add(at // size)
    return lanes


def _lost(unit: Unit, load: Instruction, vectors: int) -> bool:
    """A pointer that nobody is seen to store, where floats are seen, in memory that vectors of floats are stored to: it
    came there as a float."""
    if load.type is not PTR or unit.pointers.of(load) or not unit.pointers.of(load.operands[0]) & vectors:
        return False
    return any(kind is CONFLICT for _, kind in unit.types.access(load.operands[0], ty.store_size(PTR)))


def _filled_by_vectors(unit: Unit) -> int:
    """The objects that vectors of floats are stored to, as a mask."""
    mask = 0
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            if instr.opcode == "store" and instr.operands[0].type.is_vector and instr.operands[0].type.is_fp:
                mask |= unit.pointers.of(instr.operands[1])
    return mask


def _of_float_bits(value: Value) -> bool:
    """Whether an integer may be made of the bits of a float by moves alone."""
    return _made_of(value, lambda v: v.opcode == "bitcast" and v.operands[0].type.is_fp)


def _of_address(cast: Instruction) -> bool:
    """Whether a float is made of the bits of an address: of a float that travels as one, which nothing follows."""
    return _made_of(cast.operands[0], lambda v: v.opcode == "ptrtoint")


def _made_of(value: Value, wanted: Callable[[Instruction], bool]) -> bool:
    seen, work = {value}, [value]
    while work:
        value = work.pop()
        if not isinstance(value, Instruction):
            continue
        if wanted(value):
            return True
        if value.opcode in _MOVES:
            new = [operand for operand in value.operands if operand not in seen]
            seen.update(new)
            work += new
    return False
