"""Prototypes of derivatives in C, as they are printed."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.c_prototype import c_prototype


def test_c_prototypes() -> None:
    ftype = ty.function(ty.F64, (ty.PTR, ty.I64, ty.F32, ty.PTR))
    assert c_prototype("f", ftype, ["x", "n", "a", ""]) == "double f(void *x, long n, float a, void *);"
    assert c_prototype("g", ty.function(ty.VOID, ()), []) == "void g();"
