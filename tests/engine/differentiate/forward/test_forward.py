"""Forward mode: values and tangents side by side."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import make

from irgrad.engine.differentiate.forward.forward import forward_type
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function


def _abi(ftype: ty.FunctionType, adjoint: str, shadow: str, result: str) -> Abi:
    abi = Abi(Function("f", ftype))
    abi.adjoint = [c == "1" for c in adjoint]
    abi.shadow = [c == "1" for c in shadow]
    abi.ret_adjoint = result == "a"
    return abi


def test_type_of_the_derivative() -> None:
    ftype = ty.function(ty.F64, (ty.F64, ty.PTR, ty.I64, ty.F32))
    twofold = "{ double, double } (double, double, ptr, ptr, i64, float)"
    assert str(forward_type(ftype, _abi(ftype, "1000", "0100", "a"))) == twofold
    assert str(forward_type(ftype, _abi(ftype, "0000", "0000", ""))) == "double (double, ptr, i64, float)"


@pytest.mark.parametrize("n", [0, 1, 5])
def test_recursion_has_one_derivative(n: int) -> None:
    source = """
    NOINLINE static double power(double *x, long n) { return n <= 0 ? 1.0 : x[0] * power(x, n - 1) + 0.0 * x[1]; }
    void f(double *x, long *n, double *o) { *o = power(x, *n) * x[1]; }"""
    made = make(source, "f", "forward", ["dup", "const", "dup"], "-fno-optimize-sibling-calls")
    derived = [name for name in made.module.functions if ".fwd." in name]
    assert len(derived) <= 1
    x, v, o, to = np.array([1.3, 0.7]), np.array([1.0, -2.0]), np.zeros(1), np.zeros(1)
    made(x, v, np.array([n]), o, to)
    np.testing.assert_allclose(to[0], n * x[0] ** max(n - 1, 0) * x[1] * v[0] + x[0] ** n * v[1], rtol=1e-14)


def test_tangents_of_outputs_are_written_not_added() -> None:
    made = make("void f(double *x, double *o) { *o = x[0] * x[0]; }", "f", "forward", ["dup", "dup"])
    o, to = np.array([5.0]), np.array([77.0])
    made(np.array([3.0]), np.array([2.0]), o, to)
    assert (o[0], to[0]) == (9.0, 12.0)


def test_memory_from_the_heap_has_a_clean_shadow() -> None:
    """Also when malloc hands out memory that held something else before."""
    source = """
    void f(double *x, long *n, double *o) {
        double *t = malloc(*n * sizeof(double));
        for (long i = 0; i < *n; i += 2) t[i] = x[i] * x[i];
        for (long i = 1; i < *n; i += 2) t[i] = 3;
        double s = 0;
        for (long i = 0; i < *n; i++) s += t[i] * t[*n - 1 - i];
        *o = s;
        free(t);
    }"""
    made = make(source, "f", "forward", ["dup", "const", "dup"])
    n = 2048
    x, v = np.linspace(1, 2, n), np.ones(n)
    for _ in range(3):
        junk = [np.full(n, np.nan) for _ in range(8)]
        del junk
        o, to = np.zeros(1), np.zeros(1)
        made(x, v, np.array([n]), o, to)
        t = np.where(np.arange(n) % 2 == 0, x * x, 3)
        dt = np.where(np.arange(n) % 2 == 0, 2 * x, 0)
        np.testing.assert_allclose(to[0], 2 * (dt * t[::-1]).sum(), rtol=1e-12)


def test_moved_memory_moves_its_tangents() -> None:
    source = """
    void f(double *x, double *y, long *n) {
        memcpy(y, x, *n * sizeof(double));
        memmove(y + 1, y, (*n - 1) * sizeof(double));
        memset(y, 0, sizeof(double));
    }"""
    made = make(source, "f", "forward", ["dup", "dup", "const"], buffers=["double", "double", ""])
    x, v, y, ty_ = np.arange(1.0, 7), np.arange(10.0, 16), np.zeros(6), np.full(6, np.nan)
    made(x, v, y, ty_, np.array([6]))
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    assert ty_.tolist() == [0, 10, 11, 12, 13, 14]


def test_a_table_of_functions() -> None:
    source = """
    static double twice(double x) { return 2 * x; }
    static double square(double x) { return x * x; }
    static double root(double x) { return sqrt(x); }
    static double (*const table[3])(double) = {twice, square, root};
    void f(double *x, int *k, double *o) { *o = table[k[0]](x[0]) * table[k[1]](x[1]); }"""
    made = make(source, "f", "forward", ["dup", "const", "dup"])
    values = [lambda x: 2 * x, lambda x: x * x, np.sqrt]
    slopes = [lambda x: 2.0, lambda x: 2 * x, lambda x: 0.5 / np.sqrt(x)]
    x, v = np.array([1.7, 0.6]), np.array([0.3, -1.1])
    for a in range(3):
        for b in range(3):
            o, to = np.zeros(1), np.zeros(1)
            made(x, v, np.array([a, b], np.int32), o, to)
            want = slopes[a](x[0]) * v[0] * values[b](x[1]) + values[a](x[0]) * slopes[b](x[1]) * v[1]
            np.testing.assert_allclose(to[0], want, rtol=1e-15)


def test_tangents_are_not_aligned_as_a_pointer_was_by_hand() -> None:
    source = """
    void *malloc(unsigned long); void *memset(void *, int, unsigned long);
    void f(double *x, double *o) {
      double *w = (double *)(((unsigned long)malloc(37 * 8 + 63) + 63) & ~63ul);
      memset(w, 0, 37 * 8); w[5] = x[0]; w[30] = x[1];
      double s = 0; for (long i = 0; i < 37; i += (long)x[2]) s += w[i] * w[i];
      *o = s;
    }"""
    made = make(source, "f", "forward", ["dup", "dup"])
    fills = [i for i in made.function.instructions() if i.is_call and "memset" in (i.callee_name or "")]
    aligned = [i for i in fills if i.call is not None and "align 64" in " ".join(i.call.arg_attrs)]
    assert len(fills) > len(aligned) == 1
    x, v, o, to = np.array([1.5, 0.5, 5.0]), np.array([1.0, -2.0, 0.0]), np.zeros(1), np.zeros(1)
    made(x, v, o, to)
    np.testing.assert_allclose(to[0], 2 * x[0] * v[0] + 2 * x[1] * v[1])
