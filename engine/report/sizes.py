"""Bytes of the tape: pieces that are allocated in loops, and arrays over iterations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from irgrad.engine.report.formulas import Formula, constant, summed

__all__ = ["ALIGNED", "Size", "total_of"]

ALIGNED = 16
"""Bytes to which the arena rounds each piece up (see `engine/runtime/arena.ll`)."""


@dataclass(frozen=True, slots=True)
class Size:
    """Pieces of the tape of one kind.

    item:    bytes of one element; extents: how many elements a piece has along each loop of an array (none for a
             record): a formula of the loop's iterations, and the elements beyond them
    outer:   the loops in each of whose iterations a piece is made, outermost first: number and iterations
    extra:   bytes of a piece besides
    exact:   False where there may be less: a branch on the way, rows that are left out
    """

    item: int
    extents: tuple[tuple[Formula, int], ...] = ()
    outer: tuple[tuple[int, Formula], ...] = ()
    extra: int = 0
    exact: bool = True

    @property
    def piece(self) -> Formula:
        """The bytes of one piece."""
        total = constant(self.item)
        for count, more in self.extents:
            total = total * (count + more)
        return total + self.extra

    @property
    def total(self) -> Formula | None:
        """The bytes of all pieces, where it has a closed form for counts that are not negative. Rounding left out."""
        found: Formula | None = self.piece
        for loop, count in reversed(self.outer):
            found = summed(found, loop, count) if found is not None else None
        return found

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The bytes for these values of the arguments, each piece rounded as the arena does."""
        return self._evaluate(sizes, 0, {})

    def _evaluate(self, sizes: Mapping[str, int], at: int, iterations: dict[int, int]) -> int:
        if at == len(self.outer):
            counts = (max(0, count.evaluate(sizes, iterations)) + more for count, more in self.extents)
            return -(-(self.item * math.prod(counts) + self.extra) // ALIGNED) * ALIGNED
        loop, count = self.outer[at]
        times = max(0, count.evaluate(sizes, iterations))
        inside = [count for _, count in self.outer[at + 1 :]] + [count for count, _ in self.extents]
        if not any(loop in formula.iterations() for formula in inside):
            return times * self._evaluate(sizes, at + 1, iterations) if times else 0
        return sum(self._evaluate(sizes, at + 1, {**iterations, loop: k}) for k in range(times))

    def __str__(self) -> str:
        text = str(self.total) if self.total is not None else self._sum()
        return text if self.exact else f"at most {text}"

    def _sum(self) -> str:
        return f"the sum of {self.piece} over {len(self.outer)} loops around it"


def total_of(sizes: Iterable[Size]) -> str:
    """The bytes of several in words."""
    total: Formula | None = constant(0)
    rows = list(sizes)
    for size in rows:
        found = size.total
        total = total + found if total is not None and found is not None else None
    if total is None:
        return " + ".join(map(str, rows))
    most = "" if all(size.exact for size in rows) else "at most "
    return f"{most}{total}{'' if total.const == 0 else ' bytes'}"
