"""Places of the entries of a sparse matrix, and colours of its columns: columns of one colour share no row."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Pattern", "colours", "count"]

Array = np.ndarray[Any, Any]


class Pattern:
    """Places of entries, sorted by row, then column, without repetition; and the colours of its columns and rows."""

    __slots__ = ("_by_column", "_by_row", "cols", "rows")

    def __init__(self, rows: Array, cols: Array) -> None:
        self.rows = rows
        self.cols = cols
        self._by_column: Array | None = None
        self._by_row: Array | None = None

    def by_column(self, columns: int) -> Array:
        """Colours of the columns."""
        if self._by_column is None:
            self._by_column = colours(self.rows, self.cols, columns)
        return self._by_column

    def by_row(self, rows: int) -> Array:
        """Colours of the rows."""
        if self._by_row is None:
            self._by_row = colours(self.cols, self.rows, rows)
        return self._by_row

    def joined(self, other: Pattern, shape: tuple[int, int]) -> Pattern:
        """The places of both."""
        return Pattern.of(np.append(self.rows, other.rows), np.append(self.cols, other.cols), shape)

    def beyond(self, other: Pattern, shape: tuple[int, int], most: int = 3) -> str:
        """The places that the other does not have, in words: the first ones, and how many there are."""
        width = max(1, shape[1])
        flat = np.setdiff1d(self.rows * width + self.cols, other.rows * width + other.cols)
        named = ", ".join(f"({place // width}, {place % width})" for place in flat[:most].tolist())
        return named + (f" and {len(flat) - most} more" if len(flat) > most else "")

    @staticmethod
    def of(rows: Any, cols: Any, shape: tuple[int, int]) -> Pattern:
        """Sorted and without repetition."""
        flat = np.unique(np.asarray(rows, np.int64) * shape[1] + np.asarray(cols, np.int64))
        return Pattern(flat // max(1, shape[1]), flat % max(1, shape[1]))


def colours(rows: Array, cols: Array, size: int) -> Array:
    """A colour for each of `size` columns, -1 for empty ones: columns of one colour share no row.

    Greedy colouring, columns with the most rows first.
    """
    order = np.argsort(cols, kind="stable")
    ends = np.searchsorted(cols[order], np.arange(size + 1))
    by_column = rows[order].tolist()
    found = np.full(size, -1, np.int64)
    used: dict[int, int] = {}  # row -> colours in it, as bits
    for column in np.argsort(-(ends[1:] - ends[:-1]), kind="stable").tolist():
        members = by_column[ends[column] : ends[column + 1]]
        if not members:
            break
        taken = 0
        for row in members:
            taken |= used.get(row, 0)
        bit = ~taken & (taken + 1)
        found[column] = bit.bit_length() - 1
        for row in members:
            used[row] = used.get(row, 0) | bit
    return found


def count(colour: Array) -> int:
    return int(colour.max(initial=-1)) + 1
