"""Derivatives of functions that others call: made on first use, filled later."""

from __future__ import annotations

from irgrad.engine.differentiate.shared.conventions import augmented_type, reverse_type
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Function

__all__ = ["combined_function", "split_functions"]


def split_functions(unit: Unit, fn: Function) -> tuple[Function, Function]:
    """(augmented, reverse) of `fn`, queued for generation on first use."""
    if (fn, "augmented") not in unit.derived:
        abi = unit.abis[fn]
        augmented = unit.new_function(f"aug.{fn.name}", augmented_type(fn.ftype, abi, unit.width))
        reverse = unit.new_function(f"rev.{fn.name}", reverse_type(fn.ftype, abi, unit.width))
        unit.derived[fn, "augmented"], unit.derived[fn, "reverse"] = augmented, reverse

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

        def generate() -> None:
            assert unit.reverse is not None, "no emitter of reverse derivatives"
            unit.reverse(unit, fn, abi, target, target)

        unit.queue.append(generate)
    return unit.derived[fn, "combined"]
