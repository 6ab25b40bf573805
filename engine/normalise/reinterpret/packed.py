"""Floats that are moved and masked in vectors of integers are moved as floats again.

LLVM keeps a small struct as a vector of bytes, of which shuffles take the members:

    b = bitcast double x to <8 x i8>
    v = shufflevector b, poison, <0, ..., 7, poison, ...>      ; <16 x i8>
    w = insertelement v, i8 flag, 8
    y = bitcast w to <2 x double>

and programs with vector intrinsics take absolute values, signs and one of two values by masks of bits:

    a = and <2 x i64> x, splat (~sign)      n = xor x, splat (sign)      s = or (and mask, p), (and ~mask, q)

Each lane of such a `bitcast` to floats is made of the floats its bytes come from, or of the integers; a mask becomes
fabs, fneg, copysign or a select. All of it is exact, bit by bit. What is not one of these stays as it was, and is
refused where it is active. Runs before the analyses.
"""

from __future__ import annotations

from collections.abc import Callable

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, mask_lanes, zero
from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.model import (
    Block,
    ConstAggregate,
    Constant,
    ConstFloat,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import BITWISE, CHOICES, of_kind
from irgrad.engine.ir.rewrite import declare, replace_uses

_MIXES = of_kind("vector") | BITWISE
_LONGEST = 256  # bytes of a vector that is looked at byte by byte


def unpack(module: Module, fn: Function) -> bool:
    """Floats that travel in vectors of integers are moved as floats again. Returns whether anything changed."""
    wanted = [i for i in fn.instructions() if i.opcode == "bitcast" and i.type.is_fp and _packed(i.operands[0])]
    if not wanted:
        return False
    views = _Views(module)
    replaced: dict[Value, Value] = {}
    for cast in wanted:
        made = views.instead(cast) if views.mixes(cast.operands[0]) else None
        if made is not None:
            replaced[cast] = made
    if replaced:
        replace_uses(fn, replaced)
    return bool(replaced)


def _packed(value: Value) -> bool:
    """An integer of whole bytes that a vector of integers was made into, or such a vector."""
    if not isinstance(value, Instruction) or not value.type.scalar.is_int or not 2 <= _size(value.type) <= _LONGEST:
        return False
    return (
        value.type.is_vector
        or value.opcode == "extractelement"
        or (value.opcode == "bitcast" and value.operands[0].type.is_vector)
    )


def _size(type_: ty.Type) -> int:
    """Bytes of a number or vector without padding; 0 for anything else."""
    scalar = type_.scalar
    bits = scalar.bits if isinstance(scalar, ty.IntType) else 0
    if bits % 8 or not (bits or (isinstance(scalar, ty.FloatType) and scalar is not ty.F80)):
        return 0
    each = bits // 8 or ty.store_size(scalar)
    return each * type_.count if isinstance(type_, ty.VectorType) else each


class _Views:
    """Values of one function as floats."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._mixes: dict[Value, bool] = {}
        self._twins: dict[tuple[Value, ty.Type], Instruction] = {}
        self._before: dict[Block, list[Instruction]] = {}

    def mixes(self, value: Value) -> bool:
        """Somewhere among the integers that this one is moved from, lanes are put together or masked."""
        known = self._mixes.get(value)
        if known is not None:
            return known
        seen: set[Value] = set()
        work, found = [value], False
        while work and not found:
            value_ = work.pop()
            if value_ in seen or not isinstance(value_, Instruction) or not value_.type.scalar.is_int:
                continue
            seen.add(value_)
            found = value_.opcode in _MIXES and (value_.type.is_vector or value_.opcode == "extractelement")
            if value_.opcode in CHOICES or value_.opcode == "bitcast":
                work += value_.operands[1:] if value_.opcode == "select" else value_.operands
        self._mixes[value] = found
        return found

    def instead(self, cast: Instruction) -> Value | None:
        """What computes the same as a bitcast to floats; None, and nothing changed, where that is not understood."""
        twins = dict(self._twins)
        self._before = {}
        assert cast.block is not None
        b = self._builder(cast.block, cast.block.instructions.index(cast))
        b.metadata = {"dbg": cast.metadata["dbg"]} if "dbg" in cast.metadata else {}
        made = self.view(b, cast.operands[0], cast.type)
        if made is None:
            self._twins = twins
            for block, instructions in self._before.items():
                block.instructions = instructions
            return None
        for key, twin in self._twins.items():
            if key not in twins:
                assert twin.block is not None
                twin.block.instructions.insert(0, twin)
        return made

    def _builder(self, block: Block, at: int) -> Builder:
        self._before.setdefault(block, list(block.instructions))
        return Builder(block, at=at)

    def view(self, b: Builder, value: Value, type_: ty.Type) -> Value | None:
        """The floats with the bits of an integer or vector of the same size; None where that is not understood."""
        if value.type is type_:
            return value
        if isinstance(value, Constant):
            return _constant(value, type_)
        if isinstance(value, Instruction) and value.opcode == "bitcast" and value.operands[0].type is type_:
            return value.operands[0]
        if not self.mixes(value):
            return b.cast("bitcast", value, type_) if _size(value.type) == _size(type_) > 0 else None
        assert isinstance(value, Instruction)
        if value.opcode == "bitcast":
            source = value.operands[0]
            return self.view(b, source, type_) if source.type.scalar.is_int else None
        if value.opcode in CHOICES:
            return self._join(b, value, type_)
        if value.opcode in BITWISE:
            return _Masks(self, self._module, b, type_).of(value)
        count = type_.count if isinstance(type_, ty.VectorType) else 1
        lanes = [self._lane(b, value, i * _size(type_.scalar), type_.scalar) for i in range(count)]
        return _vector(b, lanes, type_)

    # -- values that meet --------------------------------------------------------------------------------------------

    def _join(self, b: Builder, value: Instruction, type_: ty.Type) -> Value | None:
        key = value, type_
        if key in self._twins:
            return self._twins[key]
        if value.opcode == "freeze":
            source = self.view(b, value.operands[0], type_)
            return None if source is None else b.insert(Instruction("freeze", type_, [source]))
        if value.opcode == "select":
            return self._select(b, value.operands[0], value.operands[1], value.operands[2], type_)
        assert value.block is not None
        twin = self._twins[key] = Instruction("phi", type_, [], blocks=list(value.blocks))
        twin.block = value.block
        for operand, block in zip(value.operands, value.blocks, strict=True):
            found = self.view(self._builder(block, len(block.instructions) - 1), operand, type_)
            if found is None:
                return None
            twin.operands.append(found)
        return twin

    def _select(self, b: Builder, cond: Value, x: Value, y: Value, type_: ty.Type) -> Value | None:
        lanes = cond.type.count if isinstance(cond.type, ty.VectorType) else 1
        if cond.type.is_vector and not (isinstance(type_, ty.VectorType) and type_.count == lanes):
            return None
        first, second = self.view(b, x, type_), self.view(b, y, type_)
        return None if first is None or second is None else b.select(cond, first, second)

    # -- lanes -------------------------------------------------------------------------------------------------------

    def _lane(self, b: Builder, value: Value, at: int, kind: ty.Type) -> Value | None:
        """The float in the bytes from `at` on."""
        size = _size(kind)
        sources = [_source(value, at + i) for i in range(size)]
        runs = _runs(sources)
        if not runs:
            return ConstUndef(kind)
        if len(runs) == 1 and runs[0][3] == size:
            return self._part(b, runs[0][1], runs[0][2], kind)
        total: Value = ConstInt(ty.int_(8 * size), 0)
        for where, source, start, length in runs:
            piece = _bits(b, source, start, length, total.type)
            if piece is None:
                return None
            if where:
                piece = b.binary("shl", piece, ConstInt(total.type, 8 * where))
            total = piece if isinstance(total, ConstInt) else b.binary("or", total, piece, ("disjoint",))
        return b.cast("bitcast", total, kind)

    def _part(self, b: Builder, source: Value, start: int, kind: ty.Type) -> Value | None:
        """A whole float out of something larger."""
        size, whole = _size(kind), _size(source.type)
        if start % size or whole % size:
            return None
        if source.type.is_fp and source.type.scalar is not kind:
            return None
        view: Value | None = source
        if not source.type.is_fp:
            view = self.view(b, source, kind if whole == size else ty.vector(whole // size, kind))
        return view if view is None or not view.type.is_vector else b.extractelement(view, start // size)


class _Masks:
    """Bits of floats masked: absolute values, signs, and one of two values."""

    def __init__(self, views: _Views, module: Module, b: Builder, type_: ty.Type) -> None:
        self._views = views
        self._module = module
        self._b = b
        self._type = type_
        self._bits = 8 * _size(type_.scalar)
        self._sign = 1 << (self._bits - 1)

    def of(self, value: Instruction) -> Value | None:
        """The floats that an and, or, xor leaves."""
        forms: dict[str, tuple[Callable[[Value, Value], Value | None], ...]] = {
            "and": (self._absolute, self._kept), "xor": (self._negated,),
            "or": (self._negative, self._chosen, self._signed),
        }  # fmt: skip
        for form in forms[value.opcode]:
            for x, y in (value.operands, value.operands[::-1]):
                found = form(x, y)
                if found is not None:
                    return found
        return None

    def _view(self, value: Value) -> Value | None:
        return self._views.view(self._b, value, self._type)

    def _call(self, name: str, *args: Value) -> Value:
        text = f"llvm.{name}.{type_suffix(self._type)}"
        return self._b.call(declare(self._module, text, self._type, (self._type,) * len(args), PURE), args)

    def _absolute(self, x: Value, mask: Value) -> Value | None:
        every = (1 << self._bits) - 1
        return self._by_lane(x, mask, {every: _same, self._sign - 1: self._magnitude, 0: lambda v: zero(v.type)})

    def _negated(self, x: Value, mask: Value) -> Value | None:
        return self._by_lane(x, mask, {0: _same, self._sign: self._minus})

    def _negative(self, x: Value, mask: Value) -> Value | None:
        return self._by_lane(x, mask, {0: _same, self._sign: lambda v: self._minus(self._magnitude(v))})

    def _magnitude(self, value: Value) -> Value:
        return self._call("fabs", value)

    def _minus(self, value: Value) -> Value:
        return self._b.insert(Instruction("fneg", self._type, [value]))

    def _by_lane(self, x: Value, mask: Value, makes: dict[int, Callable[[Value], Value]]) -> Value | None:
        """The floats of x, each as the bits of a constant mask in its lane say."""
        lanes = self._lanes(mask)
        if not lanes or any(bits not in makes for bits in lanes):
            return None
        view = self._view(x)
        if view is None:
            return None
        result: Value | None = None
        for bits in dict.fromkeys(lanes):
            made = makes[bits](view)
            if result is None:
                result = made
            else:
                chosen = [ConstInt(ty.I1, int(own == bits)) for own in lanes]
                result = self._b.select(ConstAggregate(ty.vector(len(lanes), ty.I1), chosen), made, result)
        return result

    def _kept(self, x: Value, mask: Value) -> Value | None:
        """x where the mask is all ones, +0 where it is all zeros."""
        condition = self._condition(mask)
        view = None if condition is None else self._view(x)
        if condition is None or view is None:
            return None
        cond, inverted = condition
        nothing = zero(self._type)
        return self._b.select(cond, nothing, view) if inverted else self._b.select(cond, view, nothing)

    def _chosen(self, first: Value, second: Value) -> Value | None:
        """(x and mask) or (y and not mask)."""
        for x, m in _anded(first):
            for y, n in _anded(second):
                one, other = self._condition(m), self._condition(n)
                if one is None or other is None or one[0] is not other[0] or one[1] is other[1]:
                    continue
                p, q = self._view(x), self._view(y)
                if p is None or q is None:
                    return None
                return self._b.select(one[0], q, p) if one[1] else self._b.select(one[0], p, q)
        return None

    def _signed(self, first: Value, second: Value) -> Value | None:
        """(x and not sign) or (y and sign)."""
        for x, m in _anded(first):
            for y, n in _anded(second):
                if self._splat(m) == self._sign - 1 and self._splat(n) == self._sign:
                    p, q = self._view(x), self._view(y)
                    return None if p is None or q is None else self._call("copysign", p, q)
        return None

    def _condition(self, mask: Value) -> tuple[Value, bool] | None:
        """(condition, whether the mask is set where it does not hold) of a mask of whole lanes."""
        inverted = False
        while isinstance(mask, Instruction):
            if mask.opcode == "xor" and _every(mask.operands[1]) == -1:
                inverted, mask = not inverted, mask.operands[0]
            elif mask.opcode == "bitcast" and mask.operands[0].type.scalar.is_int:
                mask = mask.operands[0]
            elif mask.opcode == "sext" and mask.operands[0].type.scalar is ty.I1:
                lanes = mask.type.count if isinstance(mask.type, ty.VectorType) else 1
                wanted = self._type.count if isinstance(self._type, ty.VectorType) else 1
                return (mask.operands[0], inverted) if lanes == wanted else None
            else:
                return None
        return None

    def _splat(self, value: Value) -> int | None:
        """The bits that a constant gives every float, where they are the same for all."""
        found = set(self._lanes(value))
        return found.pop() if len(found) == 1 else None

    def _lanes(self, value: Value) -> list[int]:
        """The bits that a constant gives each float; none where they are not known."""
        view = _constant(value, self._type) if isinstance(value, Constant) else None
        lanes = view.elems if isinstance(view, ConstAggregate) else (view,)
        found = [lane.bits for lane in lanes if isinstance(lane, ConstFloat)]
        return found if len(found) == len(lanes) else []


def _same(value: Value) -> Value:
    return value


def _anded(value: Value) -> list[tuple[Value, Value]]:
    """(value, mask) of an and, both ways round."""
    if not isinstance(value, Instruction) or value.opcode != "and":
        return []
    x, y = value.operands
    return [(x, y), (y, x)]


def _every(value: Value) -> int | None:
    """The number that every lane of a constant is."""
    if isinstance(value, ConstAggregate):
        found = {_every(lane) for lane in value.elems}
        return found.pop() if len(found) == 1 else None
    return value.value if isinstance(value, ConstInt) else None


def _source(value: Value, at: int) -> tuple[Value, int] | None:
    """The value that a byte is moved from by shuffles and insertions, and which byte it is there; None: undefined."""
    while isinstance(value, Instruction):
        op = value.opcode
        if op == "bitcast":
            if not _size(value.operands[0].type):
                break
            value = value.operands[0]
        elif op == "freeze" or not value.type.scalar.is_int:
            break
        elif op == "shufflevector":
            first, second, mask = value.operands
            assert isinstance(first.type, ty.VectorType) and isinstance(value.type, ty.VectorType)
            each = _size(first.type.elem)
            lane = mask_lanes(mask, value.type.count)[at // each]
            if lane is None:
                return None
            value = first if lane < first.type.count else second
            at = lane % first.type.count * each + at % each
        elif op in ("insertelement", "extractelement") and isinstance(value.operands[-1], ConstInt):
            whole, lane = value.operands[0], value.operands[-1].value
            each = _size(whole.type.scalar)
            if op == "extractelement":
                value, at = whole, at + lane * each
            elif at // each == lane:
                value, at = value.operands[1], at % each
            else:
                value = whole
        else:
            break
    return None if isinstance(value, ConstUndef) or _undefined(value, at) else (value, at)


def _undefined(value: Value, at: int) -> bool:
    if not isinstance(value, ConstAggregate):
        return False
    return isinstance(value.elems[at // _size(value.type.scalar)], ConstUndef)


def _runs(sources: list[tuple[Value, int] | None]) -> list[tuple[int, Value, int, int]]:
    """(place, value, place there, length) of bytes that follow one another in one value."""
    runs: list[tuple[int, Value, int, int]] = []
    for at, found in enumerate(sources):
        if found is None:
            continue
        source, start = found
        if (
            runs
            and runs[-1][1] is source
            and runs[-1][2] - runs[-1][0] == start - at
            and runs[-1][0] + runs[-1][3] == at
        ):
            runs[-1] = (*runs[-1][:3], runs[-1][3] + 1)
        else:
            runs.append((at, source, start, 1))
    return runs


def _bits(b: Builder, source: Value, start: int, length: int, wide: ty.Type) -> Value | None:
    """Some bytes of an integer, or of a vector of integers, as a wide integer."""
    size = _size(source.type)
    if not size or source.type.is_fp:
        return None  # a part of a float
    whole = b.cast("bitcast", source, ty.int_(8 * size))
    if start:
        whole = b.binary("lshr", whole, ConstInt(whole.type, 8 * start))
    part = whole if start + length == size and not start else b.cast("trunc", whole, ty.int_(8 * length))
    return part if part.type is wide else b.insert(Instruction("zext", wide, [part]))


def _vector(b: Builder, lanes: list[Value | None], type_: ty.Type) -> Value | None:
    """The lanes as one value."""
    if any(lane is None for lane in lanes):
        return None
    if not isinstance(type_, ty.VectorType):
        return lanes[0]
    whole: Value = ConstUndef(type_, poison=True)
    for i, lane in enumerate(lanes):
        if lane is not None and not isinstance(lane, ConstUndef):
            whole = b.insertelement(whole, lane, i)
    return whole


def _constant(value: Value, type_: ty.Type) -> Constant | None:
    """An integer constant as the floats with its bits; None for one whose bits are not known here."""
    if isinstance(value, ConstUndef):
        return ConstUndef(type_, value.poison)
    number = _number(value)
    if number is None or not _size(type_):
        return None
    bits = 8 * _size(type_.scalar)
    count = type_.count if isinstance(type_, ty.VectorType) else 1
    lanes = [ConstFloat(type_.scalar, number >> bits * i & ((1 << bits) - 1)) for i in range(count)]
    return ConstAggregate(type_, lanes) if isinstance(type_, ty.VectorType) else lanes[0]


def _number(value: Value) -> int | None:
    """The bits of a constant; undefined lanes are zero."""
    if isinstance(value, ConstZero | ConstUndef):
        return 0
    bits = 8 * _size(value.type.scalar)
    if isinstance(value, ConstInt):
        return value.value & ((1 << bits) - 1)
    if isinstance(value, ConstFloat):
        return value.bits
    if not isinstance(value, ConstAggregate) or not bits:
        return None
    lanes = [_number(lane) for lane in value.elems]
    return None if None in lanes else sum((lane or 0) << bits * i for i, lane in enumerate(lanes))


__all__ = ["unpack"]
