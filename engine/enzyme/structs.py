"""Structs that are passed by value: which registers are one, and where its bytes are among a call's arguments.

The two ends of a call need not agree. A struct of at most 16 bytes is in registers, one for each 8 bytes, while there
are some left, and then in memory (`byval`) or, up to 8 bytes, in an integer; a call of the notation has more arguments
than the function that it differentiates. So a struct is followed by its bytes, whatever each end made of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.differentiate.layout.leaves import fields_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Module
from irgrad.engine.ir.text.cursor import Cursor
from irgrad.engine.ir.types import Type

__all__ = ["Given", "begins_with_pointer", "bytes_of", "held", "is_part", "offsets", "pointee", "spread", "together"]

_PART = re.compile(r"(.*)\.coerce(\d*)")


@dataclass(frozen=True, slots=True)
class Given:
    """A value among the arguments of a call: one argument or the registers of a struct; with `memory`, an address.

    `at`: bytes from there to what is wanted; `bits`: it is part of a struct, so that its bytes count and not its type.
    """

    args: tuple[int, ...]
    memory: bool = False
    at: int = 0
    bits: bool = False

    @property
    def first(self) -> int:
        """The first argument, which is the only one but for registers that are put into memory."""
        return self.args[0]


def pointee(module: Module, attributes: str, word: str) -> Type | None:
    """The type in `sret(%struct.S)` or `byval(%struct.S)`; None where there is none."""
    found = re.search(rf"\b{word}\((.*)", attributes)
    return Cursor(module, found[1]).type_() if found is not None else None


def held(module: Module, formal: Argument) -> Type | None:
    """The struct that a parameter holds in memory of its own."""
    return pointee(module, formal.attrs, "byval")


def is_part(formal: Argument) -> bool:
    """A struct in a register, or a part of one: the compiler calls them `p.coerce` or `p.coerce0`, `p.coerce1`."""
    return ".coerce" in (formal.name or "")


def together(formals: Sequence[Argument], at: int, size: int) -> list[Argument]:
    """The parameters that are one value: those that names say, or that hold `size` bytes which the call has in one."""
    names = [_PART.fullmatch(formal.name or "") for formal in formals[at : at + 2]]
    first, second = (*names, None)[:2]
    count = 1
    if first and second and first[1] == second[1] and first[2].startswith("0") and second[2].startswith("1"):
        count = 2
    while not first and at + count < len(formals) and spread([f.type for f in formals[at : at + count]]) < size:
        count += 1
    return list(formals[at : at + count])


def offsets(kinds: Sequence[Type]) -> list[int]:
    """Where each register of a struct begins."""
    return [spread(kinds[:i]) for i in range(len(kinds))]


def begins_with_pointer(kind: Type) -> bool:
    """Whether the first bytes are a pointer."""
    while kind.is_aggregate and fields_of(kind):
        kind = fields_of(kind)[0]
    return kind.is_ptr


def spread(kinds: Sequence[Type]) -> int:
    """The bytes of as many registers in memory."""
    return sum(-(-ty.store_size(kind) // 8) * 8 for kind in kinds)


def bytes_of(kinds: Sequence[Type]) -> int:
    """How many bytes of a struct are in its registers."""
    return offsets(kinds)[-1] + ty.store_size(kinds[-1])
