"""Split reverse mode of callees: the augmented function, the tape, the reverse function."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.types import Type
from irgrad.engine.transforms.augment import augmented_type
from irgrad.engine.transforms.lanes import wide
from irgrad.engine.transforms.unit import Abi, Unit


def reverse_type(fn_type: ty.FunctionType, abi: Abi, width: int = 1) -> ty.FunctionType:
    """{adjoints of the active scalars} (arguments with pointer shadows, adjoint of the result, tape)."""
    params: list[Type] = []
    results: list[Type] = []
    for i, param in enumerate(fn_type.params):
        params.append(param)
        if abi.shadow[i]:
            params.append(wide(param, width))
        if abi.adjoint[i]:
            results.append(wide(param, width))
    if abi.ret_adjoint:
        params.append(wide(fn_type.ret, width))
    params.append(ty.PTR)
    return ty.function(ty.struct(tuple(results)) if results else ty.VOID, tuple(params))


def split_functions(unit: Unit, fn: Function) -> tuple[Function, Function]:
    """(augmented, reverse) of `fn`, queued for generation on first use."""
    if (fn, "augmented") not in unit.derived:
        abi = unit.abis[fn]
        augmented = unit.new_function(f"aug.{fn.name}", augmented_type(fn.ftype, abi, unit.width))
        reverse = unit.new_function(f"rev.{fn.name}", reverse_type(fn.ftype, abi, unit.width))
        unit.derived[fn, "augmented"], unit.derived[fn, "reverse"] = augmented, reverse

        def generate() -> None:
            from irgrad.engine.transforms.reverse import Reverse

            Reverse(unit, fn, abi, augmented, reverse).generate()

        unit.queue.append(generate)
    return unit.derived[fn, "augmented"], unit.derived[fn, "reverse"]
