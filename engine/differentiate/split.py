"""Split reverse mode of a root whose two halves a program calls itself."""

from __future__ import annotations

from irgrad.engine.differentiate.roots import REVERSE_TAIL, Derived, drain, emit_reverse, forget_globals
from irgrad.engine.differentiate.shared.conventions import Abi, augmented_type, reverse_type
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Function

__all__ = ["REVERSE", "derive_split"]

REVERSE = ".reverse"
"""Ending of the name of the second half of a derivative in split mode."""


def derive_split(unit: Unit, abi: Abi) -> Derived:
    """Add both halves of the reverse derivative to the module, for a program that calls them one by one.

    `{ptr} NAME(A a, A a', arena)` runs the function, `void NAME.reverse(A a, A a', tape)` the reverse sweep. Between
    the two the program may write any memory that it can reach, apart from that of the arguments in `request.kept`.
    """
    root, module = unit.root, unit.module
    name = unit.request.name(abi.shadow)
    augmented = Function(name, augmented_type(root.ftype, abi, unit.width))
    reverse = Function(name + REVERSE, reverse_type(root.ftype, abi, unit.width))
    augmented.tail, reverse.tail = "nounwind", REVERSE_TAIL
    module.functions[name], module.functions[name + REVERSE] = augmented, reverse
    emit_reverse(unit, root, abi, augmented, reverse)
    drain(unit)
    forget_globals(unit, reverse)
    return Derived(name, tuple(sorted(unit.activity.scratch)), unit.facts)
