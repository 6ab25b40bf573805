"""Functions that bodies of rules call: their types, and what is declared about them."""

from __future__ import annotations

from typing import Any

import pytest

import irgrad
from irgrad.engine import grad
from irgrad.engine.differentiate.custom_rules.foreign import signature_of
from irgrad.rules import layer, rule
from irgrad.rules.definitions.prototype import parse

SOURCE = """
double cube(double x) { return x * x * x; }
static double square_of(double x) { return x * x; }
double slope(double x) { return 3 * square_of(x); }
double entry(double x) { return 2 * cube(x); }
"""


def test_types_of_prototypes() -> None:
    ftype = signature_of(parse("f64(f64[n] x, i32& n, f32* p, i64 m, f32 a, ptr h)"))
    assert str(ftype.ret) == "double"
    assert [str(p) for p in ftype.params] == ["ptr", "ptr", "ptr", "i64", "float", "ptr"]


@pytest.mark.parametrize("prototype", ["f64(f64)", None])
def test_functions_that_nothing_else_calls_stay(tmp_path: Any, prototype: str | None) -> None:
    source = tmp_path / "cube.c"
    source.write_text(SOURCE)
    entry = irgrad.load(source).kernel("entry")
    with layer():

        @rule("cube", mode="reverse")
        def _(ctx, x):  # type: ignore[no-untyped-def]
            x.d += ctx.result.d * ctx.foreign("slope", prototype or "double(double x)")(x)

        assert grad(entry)(0.5) == pytest.approx(1.5)
        ir = entry.primal.pullback((0, 1)).stage.text
        line = next(row for row in ir.splitlines() if row.startswith("define") and "@slope(" in row)
        assert "noinline" not in line


def test_declared_attributes_are_those_of_the_prototype(tmp_path: Any) -> None:
    source = tmp_path / "cube.c"
    source.write_text(SOURCE)
    entry = irgrad.load(source).kernel("entry")
    with layer():

        @rule("cube", mode="reverse")
        def _(ctx, x):  # type: ignore[no-untyped-def]
            ctx.foreign("elsewhere", "void(f64[n] x, out f64[n] y, i64 n)")(ctx.null, ctx.null, 3)

        ir = entry.primal.pullback((0, 1)).stage.text
    line = next(row for row in ir.splitlines() if "@elsewhere(" in row and row.startswith("declare"))
    assert "captures(none) readonly" in line
    assert "memory(argmem: readwrite" in line
