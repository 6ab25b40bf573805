"""Split reverse mode: the augmented function, the tape, the reverse function; of callees, and of a root whose two
halves a program calls itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.types import Type
from irgrad.engine.transforms.augment import augmented_type
from irgrad.engine.transforms.lanes import wide
from irgrad.engine.transforms.unit import Abi, Unit

if TYPE_CHECKING:
    from irgrad.engine.analyses.rulebook import Rulebook
    from irgrad.engine.transforms.derive import Derived

REVERSE = ".reverse"
"""Ending of the name of the second half of a derivative in split mode."""


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


def derive_split(
    module: Module, fname: str, args: Sequence[str], *, kept: Sequence[int] = (), width: int = 1,
    rules: Rulebook | None = None, strong_zero: bool = False, runtime_activity: bool = False,
) -> Derived:  # fmt: skip
    """Add both halves of the reverse derivative of `fname` to `module`, for a program that calls them one by one.

    `{ptr} NAME(A a, A a', arena)` runs the function, `void NAME.reverse(A a, A a', tape)` the reverse sweep. Between
    the two the program may write any memory that it can reach, apart from that of the arguments in `kept`. `width` as
    for `derive`.
    """
    from irgrad.engine.transforms.derive import REVERSE_TAIL, Derived, drain, forget_globals, prepared
    from irgrad.engine.transforms.reverse import Reverse

    unit, abi = prepared(module, fname, "reverse", args, width=width, rules=rules)
    scratch = tuple(sorted(unit.activity.scratch))
    unit.strong_zero, unit.runtime_activity = strong_zero, runtime_activity
    unit.between = open_memory(unit, kept)
    root = unit.root
    name = f"{fname}.S{f'{width}a' if width > 1 else ''}{''.join('1' if s else '0' for s in abi.shadow)}"
    augmented = Function(name, augmented_type(root.ftype, abi, width))
    reverse = Function(name + REVERSE, reverse_type(root.ftype, abi, width))
    augmented.tail, reverse.tail = "nounwind", REVERSE_TAIL
    module.functions[name], module.functions[name + REVERSE] = augmented, reverse
    Reverse(unit, root, abi, augmented, reverse).generate()
    drain(unit)
    forget_globals(unit, reverse)
    if rules is not None:
        rules.restore()
    return Derived(name, scratch, unit.facts)


def open_memory(unit: Unit, kept: Sequence[int]) -> int:
    """Objects that a program can write while it holds the tape: all but locals, their address never given away."""
    pointers = unit.pointers
    promised = [unit.root.args[i] for i in kept]
    mask = still = 0
    for obj in pointers.objects:
        if obj.site in promised:
            still |= 1 << obj.index
        elif obj.kind not in ("alloca", "heap", "function"):
            mask |= 1 << obj.index
    return (pointers.reachable(mask) | 1) & ~still
