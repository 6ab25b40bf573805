"""The predicates of `icmp`: what holds where one does not, and what holds of the operands the other way round.

Source: LLVM's `CmpInst::getInversePredicate` and `getSwappedPredicate`, as words.
"""

from __future__ import annotations

from typing import Final

__all__ = ["INVERSE", "SWAPPED"]

INVERSE: Final = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult",
    "ugt": "ule", "ule": "ugt",
}  # fmt: skip
"""not (a p b) is a INVERSE[p] b."""
SWAPPED: Final = {
    "eq": "eq", "ne": "ne", "slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle", "ult": "ugt", "ugt": "ult",
    "ule": "uge", "uge": "ule",
}  # fmt: skip
"""a p b is b SWAPPED[p] a."""
