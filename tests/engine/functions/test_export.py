"""Exported gradients: prototypes and IR."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.objects import write
from irgrad.engine.functions.export import export_header, export_text


def test_header_and_prototype_agree() -> None:
    gradient = engine.grad(sample("product"), wrt="y")
    header = export_header(gradient, "dproduct")
    assert "double dproduct(double x, double y, double *y_grad);" in header
    module = parse(export_text(gradient, "dproduct"))
    function = next(f for f in module.functions if f.name == "dproduct")
    assert [str(a.type) for a in function.arguments] == ["double", "double", "ptr"]


def test_sizes_that_come_first(tmp_path: Path) -> None:
    """The arguments that are asked for are those that the header says: sizes count among the parameters."""
    source = """double f(int n, const double *a, const double *b, const double *c) {
    double s = 0;
    for (int i = 0; i < n; i++) s += a[i] * a[i] * a[i] + 5 * b[i] * b[i] + a[i] * b[i] + c[i];
    return s;
}
"""
    kernel = irgrad.load(source).kernel("f", "f64(i32 n, f64[n] a, f64[n] b, f64[n] c)")
    a, b, c = np.random.default_rng(0).normal(size=(3, 4))
    gradient = engine.grad(kernel, wrt=("b", "a"))
    assert gradient.valued().positions == gradient.positions == (2, 1)
    assert engine.grad(kernel, wrt="b").valued().positions == (2,)
    header = export_header(gradient, "df")
    assert "df(int32_t n, const double *a, double *a_grad, const double *b, double *b_grad, const double *c);" in header
    library = write(tmp_path / "df.so", export_text(gradient, "df"), ["df"])
    function = ctypes.CDLL(str(library)).df
    function.restype = ctypes.c_double
    da, db = np.zeros(4), np.zeros(4)
    value = function(4, *(ctypes.c_void_p(x.ctypes.data) for x in (a, da, b, db, c)))
    assert value == float(kernel(a, b, c))
    np.testing.assert_allclose(da, 3 * a * a + b, rtol=1e-14)
    np.testing.assert_allclose(db, 10 * b + a, rtol=1e-14)
