"""Products with a strong zero: one that stands for "does not depend", and makes the product zero whatever it meets.

    irgrad.strong_mul(a, s)         a == 0 ? 0 : a * s
    irgrad.strong_mul_both(a, s)    and 0 where s == 0, unless a is NaN

They are calls of functions that get their bodies when machine code is made, not a comparison and a product at once:
where `a` is zero by chance its tangent need not be, and a derivative of the comparison would lose it. As functions they
have a row (`rules/table/arithmetic.py`), whose products are strong in turn: (a s)' = a' s + a s'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.model import Value
from irgrad.engine.runtime.strong_products import STRONG

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["multiply"]


def multiply(unit: Unit, b: Builder, a: Value, s: Value, name: str = STRONG[0]) -> Value:
    """a times s, with a strong zero in `a`."""
    ftype = ty.function(a.type, (a.type, a.type))
    return b.call(unit.declare(f"irgrad.{name}.{type_suffix(a.type)}", ftype, PURE), [a, s])
