"""Derivatives of functions that others call: made on first use, filled later."""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.shared.conventions import augmented_type, reverse_type
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Function
from irgrad.engine.normalise.iterations import OWN_FIELDS, OWN_PLACES, READ_FIRST, UPDATED

__all__ = ["combined_function", "keep_own_places", "split_functions"]

_SAID = (OWN_FIELDS, OWN_PLACES, READ_FIRST, UPDATED)


def keep_own_places(fn: Function, target: Function, shadows: Sequence[bool]) -> None:
    """What is said of the places behind an argument holds for those behind its shadow, which follows it if it has one.
    shadows: which arguments have one."""
    position = 0
    for argument, has_shadow in zip(fn.args, shadows, strict=False):
        end = position + 1 + has_shadow
        said = " ".join(word for word in argument.attrs.split() if word.startswith(_SAID))
        for derived in target.args[position:end] if said else ():
            derived.attrs = said if derived.type.is_ptr else ""
        position = end


def split_functions(unit: Unit, fn: Function) -> tuple[Function, Function]:
    """(augmented, reverse) of `fn`, queued for generation on first use."""
    if (fn, "augmented") not in unit.derived:
        abi = unit.abis[fn]
        augmented = unit.new_function(f"aug.{fn.name}", augmented_type(fn.ftype, abi, unit.width))
        reverse = unit.new_function(f"rev.{fn.name}", reverse_type(fn.ftype, abi, unit.width))
        unit.derived[fn, "augmented"], unit.derived[fn, "reverse"] = augmented, reverse
        for derived in (augmented, reverse):
            keep_own_places(fn, derived, abi.shadow)

        def generate() -> None:
            assert unit.reverse is not None, "no emitter of reverse derivatives"
            unit.reverse(unit, fn, abi, augmented, reverse)

        unit.queue.append(generate)
    return unit.derived[fn, "augmented"], unit.derived[fn, "reverse"]


def combined_function(unit: Unit, fn: Function) -> Function:
    """Both sweeps of `fn` in one function, which takes the adjoint of its result; queued on first use."""
    if (fn, "combined") not in unit.derived:
        abi = unit.abis[fn]
        target = unit.new_function(f"vjp.{fn.name}", reverse_type(fn.ftype, abi, unit.width, tape=False))
        unit.derived[fn, "combined"] = target
        keep_own_places(fn, target, abi.shadow)

        def generate() -> None:
            assert unit.reverse is not None, "no emitter of reverse derivatives"
            unit.reverse(unit, fn, abi, target, target)

        unit.queue.append(generate)
    return unit.derived[fn, "combined"]
