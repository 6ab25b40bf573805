"""The reverse of each instruction, on vectors, structs, memory, mixed precision; against what mathematics says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, gradient

from irgrad.engine.differentiate.reverse.adjoints import HANDLERS


def _vectors(body: str) -> str:
    return (
        "define void @f(ptr %x, ptr %o) {\n  %a = load <2 x double>, ptr %x, align 8\n"
        "  %q = getelementptr double, ptr %x, i64 2\n  %b = load <2 x double>, ptr %q, align 8\n"
        f"{body}\n  store double %r, ptr %o\n  ret void\n}}\n"
    )


X = np.array([1.5, -0.5, 2.0, 3.0])


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("%p = fmul <2 x double> %a, %b\n %l = extractelement <2 x double> %p, i64 0\n"
         "%h = extractelement <2 x double> %p, i64 1\n %r = fmul double %l, %h", [-3.0, 9.0, -2.25, -1.5]),
        ("%s = shufflevector <2 x double> %a, <2 x double> %b, <4 x i32> <i32 3, i32 0, i32 0, i32 poison>\n"
         "%t = fmul <4 x double> %s, <double 2.0, double 3.0, double 5.0, double 0.0>\n"
         "%l = extractelement <4 x double> %t, i64 0\n %m = extractelement <4 x double> %t, i64 1\n"
         "%n = extractelement <4 x double> %t, i64 2\n %u = fadd double %l, %m\n %r = fadd double %u, %n",
         [8.0, 0.0, 0.0, 2.0]),
        ("%e = extractelement <2 x double> %a, i64 1\n %i = insertelement <2 x double> %b, double %e, i64 0\n"
         "%p = fmul <2 x double> %i, %i\n %l = extractelement <2 x double> %p, i64 0\n"
         "%h = extractelement <2 x double> %p, i64 1\n %r = fadd double %l, %h", [0.0, -1.0, 0.0, 6.0]),
        ("%c = fcmp ogt <2 x double> %a, zeroinitializer\n %s = select <2 x i1> %c, <2 x double> %a, <2 x double> %b\n"
         "%l = extractelement <2 x double> %s, i64 0\n %h = extractelement <2 x double> %s, i64 1\n"
         "%r = fmul double %l, %h", [3.0, 0.0, 0.0, 1.5]),
        ("%n = fneg <2 x double> %a\n %fr = freeze <2 x double> %n\n %r = extractelement <2 x double> %fr, i64 0",
         [-1.0, 0.0, 0.0, 0.0]),
    ],
    ids=["mul", "shuffle", "insert", "select", "neg"],
)  # fmt: skip
def test_vectors(body: str, want: list[float]) -> None:
    (dx, _), _made = gradient(_vectors(body), "f", "dd", X, OUT)
    assert dx.tolist() == want


def test_structs_as_values() -> None:
    text = """
    define void @f(ptr %x, ptr %o) {
      %s = load { double, { float, i64 } }, ptr %x, align 8
      %d = extractvalue { double, { float, i64 } } %s, 0
      %f = extractvalue { double, { float, i64 } } %s, 1, 0
      %k = extractvalue { double, { float, i64 } } %s, 1, 1
      %w = fpext float %f to double
      %n = sitofp i64 %k to double
      %p = fmul double %d, %w
      %t = insertvalue { double, double } undef, double %p, 0
      %u = insertvalue { double, double } %t, double %n, 1
      %a = extractvalue { double, double } %u, 0
      %b = extractvalue { double, double } %u, 1
      %r = fmul double %a, %b
      store double %r, ptr %o
      ret void
    }"""
    x = np.zeros(1, np.dtype([("d", "f8"), ("f", "f4"), ("pad", "f4"), ("k", "i8")]))
    x["d"], x["f"], x["k"] = 2.0, 3.0, 5
    from handwritten.made import make

    made = make(text, "f", "reverse", ["dup", "dup"])
    dx, o, do = np.zeros(1, x.dtype), np.zeros(1), np.ones(1)
    made(x, dx, o, do)
    assert (o[0], dx["d"][0], dx["f"][0], dx["k"][0]) == (30.0, 15.0, 10.0, 0)


def test_casts_between_precisions() -> None:
    source = """
    void f(double *x, float *y, double *o) {
        float z = (float)x[0] * y[0];
        *o = (double)z * x[1] + (double)(float)(x[1] * x[1]);
    }"""
    (dx, dy, _), _made = gradient(source, "f", "ddd", np.array([1.5, 2.0]), np.array([0.25], np.float32), OUT)
    assert dx.tolist() == [0.5, 0.375 + 4.0]
    assert dy.tolist() == [3.0]


def test_the_branch_not_taken_gives_a_true_zero() -> None:
    """sqrt at zero has an infinite slope; where the select takes the other side nothing of it may be seen."""
    source = "void f(double *x, double *o) { double r = sqrt(x[0]); *o = x[0] > 1 ? r : 2 * x[0]; }"
    (dx, _), _made = gradient(source, "f", "dd", np.array([0.0]), OUT)
    assert dx.tolist() == [2.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_store_takes_the_adjoint_and_clears_it(dtype: Any) -> None:
    kind = "double" if dtype is np.float64 else "float"
    source = f"""
    void f({kind} *x, {kind} *t, double *o) {{
        t[0] = x[0] * 3; double first = t[0];
        t[0] = x[1] * x[1]; double second = t[0];
        t[0] = 7;
        *o = first + second * t[0];
    }}"""
    (dx, dt, _), _made = gradient(source, "f", "ddd", np.array([1, 2], dtype), np.array([5], dtype), OUT)
    assert dx.tolist() == [3, 28]
    assert dt.tolist() == [0]


def test_fills_and_copies() -> None:
    source = """
    typedef struct { double v; int k; float w; } Row;
    void f(Row *x, Row *y, long *n, double *o) {
        memcpy(y, x, *n * sizeof(Row));
        memset(y + 1, 0, sizeof(Row));
        double s = 0;
        for (long i = 0; i < *n; i++) s += y[i].v * y[i].w * (y[i].k + 1);
        *o = s;
    }"""
    row = np.dtype([("v", "f8"), ("k", "i4"), ("w", "f4")])
    x = np.array([(1.0, 2, 3.0), (4.0, 5, 6.0), (7.0, 8, 9.0)], row)
    from handwritten.made import make

    made = make(source, "f", "reverse", ["dup", "dup", "const", "dup"])
    dx, y, dy, do = np.zeros(3, row), np.zeros(3, row), np.zeros(3, row), np.ones(1)
    made(x, dx, y, dy, np.array([3]), np.zeros(1), do)
    assert dx["v"].tolist() == [9.0, 0.0, 81.0]
    assert dx["w"].tolist() == [3.0, 0.0, 63.0]
    assert not dy["v"].any() and not dy["w"].any()


def test_every_structural_operation_has_a_handler() -> None:
    """What neither a rule row nor a handler knows is refused; these must not fall through to the rows."""
    wanted = "load store call select freeze bitcast fptrunc fpext extractvalue insertvalue extractelement insertelement"
    assert set(wanted.split()) | {"shufflevector"} <= set(HANDLERS)
