"""The rules of differentiation, as tables: floor 1, which knows nothing of engines.

    find("sinf")              the row of a function and its float type
    opcode_row("fmul")        the row of an opcode
    facts("malloc")           what a well-known callee does to memory
    rule("name"), ...         rules of the user (docs/rules.md), and the types on which they dispatch
    emit(expr, context, ...)  a partial derivative, read through any context

Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irgrad.rules.constructs import map, reduce, scan, scatter  # noqa: A004
    from irgrad.rules.definitions.types import (
        Active,
        Activity,
        AnyWidth,
        AoS,
        Argument,
        Array,
        Batched,
        Const,
        Duplicated,
        DuplicatedNoNeed,
        Element,
        Float,
        Forward,
        Integer,
        Known,
        Mode,
        Ptr,
        Reverse,
        SoA,
        Struct,
        c64,
        c128,
        f16,
        f32,
        f64,
        i1,
        i8,
        i16,
        i32,
        i64,
    )
    from irgrad.rules.effects import CallFacts, facts
    from irgrad.rules.expressions.expr import ZERO, Expr, cost, emit, needs
    from irgrad.rules.expressions.row import Row
    from irgrad.rules.keys import opcode
    from irgrad.rules.layers import current, layer, pack
    from irgrad.rules.lookup import Match, find, opcode_row, reduction, spellings
    from irgrad.rules.registry import (
        alias,
        allocator,
        extern,
        foreign,
        inactive,
        linear,
        opt_out,
        rule,
        stop_gradient,
    )
    from irgrad.rules.report import audit, show, which
    from irgrad.rules.table import rows

_TYPES = (
    "Active Activity AnyWidth AoS Argument Array Batched Const Duplicated DuplicatedNoNeed Element Float Forward "
    "Integer Known Mode Ptr Reverse SoA Struct c128 c64 f16 f32 f64 i1 i16 i32 i64 i8"
).split()
_REGISTRY = "alias allocator extern foreign inactive linear opt_out rule stop_gradient".split()

_HOMES = {
    **dict.fromkeys(_TYPES, "definitions.types"),
    **dict.fromkeys(_REGISTRY, "registry"),
    **dict.fromkeys(("layer", "pack", "current"), "layers"),
    "opcode": "keys",
    **dict.fromkeys(("audit", "show", "which"), "report"),
    **dict.fromkeys(("CallFacts", "facts"), "effects"),
    **dict.fromkeys(("ZERO", "Expr", "cost", "emit", "needs"), "expressions.expr"),
    **dict.fromkeys(("Match", "find", "opcode_row", "reduction", "spellings"), "lookup"),
    **dict.fromkeys(("map", "reduce", "scan", "scatter"), "constructs"),
    "Row": "expressions.row",
    "rows": "table",
}
__all__ = [
    "ZERO",
    "Active",
    "Activity",
    "AnyWidth",
    "AoS",
    "Argument",
    "Array",
    "Batched",
    "CallFacts",
    "Const",
    "Duplicated",
    "DuplicatedNoNeed",
    "Element",
    "Expr",
    "Float",
    "Forward",
    "Integer",
    "Known",
    "Match",
    "Mode",
    "Ptr",
    "Reverse",
    "Row",
    "SoA",
    "Struct",
    "alias",
    "allocator",
    "audit",
    "c64",
    "c128",
    "cost",
    "current",
    "emit",
    "extern",
    "f16",
    "f32",
    "f64",
    "facts",
    "find",
    "foreign",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "inactive",
    "layer",
    "linear",
    "map",
    "needs",
    "opcode",
    "opcode_row",
    "opt_out",
    "pack",
    "reduce",
    "reduction",
    "rows",
    "rule",
    "scan",
    "scatter",
    "show",
    "spellings",
    "stop_gradient",
    "which",
]


def __getattr__(name: str) -> Any:
    """Import the home of `name` on first use. Raises AttributeError for a name that is not here."""
    if name not in _HOMES:
        raise AttributeError(f"module 'irgrad.rules' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"irgrad.rules.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
