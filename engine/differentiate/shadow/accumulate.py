"""The one place where an adjoint that lies in memory grows."""

from __future__ import annotations

from collections.abc import Callable

from irgrad.engine.differentiate.shadow.carried import add
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Value

__all__ = ["accumulate"]


def accumulate(
    unit: Unit, b: Builder, value: Value, amount: Value, load: Callable[[], Value],
    store: Callable[[Value, Value], object],
) -> None:  # fmt: skip
    """Adjoint of `value` += amount, where `load()` reads it and `store(total, before)` writes it.

    Accumulators of values, shadow memory behind loads and the sums of windows come through here, so that another way of
    adding (lanes at once, atomically, in another order) is decided in this function. What a rule's body or a copied
    block of memory adds is code of its own (`custom_rules/`, `runtime/helpers.py`).
    """
    b.flags = unit.flags
    before = load()
    total = add(unit, b, value, before, amount)
    b.flags = ()
    store(total, before)
