"""Appends instructions to a block: one method per family of opcodes, types derived from the operands.

Constants are folded where the result is exact and obvious (integer arithmetic on literals, x + 0, x * 1), so that
generated index arithmetic stays readable; everything else is left to LLVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    CallInfo,
    ConstAggregate,
    Constant,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
    const_float,
    is_zero,
)
from irgrad.engine.ir.types import Type


class Builder:
    """Inserts at the end of `block`, or before instruction number `at` when that is set."""

    __slots__ = ("at", "block", "flags", "metadata")

    def __init__(self, block: Block, at: int | None = None) -> None:
        self.block = block
        self.at = at
        self.flags: tuple[str, ...] = ()  # fast-math flags given to float instructions
        self.metadata: dict[str, str] = {}  # attached to every instruction (debug location)

    def insert(self, instr: Instruction) -> Instruction:
        """Put an instruction at the insertion point."""
        instr.block = self.block
        if self.metadata and not instr.metadata:
            instr.metadata = dict(self.metadata)
        if self.at is None:
            self.block.instructions.append(instr)
        else:
            self.block.instructions.insert(self.at, instr)
            self.at += 1
        return instr

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def binary(self, opcode: str, a: Value, b: Value, flags: tuple[str, ...] | None = None) -> Value:
        """Any two-operand arithmetic instruction."""
        if flags is None:
            flags = self.flags if opcode[0] == "f" else ()
        return self.insert(Instruction(opcode, a.type, [a, b], flags=flags))

    def add(self, a: Value, b: Value, flags: tuple[str, ...] = ("nsw",)) -> Value:
        """Integer addition, folded."""
        if is_zero(a):
            return b
        if is_zero(b):
            return a
        if isinstance(a, ConstInt) and isinstance(b, ConstInt):
            return ConstInt(a.type, a.value + b.value)
        return self.binary("add", a, b, flags)

    def sub(self, a: Value, b: Value, flags: tuple[str, ...] = ("nsw",)) -> Value:
        """Integer subtraction, folded."""
        if is_zero(b):
            return a
        if isinstance(a, ConstInt) and isinstance(b, ConstInt):
            return ConstInt(a.type, a.value - b.value)
        return self.binary("sub", a, b, flags)

    def mul(self, a: Value, b: Value, flags: tuple[str, ...] = ("nsw",)) -> Value:
        """Integer multiplication, folded."""
        for x, y in ((a, b), (b, a)):
            if isinstance(x, ConstInt):
                if x.value == 1:
                    return y
                if x.value == 0:
                    return x
                if isinstance(y, ConstInt):
                    return ConstInt(a.type, x.value * y.value)
        return self.binary("mul", a, b, flags)

    def fneg(self, a: Value) -> Value:
        """Float negation."""
        return self.insert(Instruction("fneg", a.type, [a], flags=self.flags))

    def cast(self, opcode: str, value: Value, type_: Type) -> Value:
        """A cast; nothing when the type is the same already."""
        if value.type is type_ and opcode != "bitcast":
            return value
        if value.type is type_:
            return value
        return self.insert(Instruction(opcode, type_, [value]))

    def to_i64(self, value: Value, signed: bool = True) -> Value:
        """An integer widened or narrowed to i64."""
        if isinstance(value, ConstInt):
            return ConstInt(ty.I64, value.value if signed else value.value & ((1 << value.type.bits) - 1))  # type: ignore[attr-defined]
        assert isinstance(value.type, ty.IntType)
        if value.type.bits == 64:
            return value
        opcode = "trunc" if value.type.bits > 64 else "sext" if signed else "zext"
        return self.cast(opcode, value, ty.I64)

    def icmp(self, pred: str, a: Value, b: Value) -> Value:
        """Integer or pointer comparison."""
        return self.insert(Instruction("icmp", _bool_like(a.type), [a, b], pred=pred))

    def fcmp(self, pred: str, a: Value, b: Value) -> Value:
        """Float comparison."""
        return self.insert(Instruction("fcmp", _bool_like(a.type), [a, b], pred=pred))

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        """condition ? a : b."""
        if a is b:
            return a
        return self.insert(Instruction("select", a.type, [cond, a, b]))

    # -- memory -------------------------------------------------------------------------------------------------------

    def alloca(self, elem: Type, count: Value | None = None, align: int = 0, name: str | None = None) -> Instruction:
        """Stack memory."""
        operands = [count if count is not None else ConstInt(ty.I32, 1)]
        return self.insert(Instruction("alloca", ty.PTR, operands, elem=elem, align=align, name=name))

    def load(self, type_: Type, pointer: Value, align: int = 0, tags: Mapping[str, str] | None = None) -> Value:
        """Typed load; `tags`: metadata beside the builder's own."""
        return self.insert(Instruction("load", type_, [pointer], align=align, metadata=self._tagged(tags)))

    def store(
        self, value: Value, pointer: Value, align: int = 0, tags: Mapping[str, str] | None = None
    ) -> Instruction:
        """Typed store; `tags` as for a load."""
        return self.insert(Instruction("store", ty.VOID, [value, pointer], align=align, metadata=self._tagged(tags)))

    def _tagged(self, tags: Mapping[str, str] | None) -> dict[str, str] | None:
        return {**self.metadata, **tags} if tags else None

    def gep(self, elem: Type, base: Value, *indices: Value | int, flags: tuple[str, ...] = ("inbounds",)) -> Value:
        """Pointer arithmetic; Python integers become i64 (i32 where a struct field is selected they work as well)."""
        operands = [base] + [ConstInt(ty.I64, i) if isinstance(i, int) else i for i in indices]
        if len(operands) == 2 and is_zero(operands[1]):
            return base
        return self.insert(Instruction("getelementptr", ty.PTR, operands, elem=elem, flags=flags))

    def field(self, struct: ty.StructType, base: Value, index: int) -> Value:
        """Address of a field of a struct."""
        operands = [base, ConstInt(ty.I64, 0), ConstInt(ty.I32, index)]
        return self.insert(Instruction("getelementptr", ty.PTR, operands, elem=struct, flags=("inbounds",)))

    # -- vectors and aggregates ----------------------------------------------------------------------------------------

    def extractvalue(self, aggregate: Value, *indices: int) -> Value:
        """Part of an aggregate."""
        type_ = aggregate.type
        for i in indices:
            type_ = element_type(type_, i)
        return self.insert(Instruction("extractvalue", type_, [aggregate], indices=indices))

    def insertvalue(self, aggregate: Value, value: Value, *indices: int) -> Value:
        """Aggregate with one part replaced."""
        return self.insert(Instruction("insertvalue", aggregate.type, [aggregate, value], indices=indices))

    def extractelement(self, vector: Value, index: Value | int) -> Value:
        """Lane of a vector."""
        assert isinstance(vector.type, ty.VectorType)
        where = ConstInt(ty.I64, index) if isinstance(index, int) else index
        return self.insert(Instruction("extractelement", vector.type.elem, [vector, where]))

    def insertelement(self, vector: Value, value: Value, index: Value | int) -> Value:
        """Vector with one lane replaced."""
        where = ConstInt(ty.I64, index) if isinstance(index, int) else index
        return self.insert(Instruction("insertelement", vector.type, [vector, value, where]))

    def aggregate(self, type_: Type, values: Sequence[Value]) -> Value:
        """A struct built from its fields."""
        result: Value = ConstUndef(type_, poison=True)
        for i, value in enumerate(values):
            result = self.insertvalue(result, value, i)
        return result

    # -- calls and control flow ----------------------------------------------------------------------------------------

    def call(
        self, callee: Value, args: Sequence[Value], fn_type: ty.FunctionType | None = None, flags: tuple[str, ...] = ()
    ) -> Instruction:
        """A call; the function type is that of a direct callee unless given."""
        if fn_type is None:
            assert isinstance(callee, Function)
            fn_type = callee.ftype
        return self.insert(Instruction("call", fn_type.ret, [*args, callee], call=CallInfo(fn_type), flags=flags))

    def phi(self, type_: Type, incoming: Sequence[tuple[Value, Block]] = (), name: str | None = None) -> Instruction:
        """A phi (the caller keeps phis first)."""
        return self.insert(
            Instruction("phi", type_, [v for v, _ in incoming], blocks=[b for _, b in incoming], name=name)
        )

    def br(self, to: Block) -> Instruction:
        """Unconditional branch."""
        return self.insert(Instruction("br", ty.VOID, blocks=[to]))

    def cond_br(self, cond: Value, true: Block, false: Block) -> Instruction:
        """Conditional branch."""
        return self.insert(Instruction("br", ty.VOID, [cond], blocks=[true, false]))

    def switch(self, value: Value, default: Block, cases: Sequence[tuple[ConstInt, Block]]) -> Instruction:
        """Switch on an integer."""
        return self.insert(
            Instruction("switch", ty.VOID, [value, *(c for c, _ in cases)], blocks=[default, *(b for _, b in cases)])
        )

    def ret(self, value: Value | None = None) -> Instruction:
        """Return."""
        return self.insert(Instruction("ret", ty.VOID, [] if value is None else [value]))

    def unreachable(self) -> Instruction:
        """Marks a point that is never reached."""
        return self.insert(Instruction("unreachable", ty.VOID))


