"""How the values that a call returns lie in the result that it is declared with.

The program says what the result is, as a number, registers or a struct in memory. A struct among the values is returned
as a whole, its integers zero, or as the numbers in it. Of one in registers only a bound of its size and alignment is
known: what fits the declared result, with each number where the program has one of that type, is what is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from irgrad.engine.enzyme.results import Numbers, floats_of
from irgrad.engine.enzyme.structs import bytes_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import Type

__all__ = ["Declared", "Move", "Part", "Returned", "arrange"]

Move = tuple[int, Type, str, int]
"""To an offset of the result: a type, the memory that it is loaded from, and the offset there."""


@dataclass(frozen=True, slots=True)
class Part:
    """One register of a value, or all of it: the memory that holds it (from `start` on), and the numbers in it."""

    type: Type
    slot: str
    at: int = 0
    numbers: Numbers = ()
    start: int = 0


@dataclass(frozen=True, slots=True)
class Returned:
    """A value to return. `loose`: it may be a struct of which only the registers are known; `alone`: its numbers may be
    returned without the rest, `only`: they have to."""

    parts: tuple[Part, ...]
    loose: bool = False
    alone: bool = False
    only: bool = False

    @property
    def numbers(self) -> Numbers:
        """All its numbers."""
        return tuple((part.at + at, kind) for part in self.parts for at, kind in part.numbers)

    @property
    def nothing(self) -> bool:
        """It may be left out: there are no numbers in it."""
        return (self.alone or self.only) and not self.numbers

    def __str__(self) -> str:
        kinds = ", ".join(str(part.type) for part in self.parts)
        return kinds if len(self.parts) == 1 else f"{{ {kinds} }}"

    def forms(self) -> Iterator[list[_Field]]:
        """The ways in which it may be returned, the likeliest first."""
        if not self.only:
            moves = tuple((part.at, part.type, part.slot, part.start) for part in self.parts)
            kinds = [part.type for part in self.parts]
            extent = bytes_of(kinds)
            for align in _alignments(kinds) if self.loose else [max(map(ty.align_of, kinds))]:
                yield [_Field(-(-extent // align) * align, align, moves, self.numbers)]
        if self.alone or self.only:
            alone = [(kind, part.slot, part.start + at) for part in self.parts for at, kind in part.numbers]
            yield [_Field(ty.size_of(move[0]), ty.align_of(move[0]), ((0, *move),), ((0, move[0]),)) for move in alone]


@dataclass(frozen=True, slots=True)
class _Field:
    size: int
    align: int
    moves: tuple[Move, ...]
    numbers: Numbers


def _alignments(kinds: Iterable[Type]) -> list[int]:
    """Those that a struct in these registers may have."""
    least, most = 1, 1
    for kind in kinds:
        known = ty.align_of(kind.scalar)
        most = max(most, min(known, 8) if kind.is_int else known)
        least = max(least, 1 if kind.is_int else known)
    return [align for align in (16, 8, 4, 2, 1) if least <= align <= most]


@dataclass(frozen=True, slots=True)
class Declared:
    """The result of a call: `kind`, or None for memory of unknown type; `memory`: it is a struct of exactly that type,
    and not what compilers make of one; `more`: it may have room for other values."""

    kind: Type | None
    memory: bool
    more: bool = False

    def takes(self, size: int, *, exact: bool) -> bool:
        """Whether values of this size fit."""
        if self.kind is None:
            return True
        room = ty.size_of(self.kind)
        if self.more and size < room:
            return True
        return size == room if exact or isinstance(self.kind, ty.FloatType) else -(-size // 8) == -(-room // 8)

    def suits(self, at: int, kind: Type, *, exact: bool) -> bool:
        """Whether a number may stand there."""
        if self.kind is None:
            return True
        size = ty.store_size(kind)
        near = [(to, other) for to, other in floats_of(self.kind) if to < at + size and at < to + ty.store_size(other)]
        return near == [(at, kind)] or (not near and not (exact and self.memory))


def arrange(values: Sequence[Returned], declared: Declared) -> list[Move] | None:
    """Where each part of the values goes; None where they do not fit."""
    for exact in (True, False):
        plans: dict[tuple[int, int], list[Move]] = {(0, 1): []}  # (bytes, alignment) so far; the first way counts
        for value in values:
            further: dict[tuple[int, int], list[Move]] = {}
            for fields in value.forms():
                for start, moves in plans.items():
                    placed = _placed(fields, start, declared, exact=exact)
                    if placed is not None:
                        further.setdefault(placed[0], [*moves, *placed[1]])
            plans = further
        for (end, align), moves in plans.items():
            if moves and declared.takes(-(-end // align) * align, exact=exact):
                return moves
    return None


def _placed(
    fields: Sequence[_Field], start: tuple[int, int], declared: Declared, *, exact: bool
) -> tuple[tuple[int, int], list[Move]] | None:
    end, align = start
    moves: list[Move] = []
    for field in fields:
        at = -(-end // field.align) * field.align
        if not all(declared.suits(at + to, kind, exact=exact) for to, kind in field.numbers):
            return None
        moves += [(at + to, kind, slot, back) for to, kind, slot, back in field.moves]
        end, align = at + field.size, max(align, field.align)
    return (end, align), moves
