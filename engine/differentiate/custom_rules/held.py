"""Derivatives of numbers by lanes, held in memory while a body runs lane after lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules.symbols import Code
from irgrad.engine.differentiate.custom_rules.views import View
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value

if TYPE_CHECKING:
    pass

__all__ = ["Held", "lane_view"]


class Held:
    """The W derivatives of a number, side by side on the stack."""

    def __init__(self, code: Code, type_: ty.Type, width: int, start: Value | None) -> None:
        """start: what they are first; None for zeros."""
        self.code, self.element, self.width = code, type_, width
        self.type = shadow_type(type_, int(width))
        self.slot = code.stack(self.type)
        code.b.store(zero_of(self.type) if start is None else start, self.slot)

    @property
    def view(self) -> View:
        """Them as an array of W elements."""
        return lane_view(self.code, self.slot, self.element, (), self.width)

    @property
    def value(self) -> Value:
        """What they are now."""
        return self.code.b.load(self.type, self.slot)


def lane_view(code: Code, memory: Value, element: ty.Type | None, shape: Any, width: int) -> View:
    """Shadow memory of an array as an array with an axis more, that of lanes."""
    return View(code, memory, element, (*shape, code.number(int(width))), lanes=True)
