"""A rule: what it is for, the types it matches, and its body."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from irgrad.rules.definitions.types import Activity, AnyWidth, Argument, Batched, Kind

if TYPE_CHECKING:
    from irgrad.rules.expressions.row import Row

__all__ = ["Form", "Key", "Rule"]

Form = Literal[
    "partials", "calls", "foreign", "host", "inactive", "opt_out", "stop", "linear", "allocator", "registered"
]


@dataclass(frozen=True, slots=True)
class Key:
    """kind: "function", "opcode", or the name of a construct ("reduce", ...); name; scope: "" or a module's digest."""

    kind: str
    name: str
    scope: str = ""

    def __str__(self) -> str:
        return self.name if self.kind == "function" else f"{self.kind}({self.name})"


@dataclass(frozen=True, eq=False)
class Rule:
    """types: (mode, result, *arguments); `open`: any number of further arguments may follow.

    names: the body's parameters behind `ctx`; place: where it was defined; layer: the layer's name;
    options: what its form needs besides (symbols of foreign functions, sizes of allocators, ...)
    """

    key: Key
    form: Form
    types: tuple[Kind, ...]
    open: bool
    body: Callable[..., Any] | None
    names: tuple[str, ...]
    takes_result: bool
    place: str
    digest: str
    layer: str
    options: dict[str, Any] = field(default_factory=dict)
    row: Row | None = None
    _rows: dict[str, Row] = field(default_factory=dict)

    @property
    def mode(self) -> Kind:
        return self.types[0]

    @property
    def batched(self) -> bool:
        """Whether it is for whole batches: functions in C that a batch calls once for all samples of a block."""
        return any(issubclass(kind, Batched) for kind in self.types[2:])

    @property
    def lanes(self) -> bool:
        """Whether it gets all tangents or cotangents of a derivative at once: its mode says for which widths."""
        width = next(iter(self.mode.parameters), 1)
        return width is AnyWidth or width > 1

    @property
    def signature(self) -> str:
        """The rule as it was declared, for messages."""
        mode, ret, *rest = self.types
        if self.open:
            parts = [str(t) for t in rest] + ["..."]
        else:
            names = self.names if len(self.names) == len(rest) else ("",) * len(rest)
            parts = [f"{n}: {t}" if n else str(t) for n, t in zip(names, rest, strict=True)]
        tail = [] if mode.__name__ == "Mode" else [f"mode={mode}"]
        tail += [] if ret is Argument or ret is Activity else [f"ret={ret}"]
        return f"{self.key}({', '.join([*parts, *tail])})"

    def partials(self, letters: str) -> Row:
        """The row for a call whose arguments are floats ("f"), integers ("i") and pointers ("p"). Raises RuleError."""
        if self.row is not None:
            return self.row
        found = self._rows.get(letters)
        if found is None:
            from irgrad.rules.expressions.row import Row
            from irgrad.rules.expressions.tracing import trace_partials

            assert self.body is not None
            home = self.options.get("tracer")
            tracer = importlib.import_module(home).trace_partials if home is not None else trace_partials
            partials = tracer(self.body, letters, str(self.key), self.place, takes_result=self.takes_result)
            found = self._rows[letters] = Row(str(self.key), letters, partials)
        return found
