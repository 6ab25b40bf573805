"""How derived functions are called: their parameters and results, for each direction and each half."""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.types import Type

__all__ = ["Abi", "augmented_type", "pair", "reverse_type"]


class Abi:
    """How the derivative of a function is called: which parameters have an adjoint (floats) or a shadow (pointers)."""

    __slots__ = ("adjoint", "ret_adjoint", "ret_shadow", "shadow")

    def __init__(
        self, fn: Function, adjoint: Sequence[bool] = (), shadow: Sequence[bool] = (), ret_adjoint: bool = False,
        ret_shadow: bool = False,
    ) -> None:  # fmt: skip
        """adjoint, shadow: of each parameter; empty: none has one."""
        nothing = [False] * len(fn.args)
        self.adjoint = list(adjoint) or nothing
        self.shadow = list(shadow) or list(nothing)
        self.ret_adjoint = ret_adjoint
        self.ret_shadow = ret_shadow

    def merge(self, other: Abi) -> None:
        """Take over what the other convention passes."""
        for i in range(min(len(self.adjoint), len(other.adjoint))):
            self.adjoint[i] |= other.adjoint[i]
            self.shadow[i] |= other.shadow[i]
        self.ret_adjoint |= other.ret_adjoint
        self.ret_shadow |= other.ret_shadow


def pair(type_: Type, width: int = 1) -> ty.StructType:
    """{T, T'}: a value and its tangent."""
    return ty.struct((type_, shadow_type(type_, width)))


def augmented_type(fn_type: ty.FunctionType, abi: Abi, width: int = 1) -> ty.FunctionType:
    """{ret, shadow of ret, tape} (arguments with pointer shadows, arena)."""
    params: list[Type] = []
    for i, param in enumerate(fn_type.params):
        params.append(param)
        if abi.shadow[i]:
            params.append(shadow_type(param, width))
    params.append(ty.PTR)
    fields: list[Type] = [fn_type.ret] if fn_type.ret is not ty.VOID else []
    if abi.ret_shadow:
        fields.append(shadow_type(fn_type.ret, width))
    return ty.function(ty.struct((*fields, ty.PTR)), tuple(params))


def reverse_type(fn_type: ty.FunctionType, abi: Abi, width: int = 1, *, tape: bool = True) -> ty.FunctionType:
    """{adjoints of the active scalars} (arguments with pointer shadows, adjoint of the result, tape)."""
    params: list[Type] = []
    results: list[Type] = []
    for i, param in enumerate(fn_type.params):
        params.append(param)
        if abi.shadow[i]:
            params.append(shadow_type(param, width))
        if abi.adjoint[i]:
            results.append(shadow_type(param, width))
    if abi.ret_adjoint:
        params.append(shadow_type(fn_type.ret, width))
    if tape:
        params.append(ty.PTR)
    return ty.function(ty.struct(tuple(results)) if results else ty.VOID, tuple(params))
