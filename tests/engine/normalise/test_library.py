"""Library functions with a body: qsort, and maths functions whose address is taken."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, gradient, make, module_of

import irgrad
from irgrad import rule
from irgrad.engine import grad, jvp
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.library import adopt, expand_library
from irgrad.rules.layers import layer

SORT = """
typedef struct { double key; long id; } Row;
static int by_key(const void *a, const void *b) {
    double x = ((const Row *)a)->key, y = ((const Row *)b)->key;
    return x < y ? -1 : x > y;
}
void f(Row *rows, long *n) { qsort(rows, *n, sizeof(Row), by_key); }"""


def test_qsort_sorts_and_is_stable() -> None:
    module = module_of(SORT, "f")
    expand_library(module)
    text = to_text(module)
    assert "call void @qsort(" not in text
    call = compile_module(text, ["f"], cache=False).function("f", None, ctypes.c_void_p, ctypes.c_void_p)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 7, 8, 100, 1023):
        rows = np.zeros(n, np.dtype([("key", "f8"), ("id", "i8")]))
        rows["key"], rows["id"] = rng.integers(0, max(n // 3, 1), n), np.arange(n)
        want = rows[np.argsort(rows["key"], kind="stable")]
        count = np.array([n])
        call(rows.ctypes.data, count.ctypes.data)
        assert rows.tolist() == want.tolist()


def test_the_derivative_of_a_sort_is_its_permutation() -> None:
    source = SORT.replace("void f(", "static void sort(") + """
    void f(double *x, double *w, long *n, double *o) {
        Row rows[16];
        for (long i = 0; i < *n; i++) { rows[i].key = sin(x[i]) * x[i]; rows[i].id = i; }
        sort(rows, n);
        double s = 0;
        for (long i = 0; i < *n; i++) s += w[i] * rows[i].key;
        *o = s;
    }"""
    rng = np.random.default_rng(1)
    x, w = rng.uniform(-2, 2, (2, 11))
    (dx, _), _made = gradient(source, "f", "dccd", x, w, np.array([11]), OUT)
    order = np.argsort(np.sin(x) * x, kind="stable")
    want = np.zeros(11)
    want[order] = w
    np.testing.assert_allclose(dx, want * (np.cos(x) * x + np.sin(x)), rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_addresses_of_maths_functions(mode: str) -> None:
    source = """
    static double (*const table[3])(double) = {sin, exp, tanh};
    void f(double *x, int *k, double *o) { *o = table[*k](x[0]) * x[1]; }"""
    made = make(source, "f", mode, ["dup", "const", "dup"])
    x = np.array([0.6, 1.5])
    slopes = [np.cos(0.6), np.exp(0.6), 1 - np.tanh(0.6) ** 2]
    values = [np.sin(0.6), np.exp(0.6), np.tanh(0.6)]
    for k in range(3):
        want = np.array([slopes[k] * 1.5, values[k]])
        which, o = np.array([k], np.int32), np.zeros(1)
        if mode == "forward":
            for i, v in enumerate(np.eye(2)):
                to = np.zeros(1)
                made(x, v, which, o, to)
                np.testing.assert_allclose(to[0], want[i], rtol=1e-14)
        else:
            dx = np.zeros(2)
            made(x, dx, which, o, np.ones(1))
            np.testing.assert_allclose(dx, want, rtol=1e-14)
        np.testing.assert_allclose(o[0], values[k] * 1.5, rtol=1e-15)


def test_what_the_module_has_is_not_replaced() -> None:
    module = read("declare double @g(double)\ndefine double @mine(double %x) {\n  ret double %x\n}\n")
    before = dict(module.functions)
    adopt(module, "declare double @g(double)\ndefine double @mine(double %x) {\n  ret double 1.0\n}\n"
                  "define double @h(double %x) {\n  %r = call double @g(double %x)\n  ret double %r\n}\n")  # fmt: skip
    assert module.functions["mine"] is before["mine"]
    assert module.functions["h"].blocks[0].instructions[0].callee is before["g"]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_rule_holds_behind_a_pointer(mode: str) -> None:
    lib = irgrad.load("""
__attribute__((noinline)) static double square(double x) { return x * x; }
__attribute__((noinline)) static double triple(double x) { return 3 * x; }
static double (*const table[2])(double) = {square, triple};
double picked(double x, int i) { return table[i](x) * x; }
""")  # fmt: skip
    picked = lib.kernel("picked")
    with layer():

        @rule("square")
        def _(x: Any) -> Any:
            return 100 * x

        for i, want in ((0, 100 * 0.5 * 0.5 + 0.25), (1, 6 * 0.5)):
            if mode == "reverse":
                got = grad(picked, argnums=0)(0.5, i)
            else:
                got = jvp(picked, (0.5, i), (1.0, None))[1]
            assert got == pytest.approx(want, rel=1e-14)
