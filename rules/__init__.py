"""The rules of differentiation, as tables: floor 1, which knows nothing of engines.

    find("sinf")              the row of a function and its float type
    opcode_row("fmul")        the row of an opcode
    facts("malloc")           what a well-known callee does to memory
    emit(expr, context, ...)  a partial derivative, read through any context

Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irgrad.rules.effects import CallFacts, facts
    from irgrad.rules.expr import ZERO, Expr, cost, emit, needs
    from irgrad.rules.lookup import Match, find, opcode_row, reduction, spellings
    from irgrad.rules.row import Row
    from irgrad.rules.table import rows

_HOMES = {
    **dict.fromkeys(("CallFacts", "facts"), "effects"),
    **dict.fromkeys(("ZERO", "Expr", "cost", "emit", "needs"), "expr"),
    **dict.fromkeys(("Match", "find", "opcode_row", "reduction", "spellings"), "lookup"),
    "Row": "row",
    "rows": "table",
}

__all__ = [
    "ZERO",
    "CallFacts",
    "Expr",
    "Match",
    "Row",
    "cost",
    "emit",
    "facts",
    "find",
    "needs",
    "opcode_row",
    "reduction",
    "rows",
    "spellings",
]


def __getattr__(name: str) -> Any:
    """Import the home of `name` on first use. Raises AttributeError for a name that is not here."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'irgrad.rules' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"irgrad.rules.{home}"), name)
    globals()[name] = value
    return value
