"""How derived functions are called."""

from __future__ import annotations

from irgrad.engine.differentiate.shared.conventions import Abi, augmented_type, pair, reverse_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function


def test_conventions_are_merged() -> None:
    ftype = ty.function(ty.F64, (ty.F64, ty.PTR))
    first, second = Abi(Function("f", ftype)), Abi(Function("g", ftype))
    first.adjoint, second.shadow, second.ret_adjoint = [True, False], [False, True], True
    first.merge(second)
    assert (first.adjoint, first.shadow) == ([True, False], [False, True])
    assert (first.ret_adjoint, first.ret_shadow) == (True, False)


def test_a_value_and_its_tangent() -> None:
    assert pair(ty.F32) is ty.struct((ty.F32, ty.F32))


def test_types_of_the_two_halves() -> None:
    ftype = ty.function(ty.F64, (ty.F64, ty.PTR, ty.I64))
    abi = Abi(Function("f", ftype))
    abi.adjoint, abi.shadow, abi.ret_adjoint = [True, False, False], [False, True, False], True
    assert str(augmented_type(ftype, abi)) == "{ double, ptr } (double, ptr, ptr, i64, ptr)"
    assert str(reverse_type(ftype, abi)) == "{ double } (double, ptr, ptr, i64, double, ptr)"


def test_without_active_scalars_the_reverse_returns_nothing() -> None:
    ftype = ty.function(ty.VOID, (ty.PTR,))
    abi = Abi(Function("f", ftype))
    abi.shadow = [True]
    assert str(augmented_type(ftype, abi)) == "{ ptr } (ptr, ptr, ptr)"
    assert str(reverse_type(ftype, abi)) == "void (ptr, ptr, ptr)"
