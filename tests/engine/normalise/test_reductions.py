"""Products, extremes, counts: shared by threads with the same bits on any number of them, and what is none of these."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstFloat, ConstInt, const_float
from irgrad.engine.normalise.reductions import ADDITION, Reduction

LOOP = "#pragma omp parallel for reduction({})\nfor (int i = 0; i < n; i++) "
CASES = {
    "a maximum": "double m = -1e300;\n" + LOOP.format("max:m") + "m = x[i] * x[i] > m ? x[i] * x[i] : m;\nreturn m * x[0];",
    "one that begins with a value": "double m = x[1] * x[1];\n" + LOOP.format("max:m") + "if (sin(x[i]) > m) m = sin(x[i]);\nreturn m;",
    "a minimum by fmin": "double m = 1e300;\n" + LOOP.format("min:m") + "m = fmin(m, cos(x[i]) * x[i]);\nreturn m;",
    "a product": "double p = x[0];\n" + LOOP.format("*:p") + "p *= 1 + 0.1 * x[i];\nreturn p;",
    "several": "double p = 1, s = x[2], m = x[3]; int c = 0;\n" + LOOP.format("*:p) reduction(+:s,c) reduction(max:m") +
               "{ p *= 1 + 0.01 * x[i]; s += sin(x[i]); c += x[i] > 0.8; double v = x[i] * i * 0.01; m = m > v ? m : v; }\nreturn p * s * m * c;",
    "under a condition": "double m = 0;\n" + LOOP.format("max:m") + "if (i % 3 == 1) { double v = exp(x[i]); m = v > m ? v : m; }\nreturn m;",
    "without OpenMP": "double m = 0, p = 1;\nfor (int i = 0; i < n; i++) { double v = exp(x[i]); m = v > m ? v : m; p *= x[i]; }\nreturn m * p;",
    "of float": "float m = 0;\n" + LOOP.format("max:m") + "{ float v = x[i]; m = v > m ? v : m; }\nreturn m;",
    "integers": "int c = 100; unsigned b = 7;\n" + LOOP.format("min:c) reduction(|:b") + "{ int v = (i * 37) % 50 - 20; c = v < c ? v : c; b |= i; }\nreturn x[0] * c + x[1] * b;",
}  # fmt: skip
OTHERS = {
    "where the largest is": "double m = -1; int k = 0;\nfor (int i = 0; i < n; i++) if (x[i] > m) { m = x[i]; k = i; }\nreturn m * k;",
    "something else happens": "double m = -1; static int seen[100];\nfor (int i = 0; i < n; i++) if (x[i] > m) { m = x[i]; seen[i % 100] = 1; }\nreturn m;",
    "it is read": "double m = -1, w[100];\nfor (int i = 0; i < n; i++) { m = x[i] > m ? x[i] : m; w[i % 100] = m; }\nreturn m * w[3];",
    "missing numbers are taken": "double m = -1;\nfor (int i = 0; i < n; i++) m = m > x[i] ? m : x[i];\nreturn m;",
    "two operations": "double p = 1;\nfor (int i = 0; i < n; i++) p = p * x[i] > 2 ? 2 : p * x[i];\nreturn p;",
    "an average so far": "double p = 1;\nfor (int i = 0; i < n; i++) p = p * x[i] + 1;\nreturn p;",
}  # fmt: skip


def _library(body: str) -> ig.Library:
    return ig.load(f"#include <math.h>\ndouble f(const double *x, int n) {{\n{body}\n}}", flags=["-fopenmp"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_shared_by_threads(body: str) -> None:
    lib = _library(body)
    signature = "f64(f64[n] x, i32 n)"
    plain = lib.kernel("f", signature)
    for n in (5, 23, 400):
        x = 0.8 + 0.37 * np.sin(2.3 * np.arange(n))
        found = []
        for threads in (1, 4, 16):
            kernel = lib.kernel("f", signature, threads=threads)
            value, tangent = ig.jvp(kernel, (x,), (np.cos(x),))
            gradient = ig.grad(kernel)(x)
            assert float(gradient @ np.cos(x)) == pytest.approx(float(tangent), rel=1e-6 if "float m" in body else 1e-10)
            found.append([kernel(x), value, tangent, gradient])
        for one in found:
            for a, b in zip(one, found[0], strict=True):
                np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(found[0][0], plain(x), rtol=1e-13)
        np.testing.assert_allclose(found[0][3], ig.grad(plain)(x), rtol=1e-11)


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_what_is_no_reduction_stays_with_one_thread(body: str) -> None:
    kernel = _library(body).kernel("f", "f64(f64[n] x, i32 n)", threads=4)
    x = 0.8 + 0.37 * np.sin(2.3 * np.arange(100))
    with pytest.warns(RuntimeWarning, match="runs on one thread"):
        assert ig.check(kernel, x).ok


@pytest.mark.parametrize(("how", "kind", "neutral"), [
    (ADDITION, ty.F64, -0.0), (Reduction("fmul"), ty.F32, 1.0), (Reduction("and"), ty.I32, -1), (Reduction("or"), ty.I64, 0),
    (Reduction("llvm.maxnum"), ty.F64, float("-inf")), (Reduction("llvm.smin"), ty.I32, 2**31 - 1),
    (Reduction("llvm.umin"), ty.I32, -1), (Reduction("llvm.smax"), ty.I8, -128), (Reduction("llvm.umax"), ty.I8, 0),
    (Reduction("select", "ogt", True, True), ty.F64, float("-inf")), (Reduction("select", "ogt", False, True), ty.F64, float("inf")),
    (Reduction("select", "olt", False, True), ty.F64, float("-inf")), (Reduction("select", "slt", True, True), ty.I16, 2**15 - 1),
])  # fmt: skip
def test_what_parts_begin_with(how: Reduction, kind: ty.Type, neutral: float) -> None:
    value = how.neutral(kind)
    assert isinstance(value, ConstFloat | ConstInt)
    assert value.value == neutral
    assert how.idempotent == (how.operation not in ("fadd", "fmul", "and", "or"))


def test_a_choice_is_put_together_as_it_was_made() -> None:
    at = Builder(Block())
    old, part = const_float(ty.F64, 1.0), const_float(ty.F64, 2.0)
    Reduction("select", "olt", old_first=False, old_taken=True).put(at, old, part)
    compare, select = at.block.instructions
    assert compare.operands == [part, old] and compare.pred == "olt"
    assert select.operands == [compare, old, part]


def test_neutral_elements_of_vectors() -> None:
    pair, words = ty.vector(2, ty.F64), ty.vector(4, ty.I32)
    assert [one.value for one in ADDITION.neutral(pair).elems] == [-0.0, -0.0]  # type: ignore[attr-defined]
    assert [one.value for one in Reduction("mul").neutral(words).elems] == [1, 1, 1, 1]  # type: ignore[attr-defined]
    assert [one.value for one in Reduction("llvm.maxnum").neutral(pair).elems] == [float("-inf")] * 2  # type: ignore[attr-defined]
