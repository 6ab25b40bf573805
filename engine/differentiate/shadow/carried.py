"""Integers that carry floats or pointers: their shadows and adjoints are integers too, with the same bits inside.

A struct of a float and an int travels in one i64; a union, a bit trick or a copy by words moves floats as integers. An
operation that only moves bits (shift by whole bytes, mask of whole lanes, extension, disjoint or) moves the bits of a
tangent alike, and an adjoint back. Masks of the sign are |x| and -|x|, a flipped sign is -x. A pointer's shadow moves
by as much as the pointer does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT
from irgrad.engine.analyses.memory.tbaa import AccessTypes
from irgrad.engine.differentiate.layout.lanes import shuffle
from irgrad.engine.differentiate.layout.leaves import add as add_floats
from irgrad.engine.differentiate.layout.leaves import fields_of, has_float
from irgrad.engine.differentiate.layout.separate_shadows import join, lane
from irgrad.engine.differentiate.shadow.beside_pointers import add_placed, placed
from irgrad.engine.differentiate.shadow.bit_sums import add_bits, add_words
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.differentiate.shared.sweeps import AdjointSweep, PrimalCopy
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, ConstAggregate, ConstInt, Function, Instruction, Value, is_zero
from irgrad.engine.ir.opcodes import RESIZES, SHIFTS, having
from irgrad.engine.ir.types import Type
from irgrad.engine.ir.uses import uses_of

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

_WORD = (1 << 64) - 1
BITS = having("combines_bits")


def kinds_of(unit: Unit, value: Value) -> frozenset[Type]:
    """The float types that an integer may carry."""
    return unit.types.carriers.floats(value)


def carries(unit: Unit, value: Value) -> bool:
    """An active integer that is known to carry floats."""
    return value.type.scalar.is_int and unit.activity.value(value) and bool(kinds_of(unit, value))


# -- adding adjoints -----------------------------------------------------------------------------------------------


def add(unit: Unit, b: Builder, value: Value, x: Value, y: Value) -> Value:
    """x + y for adjoints of `value`: float by float, also inside of integers."""
    if is_zero(x):
        return y
    if is_zero(y):
        return x
    if not value.type.scalar.is_int and not (value.type.is_aggregate and _has_wide_int(value.type)):
        return add_floats(b, x, y)
    if unit.memory.separate:
        pairs = [[lane(b, value.type, part, j, unit.width) for part in (x, y)] for j in range(unit.width)]
        return join(b, value.type, [_add_integers(unit, b, value, *pair) for pair in pairs])
    return _add_integers(unit, b, value, x, y)


def _add_integers(unit: Unit, b: Builder, value: Value, x: Value, y: Value) -> Value:
    if value.type.scalar.is_int:
        layout = placed(unit, value)
        if layout:
            return add_placed(b, layout, 1 if unit.memory.separate else unit.width, x, y)
        if _is_word(unit, value):
            return add_words(unit, b, x, y)
        return add_bits(b, kinds_of(unit, value), x, y)
    return _add_parts(unit, b, value.type, value.type, (), x, y)


def _is_word(unit: Unit, value: Value) -> bool:
    """A double at one time and a pointer at another."""
    double = value.type.scalar is ty.I64 and unit.width == 1 and kinds_of(unit, value) == {ty.F64}
    return double and any(kind is CONFLICT for _, kind in unit.types.carriers.layout(value))


def _has_wide_int(type_: Type) -> bool:
    if type_.is_aggregate:
        return any(map(_has_wide_int, fields_of(type_)))
    return type_.is_int and ty.store_size(type_) >= 2


def _add_parts(
    unit: Unit, b: Builder, whole: Type, type_: Type, path: tuple[int, ...], x: Value, y: Value
) -> Value:
    if type_.is_fp:
        return add_floats(b, x, y)
    if type_.scalar.is_int:
        return add_bits(b, leaf_kinds(unit, whole, path), x, y)
    if not type_.is_aggregate:
        return x
    result = x
    for i, part in enumerate(fields_of(type_)):
        if has_float(part) or _has_wide_int(part):
            total = _add_parts(unit, b, whole, part, (*path, i), b.extractvalue(x, i), b.extractvalue(y, i))
            result = b.insertvalue(result, total, i)
    return result


def leaf_kinds(unit: Unit, whole: Type, path: tuple[int, ...]) -> frozenset[Type]:
    """The float types that integers at one place of a struct type carry anywhere in the program."""
    if not unit.leaf_kinds:
        unit.leaf_kinds[ty.VOID, ()] = frozenset()
        for fn in unit.pointers.functions:
            for instr in fn.instructions():
                if instr.opcode == "extractvalue":
                    source, part = instr.operands[0], instr
                elif instr.opcode == "insertvalue":
                    source, part = instr, instr.operands[1]  # type: ignore[assignment]
                else:
                    continue
                if part.type.scalar.is_int:
                    key = (source.type, tuple(instr.indices))
                    unit.leaf_kinds[key] = unit.leaf_kinds.get(key, frozenset()) | kinds_of(unit, part)
    return unit.leaf_kinds.get((whole, path), frozenset())


# -- the primal sweep and forward mode -------------------------------------------------------------------------------


def shadow_of_bits(sweep: PrimalCopy, instr: Instruction) -> None:
    """Shadow of an integer operation on carried pointers or floats."""
    unit = sweep.unit
    pointers = [o for o in instr.operands if o.type.scalar.is_int and unit.activity.pointer(o)]
    floats = [o for o in instr.operands if unit.activity.value(o) and kinds_of(unit, o)] if sweep.tangents else []
    if pointers and not floats and instr.type.is_vector and instr.type.scalar is ty.I64:
        aligned = _aligned_pointers(sweep, instr, pointers)
        if aligned is not None:
            sweep.shadows[instr] = aligned
            return
    if pointers and not floats and instr.type.is_int:
        refuse_apart(unit, instr)
        wide = _moved_pointers(sweep, instr, pointers)
        if wide is not None:
            sweep.shadows[instr] = wide
            return
        if len(pointers) > 1 and instr.type is ty.I64:
            pointers = [o for o in pointers if not _is_number(unit, o)]
            if not pointers or _is_distance(instr):
                # nobody asks for the shadow of a number; it lies in memory where pointers lie as well
                sweep.shadows[instr] = sweep.b.cast("sext", sweep.values[instr], unit.wide(instr.type))
                return
        if len(pointers) > 1:
            raise refuse(unit, instr, "a pointer is computed from two pointers as integers")
        (pointer,) = pointers
        if pointer.type is not instr.type:
            sweep.shadows[instr] = sweep.like(instr, [sweep.shadow(pointer)])
            return
        moved = sweep.b.binary("sub", sweep.values[instr], sweep.value(pointer))
        if unit.width > 1:  # as wide as the shadow; what is beyond the pointer means nothing
            moved = sweep.b.cast("sext", moved, unit.wide(moved.type))
            moved = sweep.b.mul(moved, ConstInt(moved.type, unit.width), ())
        sweep.shadows[instr] = sweep.b.binary("add", sweep.shadow(pointer), moved)
        return
    amounts = [sweep.shadow(o) for o in instr.operands]
    if unit.memory.separate:
        given = list(zip(instr.operands, amounts, strict=True))
        rows = [[lane(sweep.b, o.type, a, j, unit.width) for o, a in given] for j in range(unit.width)]
        with unit.one_lane():
            parts = [_shadow_of_floats(sweep, instr, row) for row in rows]
        sweep.shadows[instr] = join(sweep.b, instr.type, parts)
    else:
        sweep.shadows[instr] = _shadow_of_floats(sweep, instr, amounts)


def _aligned_pointers(sweep: PrimalCopy, instr: Instruction, pointers: list[Value]) -> Value | None:
    """Shadow of arithmetic on addresses in the lanes of a vector (tags in their low bits, say): each moves as far as
    the address does. None for what only puts lanes together."""
    masks = [lanes_of(o) for o in instr.operands if o not in pointers]
    lanes_alone = any(mask and all(m in (0, -1) for m in mask) for mask in masks)
    if (instr.opcode == "and" and lanes_alone) or ("disjoint" in instr.flags and len(pointers) > 1):
        return None
    if len(pointers) > 1 or pointers[0].type is not instr.type or sweep.unit.width > 1:
        raise refuse(sweep.unit, instr, f"`{instr.opcode}` on addresses in a vector of integers")
    moved = sweep.b.binary("sub", sweep.values[instr], sweep.value(pointers[0]))
    return sweep.b.binary("add", sweep.shadow(pointers[0]), moved)


def lanes_of(value: Value) -> list[int]:
    """The lanes of a constant vector of integers; none for another value."""
    if is_zero(value) and isinstance(value.type, ty.VectorType):
        return [0] * value.type.count
    elems = value.elems if isinstance(value, ConstAggregate) else ()
    return [e.value for e in elems if isinstance(e, ConstInt)] if all(isinstance(e, ConstInt) for e in elems) else []


def _moved_pointers(sweep: PrimalCopy, instr: Instruction, pointers: list[Value]) -> Value | None:
    """Shadow of an operation on an integer wider than an address, which may hold several: their shadows move alike.
    None for one that is no wider."""
    unit, op = sweep.unit, instr.opcode
    if not (isinstance(instr.type, ty.IntType) and instr.type.bits > 64 and pointers[0].type is instr.type):
        return None
    shadows, bits = [sweep.shadow(o) for o in pointers], instr.type.bits
    if op in SHIFTS and pointers == instr.operands[:1]:
        return _moved(unit, sweep.b, instr, shadows, None)
    if op == "or" and "disjoint" in instr.flags and not isinstance(instr.operands[1], ConstInt):
        return shadows[0] if len(shadows) == 1 else sweep.b.binary("or", shadows[0], shadows[1])
    constant = instr.operands[1]
    if op == "and" and isinstance(constant, ConstInt):
        parts = [(at, constant.value >> at & _WORD) for at in range(0, bits, 64)]
        if all(part in (0, _WORD) for _, part in parts):
            keep = sum(((1 << 64 * unit.width) - 1) << at * unit.width for at, part in parts if part)
            return sweep.b.binary("and", shadows[0], ConstInt(unit.wide(instr.type), keep))
    raise refuse(unit, instr, f"`{op}` on an integer of {bits} bits that holds addresses")


def _shadow_of_floats(sweep: PrimalCopy, instr: Instruction, amounts: list[Value]) -> Value:
    signed = taken_sign(sweep.unit, instr)
    if signed is None:
        return _moved(sweep.unit, sweep.b, instr, amounts, sweep.value)
    amount = amounts[0 if signed[0] is instr.operands[0] else 1]
    return _turned(sweep.unit, sweep.b, instr, amount, signed, sweep.value)


class _SaidNumbers:
    """What the source calls an integer is no address where no integer is cast to one, whatever may lie beside it."""

    def __init__(self, unit: Unit) -> None:
        casts = (i for fn in unit.pointers.functions for i in fn.instructions() if i.opcode == "inttoptr")
        self._types = AccessTypes(unit.module) if next(casts, None) is None else None

    def are_read(self, load: Instruction) -> bool:
        """By a load whose type tag says so."""
        return self._types is not None and self._types.is_number(load)


def _is_number(unit: Unit, value: Value) -> bool:
    """An integer that arithmetic treats as a number, and that is not known to come from a pointer or to become one."""
    carriers = unit.types.carriers
    if isinstance(value, Instruction) and value.opcode == "load" and unit.get(_SaidNumbers).are_read(value):
        return True
    return carriers.used_as_integer(value) and all(kind is INT for _, kind in carriers.layout(value))


def _is_distance(instr: Instruction) -> bool:
    """The difference of two addresses that nothing adds to a third one right here: it counts, is compared, and kept."""
    if instr.opcode != "sub" or instr.block is None or instr.block.function is None:
        return False
    users = dict(uses_of(instr.block.function.blocks))
    work: list[Value] = [instr]
    seen: set[Value] = {instr}
    read: set[Function | None] = {instr.block.function}
    while work:
        value = work.pop()
        for user in users.get(value, ()):
            if _counts(user, value):
                continue
            next_ = _parameters(user, value)
            if not next_ and (user.is_call or not _stays_a_distance(user)):
                return False
            for fn in {formal.function for formal in next_} - read:
                assert fn is not None
                read.add(fn)
                users.update(uses_of(fn.blocks))
            fresh: set[Value] = {*next_} if next_ else {user}
            work += fresh - seen
            seen |= fresh
    return True


def _stays_a_distance(user: Instruction) -> bool:
    return user.opcode in ("phi", "select") or isinstance(user.operands[-1], ConstInt)


def _parameters(user: Instruction, value: Value) -> list[Argument]:
    """What a function with a body takes a value as, where it is called."""
    fn = user.callee if user.is_call else None
    if not isinstance(fn, Function) or not fn.blocks or value is fn:
        return []
    return [formal for formal, given in zip(fn.args, user.args, strict=False) if given is value]


def _counts(user: Instruction, value: Value) -> bool:
    """Whether an instruction takes a value for a number, or keeps it for a later one to say."""
    if user.is_call:
        return isinstance(user.callee, Function) and user.callee.is_declaration
    if user.opcode == "store":
        return user.operands[0] is value
    return user.opcode == "icmp" or (user.opcode == "getelementptr" and user.operands[0] is not value)


def shadow_of_address(sweep: PrimalCopy, cast: Instruction) -> Value | None:
    """Shadow of a pointer that was made from another by integer arithmetic (aligned by hand): as far from that one's
    shadow. A getelementptr says what `add` does not, that the result is in the memory of the shadow, so that it can be
    differentiated again."""
    unit, value = sweep.unit, cast.operands[0]
    while isinstance(value, Instruction) and value.opcode in having("displaces") and value.type is ty.I64:
        pointers = [o for o in value.operands if unit.activity.pointer(o)]
        if len(pointers) != 1 or (value.opcode == "sub" and pointers[0] is not value.operands[0]):
            return None
        value = pointers[0]
    made = isinstance(value, Instruction) and value.opcode == "ptrtoint" and value.type is ty.I64
    if not made or value is cast.operands[0] or unit.memory.separate or cast.type is not ty.PTR:
        return None
    assert isinstance(value, Instruction)
    distance = sweep.b.binary("sub", sweep.value(cast.operands[0]), sweep.value(value))
    distance = sweep.b.mul(distance, ConstInt(ty.I64, unit.width), ())
    return sweep.b.gep(ty.I8, sweep.shadow(value.operands[0]), distance, flags=())


def refuse_apart(unit: Unit, instr: Instruction) -> None:
    """Raises Unsupported where lanes that lie apart would have to be moved as bits."""
    if unit.memory.separate:
        raise refuse(unit, instr, f"numbers are handled as integers in a derivative of width {unit.width}",
                     fix="one call for each shadow, without enzyme_width")  # fmt: skip


def _moved(unit: Unit, b: Builder, instr: Instruction, shadows: list[Value], primal: object) -> Value:
    op = instr.opcode
    if op in RESIZES:
        return b.cast("zext" if op == "sext" else op, shadows[0], unit.wide(instr.type))
    if op in SHIFTS:
        return b.binary("shl" if op == "shl" else "lshr", shadows[0], _whole_bytes(unit, instr))
    first, second = instr.operands
    if op == "or" and not isinstance(second, ConstInt | ConstAggregate):
        return b.binary("or", shadows[0], shadows[1])
    if not isinstance(second, ConstInt):
        raise refuse(unit, instr, f"`{op}` on the bits of active floats has no derivative")
    return _masked(unit, b, instr, shadows[0], primal(first))  # type: ignore[operator]


def _whole_bytes(unit: Unit, instr: Instruction) -> Value:
    by = instr.operands[1]
    if not isinstance(by, ConstInt) or by.value % 8:
        raise refuse(unit, instr, "the bits of an active float are shifted by no whole number of bytes")
    return by if unit.width == 1 else ConstInt(unit.wide(by.type), by.value * unit.width)


def _masked(unit: Unit, b: Builder, instr: Instruction, amount: Value, before: Value) -> Value:
    """What x op constant does to the tangent of x, and to the adjoint of the result: the same, it is linear."""
    op, constant, lanes = instr.opcode, instr.operands[1], unit.width
    assert isinstance(constant, ConstInt) and isinstance(instr.type, ty.IntType)
    bits = instr.type.bits
    number = constant.value & ((1 << bits) - 1)
    kinds = kinds_of(unit, instr) | kinds_of(unit, instr.operands[0])
    width = min((8 * ty.store_size(k) for k in kinds), default=8)
    if op in ("add", "sub"):  # counts in the lane of an integer beside the floats
        touched = [at for at in range(0, bits, width) if number >> at & ((1 << width) - 1)]
        if any(_float_lane(unit, v, at // 8) for v in (instr, instr.operands[0]) for at in touched):
            raise refuse(unit, instr, "integer arithmetic on the bits of an active float")
        return amount
    keep = flip = turn = 0  # lanes kept, signs taken over from x, signs turned
    for at in range(0, bits, width):
        lane = (1 << min(width, bits - at)) - 1
        sign = (lane + 1) >> 1
        part = _rounded(kinds, op, number >> at & lane, lane)
        known = (0, lane, lane ^ sign, sign) if op == "and" else (0, sign)
        if part not in known and kinds and _float_lane(unit, instr.operands[0], at // 8):
            raise refuse(unit, instr, "a mask takes bits of an active float apart")
        places = [at * lanes + j * min(width, bits - at) for j in range(lanes)]
        if op == "and":
            keep |= _at(lane if part in (lane, lane ^ sign) else 0, places)
            flip |= _at(sign if part == lane ^ sign else 0, places)
        elif op == "or":
            keep |= _at(lane if part in (0, sign) else 0, places)
            flip |= _at(sign if part == sign else 0, places)
            turn |= _at(sign if part == sign else 0, places)
        else:
            keep |= _at(lane if part in (0, sign) else 0, places)
            turn |= _at(sign if part == sign else 0, places)
    full, type_ = (1 << (bits * lanes)) - 1, unit.wide(instr.type)
    result = amount if keep == full else b.binary("and", amount, ConstInt(type_, keep))
    if keep != full or flip or turn:
        _one_size(unit, instr, (instr, instr.operands[0]))
    if flip:
        signs = before if lanes == 1 else _spread(b, before, type_, width, lanes)
        result = b.binary("xor", result, b.binary("and", signs, ConstInt(type_, flip)))
    if turn:
        result = b.binary("xor", result, ConstInt(type_, turn))
    return result


def _rounded(kinds: frozenset[Type], op: str, part: int, lane: int) -> int:
    """A mask of one lane without the last bits of a significand: to cut them off, or to replace them, is to round,
    and the tangent is that of the number that is meant (as with `reduce_precision` of XLA)."""
    last = min((ty.last_bits(k) for k in kinds if (1 << 8 * ty.store_size(k)) - 1 == lane), default=0)
    low = (1 << last) - 1
    if op == "and":
        return lane if part | low == lane else part
    return 0 if part & ~low == 0 else part


def taken_sign(unit: Unit, instr: Instruction) -> tuple[Value, Instruction] | None:
    """(x, s) of `or x, s` and `xor x, s` where s = `and y, mask` holds signs of floats of x and nothing else.

    It is copysign(x, y) where x is positive, x times the sign of y: in y constant almost everywhere.
    """
    if instr.opcode not in ("or", "xor"):
        return None
    for x, s in (instr.operands, instr.operands[::-1]):
        if isinstance(s, Instruction) and s.opcode == "and" and isinstance(s.operands[1], ConstInt):
            bits = 8 * ty.store_size(s.type)
            mask = s.operands[1].value & ((1 << bits) - 1)
            signs = 0
            for offset, kind in unit.types.carriers.layout(x):
                if isinstance(kind, ty.FloatType):
                    signs |= 1 << (8 * (offset + ty.store_size(kind)) - 1)
            if mask and not mask & ~signs:
                return x, s
    return None


def _turned(
    unit: Unit, b: Builder, instr: Instruction, amount: Value, signed: tuple[Value, Value],
    primal: Callable[[Value], Value],
) -> Value:  # fmt: skip
    """The tangent of x, or the adjoint of the result, with its sign turned where that of x was."""
    if is_zero(amount):
        return amount
    x, sign = signed
    turned = primal(sign) if instr.opcode == "xor" else b.binary("xor", primal(x), primal(instr))
    if unit.width > 1:
        part = min((8 * ty.store_size(k) for k in _one_size(unit, instr, (instr, x))), default=8)
        turned = _spread(b, turned, unit.wide(instr.type), part, unit.width)
    return b.binary("xor", amount, turned)


def _one_size(unit: Unit, instr: Instruction, values: Sequence[Value]) -> frozenset[Type]:
    """The floats in these integers. Where signs have to be found in the lanes of each, all must be of one size."""
    kinds = frozenset[Type]().union(*(kinds_of(unit, v) for v in values))
    if unit.width > 1 and len({ty.store_size(k) for k in kinds}) > 1:
        raise refuse(unit, instr, "several derivatives at once of floats of different size in one integer",
                     fix="width=1 differentiates this function one direction at a time")  # fmt: skip
    return kinds


def _at(bits: int, places: list[int]) -> int:
    """The bits at each of these places."""
    return sum(bits << place for place in places)


def _spread(b: Builder, value: Value, type_: Type, width: int, lanes: int) -> Value:
    """An integer with each part of `width` bits repeated once a lane."""
    assert isinstance(value.type, ty.IntType)
    parts = value.type.bits // width
    if parts * width != value.type.bits:
        parts, width = 1, value.type.bits
    part = ty.vector(parts, ty.int_(width))
    repeated = shuffle(b, b.cast("bitcast", value, part), None, [i for i in range(parts) for _ in range(lanes)])
    return b.cast("bitcast", repeated, type_)


def _float_lane(unit: Unit, value: Value, at: int) -> bool:
    """Whether the lane of an integer that begins at this byte holds a float."""
    return any(offset == at and isinstance(kind, ty.FloatType) for offset, kind in unit.types.carriers.layout(value))


# -- the reverse sweep -----------------------------------------------------------------------------------------------


def adjoint_of_bits(r: AdjointSweep, instr: Instruction) -> None:
    """The adjoint's bits go back to where the operand's bits came from."""
    amount = r.take(instr)
    if amount is None:
        return
    unit = r.unit
    if unit.memory.separate:
        parts = [lane(r.b, instr.type, amount, j, unit.width) for j in range(unit.width)]
        with unit.one_lane():
            rows = [_back(r, instr, part) for part in parts]
        found = [(row[0][0], join(r.b, row[0][0].type, [part for _, part in row])) for row in zip(*rows, strict=True)]
    else:
        found = _back(r, instr, amount)
    for operand, back in found:
        _hand(r, instr, operand, back)


def _back(r: AdjointSweep, instr: Instruction, amount: Value) -> list[tuple[Value, Value]]:
    """(operand, what is added to its adjoint)."""
    op, first = instr.opcode, instr.operands[0]
    if op in ("zext", "sext"):
        return [(first, r.b.cast("trunc", amount, r.unit.wide(first.type)))]
    if op == "trunc":
        return [(first, r.b.cast("zext", amount, r.unit.wide(first.type)))]
    if op in SHIFTS:
        return [(first, r.b.binary("lshr" if op == "shl" else "shl", amount, _whole_bytes(r.unit, instr)))]
    signed = taken_sign(r.unit, instr)
    if signed is not None:
        return [(signed[0], _turned(r.unit, r.b, instr, amount, signed, r.recall.value))]
    if op == "or" and not isinstance(instr.operands[1], ConstInt):
        return [(operand, amount) for operand in instr.operands]
    if isinstance(instr.operands[1], ConstInt):
        reads = op in ("and", "or") and not is_zero(amount)
        return [(first, _masked(r.unit, r.b, instr, amount, r.recall.value(first) if reads else first))]
    raise refuse(r.unit, instr, f"`{op}` on the bits of active floats has no derivative")


def _hand(r: AdjointSweep, instr: Instruction, operand: Value, amount: Value) -> None:
    if r.unit.activity.value(operand) and not r.active(operand):
        raise refuse(r.unit, instr, "an active float travels as an integer, and its place in it is not known")
    r.give(operand, amount)
