"""How the shadows of memory lie: one policy for every access, so that another layout is another class.

    Interleaved(W)   the lanes of an element next to each other, in memory that is W times as large (see `lanes.py`)
    Separate(W)      W memories like the primal's, each with one lane (see `separate_shadows.py`)
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.layout import lanes, separate_shadows
from irgrad.engine.differentiate.layout.shadow_types import Apart, shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Instruction, Value
from irgrad.engine.ir.types import Type

__all__ = ["PRIMAL", "Interleaved", "Separate", "ShadowMemory", "memory_of"]


class ShadowMemory:
    """A layout for `width` tangents or cotangents at once.

    scale: how many times as large shadow memory is as the primal's; separate: whether each lane has its own pointer
    """

    scale: int
    separate: bool

    def __init__(self, width: int) -> None:
        self.width = width

    def load(
        self, b: Builder, type_: Type, pointer: Value, align: int = 0, metadata: dict[str, str] | None = None
    ) -> Value:
        """The shadow of a value of this (primal) type. `align` is that of the primal's access."""
        raise NotImplementedError

    def store(
        self, b: Builder, type_: Type, value: Value, pointer: Value, align: int = 0,
        metadata: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Store the shadow of a value of this (primal) type."""
        raise NotImplementedError

    def moved(self, b: Builder, pointer: Value, offset: int) -> Value:
        """The shadow of a pointer, some bytes of the primal's memory further."""
        raise NotImplementedError

    def advanced(self, b: Builder, pointer: Value, offset: Value) -> Value:
        """The shadow of a pointer, further by a number of the primal's bytes that is known when the code runs."""
        return b.gep(ty.I8, pointer, self.scaled(b, offset), flags=())

    def address(self, b: Builder, instr: Instruction, operands: list[Value]) -> Value:
        """The shadow of a getelementptr on these operands."""
        raise NotImplementedError

    def structural(
        self, b: Builder, instr: Instruction, operands: list[Value], moved: Sequence[int]
    ) -> Value | None:
        """The shadow of a data movement, on operands of which the moved ones are shadows; None where that is the same
        operation, on what the operands have become."""
        raise NotImplementedError

    def allocate(self, b: Builder, instr: Instruction, count: Sequence[Value]) -> Value:
        """Stack memory for the shadows of an alloca of so many elements."""
        raise NotImplementedError

    def each(self, b: Builder, pointer: Value) -> list[Value]:
        """The pointers behind which the shadow lies."""
        return [pointer]

    def scaled(self, b: Builder, size: Value) -> Value:
        """A length or an offset in bytes of the primal's memory, in its shadow."""
        return size if self.scale == 1 else b.mul(b.to_i64(size), ConstInt(ty.I64, self.scale))

    @property
    def suffix(self) -> str:
        """Ending of the name of a copy helper (see runtime/helpers.py)."""
        return "" if self.scale == 1 else f".x{self.scale}"

    def places(self, b: Builder, size: Value, period: int, offset: int) -> list[Value]:
        """Arguments of a copy helper: bytes, period and offset in shadow memory."""
        return [self.scaled(b, size), ConstInt(ty.I64, period * self.scale), ConstInt(ty.I64, offset * self.scale)]

    def helpers(
        self, b: Builder, kind: Type, size: Value, period: int, offset: int
    ) -> list[tuple[str, list[Value]]]:
        """Endings of the copy helpers for floats of this type, and their arguments; one for all lanes, apart from long
        doubles, whose lanes are 16 bytes apart."""
        if self.scale > 1 and kind is ty.F80:
            first, step = offset * self.scale, ConstInt(ty.I64, period * self.scale)
            return [(str(kind), [self.scaled(b, size), step, ConstInt(ty.I64, first + 16 * j)])
                    for j in range(self.scale)]  # fmt: skip
        return [(f"{kind}{self.suffix}", self.places(b, size, period, offset))]


class Interleaved(ShadowMemory):
    """The lanes of an element side by side."""

    separate = False

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.scale = width

    def load(
        self, b: Builder, type_: Type, pointer: Value, align: int = 0, metadata: dict[str, str] | None = None
    ) -> Value:
        return lanes.load(b, type_, pointer, self.width, align, metadata)

    def store(
        self, b: Builder, type_: Type, value: Value, pointer: Value, align: int = 0,
        metadata: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        lanes.store(b, type_, value, pointer, self.width, align, metadata)

    def moved(self, b: Builder, pointer: Value, offset: int) -> Value:
        return lanes.moved(b, pointer, offset, self.width)

    def address(self, b: Builder, instr: Instruction, operands: list[Value]) -> Value:
        return lanes.gep(b, instr, operands, self.width)

    def structural(
        self, b: Builder, instr: Instruction, operands: list[Value], moved: Sequence[int]
    ) -> Value | None:
        return lanes.structural(b, instr, operands, self.width)

    def allocate(self, b: Builder, instr: Instruction, count: Sequence[Value]) -> Value:
        kind = shadow_type(instr.type, self.width)
        tags = {k: v for k, v in instr.metadata.items() if k in lanes.SHADOW_METADATA}
        twin = Instruction("alloca", kind, list(count), flags=instr.flags, elem=instr.elem, align=instr.align,
                           indices=instr.indices, metadata=tags)  # fmt: skip
        lanes.widen_alloca(twin, self.width)
        return b.insert(twin)


class Separate(ShadowMemory):
    """A memory like the primal's for each lane."""

    scale = 1
    separate = True

    def load(
        self, b: Builder, type_: Type, pointer: Value, align: int = 0, metadata: dict[str, str] | None = None
    ) -> Value:
        align = lanes.access_align(type_, align)
        return separate_shadows.load(b, type_, pointer, self.width, align, metadata or {})

    def store(
        self, b: Builder, type_: Type, value: Value, pointer: Value, align: int = 0,
        metadata: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        align = lanes.access_align(type_, align)
        separate_shadows.store(b, type_, value, pointer, self.width, align, metadata or {})

    def moved(self, b: Builder, pointer: Value, offset: int) -> Value:
        return separate_shadows.moved(b, pointer, offset, self.width)

    def advanced(self, b: Builder, pointer: Value, offset: Value) -> Value:
        return separate_shadows.moved(b, pointer, offset, self.width)

    def address(self, b: Builder, instr: Instruction, operands: list[Value]) -> Value:
        return separate_shadows.lanewise(b, instr, operands, (0,), self.width)

    def structural(
        self, b: Builder, instr: Instruction, operands: list[Value], moved: Sequence[int]
    ) -> Value | None:
        numbers = instr.type.is_fp and all(instr.operands[i].type.is_fp for i in moved)
        if not numbers and instr.opcode not in ("extractvalue", "insertvalue"):
            return separate_shadows.lanewise(b, instr, operands, moved, self.width)
        return lanes.structural(b, instr, operands, self.width)

    def allocate(self, b: Builder, instr: Instruction, count: Sequence[Value]) -> Value:
        return separate_shadows.alloca(b, instr, count, self.width)

    def each(self, b: Builder, pointer: Value) -> list[Value]:
        return separate_shadows.each(b, pointer, self.width)


def memory_of(width: int) -> ShadowMemory:
    """The layout that a width asks for."""
    return Separate(width) if isinstance(width, Apart) else Interleaved(width)


PRIMAL = Interleaved(1)
"""The memory of the primal is that of a single lane."""
