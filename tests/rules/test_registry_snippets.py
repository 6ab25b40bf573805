"""The snippets of the design, as they are written there: each defines what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

import irgrad
from irgrad import inactive, opt_out, rule, rules
from irgrad.rules import (
    Active,
    Array,
    Batched,
    Const,
    Duplicated,
    Forward,
    Mul,
    Ptr,
    Reverse,
    SoA,
    current,
    f32,
    f64,
    i32,
    reduce,
)
from irgrad.rules.keys import Key

POINTER = Duplicated[Ptr[f64]]


def _which(symbol: str, *types: Any, mode: Any = Reverse[1], ret: Any = Const) -> str | None:
    found = current().resolve(symbol, (mode, ret, *types))
    return None if found is None else found.form


def test_the_ten_snippets(tmp_path: Any) -> None:
    source = tmp_path / "f.c"
    body = "{ for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }"
    source.write_text(f"void f(const double *x, long n, double *out) {body}")
    lib = irgrad.load(source)
    f = lib.kernel("f", "void(f64[n] x, i64 n, out f64[n] out)")
    with rules.layer() as mine:  # a local override that ends with the block

        @rule("erf")                                   # all modes, widths, layouts, dtypes
        def _(x): return 2 / np.sqrt(np.pi) * np.exp(-x * x)

        @rule("hypot")                                 # `y` is the primal result
        def _(a, b, *, y): return a / y, b / y

        @rule(f, mode="reverse")                       # f: a Kernel, or a function inside one
        def _(ctx, x, n, out): x.d += 2.0 * x.saved * out.d

        @rule("cblas_dgemm", mode="reverse", C=Duplicated[Ptr[f64]])
        def _(ctx, order, tA, tB, m, n, k, al, A, lda, B, ldb, be, C, ldc): ...

        @rule("fast_exp", Active[f32])                 # precision by dispatch; f64 has its own
        def _(x, *, y): return y

        @rule("solve3", Batched[Duplicated[Ptr[f64]], SoA], Const, mode="reverse")
        def _(ctx, A, n): ...

        @rule("lu_solve", mode="reverse", A=Duplicated, b=Duplicated, x=Duplicated)      # implicit differentiation
        def _(ctx, n, A, b, x): ...

        @rule(reduce, op=Mul, mode="reverse")          # prefix x suffix products: no tape, right with zeros
        def _(ctx, xs, y): ...

        inactive("log_message", pattern="PyErr_*")
        rules.stop_gradient("detach_state")
        opt_out("sum_kernel", Array[f64, 1])

        assert _which("erff", Active[f32], mode=Forward[4], ret=Active[f32]) == "partials"
        assert _which("hypotf", Active[f32], Active[f32]) == "partials"
        assert current().find("f", lib.digest)[0].rules[0].form == "calls"
        assert current().find("f", "another module") == []
        integers, numbers = [Const[i32]] * 6, Const[f64]
        call = [*integers, numbers, POINTER, Const[i32], POINTER, Const[i32], numbers, POINTER, Const[i32]]
        assert _which("cblas_dgemm", *call) == "calls"
        assert _which("cblas_dgemm", *call, mode=Forward[1]) is None
        assert _which("cblas_dgemm", *call[:-2], Duplicated[Ptr[f32]], Const[i32]) is None
        assert (_which("fast_exp", Active[f32]), _which("fast_exp", Active[f64])) == ("partials", None)
        assert _which("solve3", Batched[Duplicated[Array[f64, 2]], SoA], Const[i32]) == "calls"
        assert _which("lu_solve", Const[i32], POINTER, POINTER, POINTER) == "calls"
        assert _which("lu_solve", Const[i32], POINTER, Const[Ptr[f64]], POINTER) is None
        assert mine.rules[Key("reduce", "Mul")][0].form == "calls"
        assert (_which("log_message"), _which("PyErr_Print"), _which("PyFoo")) == ("inactive", "inactive", None)
        assert _which("detach_state", Active[f64]) == "stop"
        assert _which("sum_kernel", Duplicated[Array[f64, 1]]) == "opt_out"
        assert "cblas_dgemm(order: Activity" in rules.show("cblas_dgemm")
        assert rules.which("fast_exp", Active[f32]).how == "rule"
        assert "takes the place of the tables' rule" in rules.audit()
    assert _which("erf", Active[f64]) is None
