"""The loops of constructs as IR: what they declare, and what they leave alone."""

from __future__ import annotations

import numpy as np

import irgrad as ig
from irgrad.engine.constructs.loops import passed
from irgrad.engine.signature.dtypes import DTYPES

P = ig.parallel


def test_small_integers_are_extended() -> None:
    assert [passed(DTYPES[name]) for name in ("i8", "u16", "bool", "f32")] == ["i8 signext", "i16 zeroext",
                                                                              "i1 zeroext", "float"]  # fmt: skip


def test_the_operator_stays_as_it_is() -> None:
    """The module is the operator's, with one function more; what it declares already is not declared again."""
    lib = ig.load("""
    #include <stdlib.h>
    #include <string.h>
    void join(const double *a, const double *b, double *c, long k) {
        double *t = calloc(3, 8);
        memcpy(t, a, 24);
        for (int i = 0; i < 3; i++) c[i] = t[i] * k + b[i];
        free(t);
    }""")
    join = lib.kernel("join", "void(f64[3] a, f64[3] b, out f64[3] c, i64 k)")
    kernel = P.histogram(join, 0.0, 2)
    assert kernel.source.text.startswith(lib.text)
    assert kernel.source.text.count("declare noalias ptr @calloc") <= 1
    rows = np.arange(12.0).reshape(4, 3)
    got = kernel(np.array([0, 1, 0, 0]), rows, 2)
    np.testing.assert_array_equal(got, [(rows[0] * 2 + rows[2]) * 2 + rows[3], rows[1]])
    assert ig.check(kernel, np.array([0, 1, 0, 0]), rows, 2).ok


def test_outputs_start_from_zero_in_each_call_of_the_operator() -> None:
    lib = ig.load("void sum(const double *a, const double *b, double *c) { c[0] += a[0] + b[0]; }")
    total = P.scan(lib.kernel("sum", "void(f64[2] a, f64[2] b, out f64[2] c)"))
    np.testing.assert_array_equal(total(np.ones((3, 2))), [[1.0, 1.0], [2.0, 0.0], [3.0, 0.0]])
