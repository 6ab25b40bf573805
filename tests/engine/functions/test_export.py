"""Exported gradients: prototypes and IR."""

from __future__ import annotations

from samples import sample

from irgrad import engine
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.functions.export import export_header, export_text


def test_header_and_prototype_agree() -> None:
    gradient = engine.grad(sample("product"), wrt="y")
    header = export_header(gradient, "dproduct")
    assert "double dproduct(double x, double y, double *y_grad);" in header
    module = parse(export_text(gradient, "dproduct"))
    function = next(f for f in module.functions if f.name == "dproduct")
    assert [str(a.type) for a in function.arguments] == ["double", "double", "ptr"]
