"""The built-in rows, one family of functions per file. `rows()` imports them on first use."""

from __future__ import annotations

import importlib
from functools import cache

from irgrad.rules.expressions.row import Row

_FILES = ("arithmetic", "exponential", "trigonometric", "hyperbolic", "special", "rounding_and_minmax", "complex",
          "pointer_outputs")  # fmt: skip


@cache
def rows() -> dict[str, Row]:
    """Every built-in row by its key. Raises ValueError when two rows have one key."""
    table: dict[str, Row] = {}
    for name in _FILES:
        for row in importlib.import_module(f"irgrad.rules.table.{name}").family.rows:
            if row.key in table:
                raise ValueError(f"two rules with the key `{row.key}`")
            table[row.key] = row
    return table
