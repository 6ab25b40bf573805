"""Prototypes in C of functions in IR."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.c_prototype import c_prototype


def test_it_reads_as_c() -> None:
    ftype = ty.function(ty.F64, (ty.PTR, ty.I64, ty.float_("float")))
    assert c_prototype("f", ftype, ["x", "n", ""]) == "double f(void *x, long n, float);"
    assert c_prototype("g", ty.function(ty.VOID, ()), []) == "void g();"


def test_types_that_c_lacks_stay_as_they_are() -> None:
    wide = ty.vector(4, ty.F64)
    assert c_prototype("h", ty.function(wide, (wide,)), ["x"]) == "<4 x double> h(<4 x double> x);"
