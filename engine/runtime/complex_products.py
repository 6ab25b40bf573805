"""Bodies of `irgrad.complex_product.*` (`complex_products.ll`; see `normalise/complex_products.py`)."""

from __future__ import annotations

import re
from pathlib import Path

from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.types import Type

__all__ = ["ATTRIBUTES", "HELPERS", "link_complex_products", "product_name"]

HELPERS = frozenset({"__mulsc3", "__muldc3"})
"""Names of the functions that compilers call where both parts of a product are NaN."""
ATTRIBUTES = PURE
_PREFIX = "irgrad.complex_product."
_WIDTHS = {"f64": (), "f32": (("double", "float"), (".f64", ".f32"))}


def product_name(scalar: Type) -> str:
    """Name of the product of complex numbers with parts of this type."""
    return _PREFIX + type_suffix(scalar)


def link_complex_products(text: str) -> str:
    """The module with bodies in place of the declarations."""
    for suffix, changes in _WIDTHS.items() if f"@{_PREFIX}" in text else ():
        text, declared = re.subn(rf"^declare [^@\n]+ @{re.escape(_PREFIX + suffix)}\([^\n]*\n", "", text, flags=re.M)
        if declared:
            body = Path(__file__).with_suffix(".ll").read_text()
            for old, new in changes:
                body = body.replace(old, new)
            text = joined(text, body)
    return text