def element_type(type_: Type, index: int) -> Type:
    """Type of a part of a struct, array or vector."""
    if isinstance(type_, ty.StructType):
        assert type_.fields is not None
        return type_.fields[index]
    assert isinstance(type_, ty.ArrayType | ty.VectorType)
    return type_.elem


def zero(type_: Type) -> Constant:
    """The constant whose bits are all zero."""
    if isinstance(type_, ty.IntType):
        return ConstInt(type_, 0)
    if isinstance(type_, ty.FloatType):
        return const_float(type_, 0.0)
    return ConstZero(type_)


def _bool_like(type_: Type) -> Type:
    return ty.vector(type_.count, ty.I1) if isinstance(type_, ty.VectorType) else ty.I1

def mask_lanes(mask: Value, count: int) -> list[int | None]:
    """Lane numbers of a shuffle mask; None where the lane is undefined."""
    if isinstance(mask, ConstZero):
        return [0] * count
    if isinstance(mask, ConstUndef):
        return [None] * count
    assert isinstance(mask, ConstAggregate)
    return [e.value if isinstance(e, ConstInt) else 0 if isinstance(e, ConstZero) else None for e in mask.elems]


def moved_lanes(instr: Instruction) -> Iterator[tuple[Value, int, Value, int, int]]:
    """(source, lane, result, lane, bytes of a lane) of what moves elements of vectors; none for unknown lanes."""
    size = ty.store_size(instr.type.scalar)
    first, second, *where = instr.operands
    if instr.opcode == "shufflevector":
        assert isinstance(instr.type, ty.VectorType) and isinstance(first.type, ty.VectorType)
        for at, lane in enumerate(mask_lanes(where[0], instr.type.count)):
            if lane is not None:
                yield (first, second)[lane // first.type.count], lane % first.type.count, instr, at, size
        return
    place = where[0] if where else second
    if not isinstance(place, ConstInt):
        return
    if instr.opcode == "extractelement":
        yield first, place.value, instr, 0, size
        return
    assert isinstance(instr.type, ty.VectorType)
    yield second, 0, instr, place.value, size
    for at in range(instr.type.count):
        if at != place.value:
            yield first, at, instr, at, size
