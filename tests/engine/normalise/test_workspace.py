"""A workspace cut in pieces is an allocation for each; where a piece reaches into another one it stays whole."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import module_of

import irgrad
from irgrad.engine.normalise.workspace import cut_workspaces

PROGRAM = """#include <math.h>
#include <stdlib.h>
#include <string.h>
double f(const double *x, int d, int k) {
    double *w = malloc(8 * (2 * d + k) * sizeof(double)), *a = w, *b = w + d, *c = w + 2 * d, s = 0;
    for (int j = 0; j < k; j++) {
        for (int i = 0; i < d; i++) a[i] = x[i] * (j + 1);
        for (int i = 0; i < d; i++) b[i] = a[i] * a[i];
        for (int i = 0; i < d; i++)
            for (int l = i + 1; l < d; l++) b[l] += x[i] * a[l];
        c[j] = 0;
        for (int i = 0; i < d; i++) c[j] += sin(b[i]);
    }
    for (int j = 0; j < k; j++) s += c[j] * c[j];
    free(w);
    return s;
}
"""
LOOP = "for (int i = 0; i < d; i++) a[i] = x[i] * (j + 1);"
CUT = {
    "as it is": ("", ""),
    "cleared first": (LOOP, f"memset(a, 0, d * sizeof(double)); memset(b, 0, d * sizeof(double)); {LOOP}"),
    "copied": ("b[i] = a[i] * a[i];", "b[i] = a[i] * a[i]; memcpy(a, b, d * sizeof(double));"),
    "in another order": ("*a = w, *b = w + d", "*b = w, *a = w + d"),
    "asked whether there is memory": ("s = 0;\n", "s = 0;\n    if (!w) return -1;\n"),
    "in front of nothing": ("for (int l = i + 1;", "for (int l = i;"),
}
WHOLE = {
    "one more": ("i++) a[i] = x[i]", "i++) a[i + 1] = a[i] = x[i]"),
    "up to the next": (LOOP, "for (int i = 0; i <= d; i++) a[i] = x[i % d] * (j + 1);"),
    "from the one before": ("sin(b[i])", "sin(b[i]) + b[i - 1]"),
    "pieces that overlap": ("*b = w + d,", "*b = w + d / 2,"),
    "an address that is kept": ("free(w);", "double *volatile kept = b;\n    s += kept != 0;\n    free(w);"),
    "copied at once": ("s = 0;\n", "s = 0;\n    memset(a, 0, 2 * d * sizeof(double));\n"),
    "of another length": ("sin(b[i])", "sin(b[i]) + (k < d ? a[k + i - i] : 0)"),
}


def _cuts(source: str) -> int:
    module = module_of(source, "f", "-O2")
    return sum(cut_workspaces(fn) for fn in module.functions.values() if fn.blocks)


def _source(name: str) -> str:
    old, new = {**CUT, **WHOLE}[name]
    assert old in PROGRAM
    return PROGRAM.replace(old, new)


@pytest.mark.parametrize("name", CUT)
def test_pieces_have_memory_of_their_own(name: str) -> None:
    assert _cuts(_source(name)) == 2


@pytest.mark.parametrize("name", WHOLE)
def test_pieces_that_reach_into_others_stay(name: str) -> None:
    assert _cuts(_source(name)) == 0


@pytest.mark.parametrize("name", [*CUT, *(name for name in WHOLE if name != "from the one before")])
def test_gradients(name: str) -> None:
    kernel = irgrad.load(_source(name)).kernel("f", "f64(f64[d] x, i32 d, i32 k)")
    plain = irgrad.load(_source(name), preopt=False).kernel("f", "f64(f64[d] x, i32 d, i32 k)")
    for d, k in ((1, 1), (4, 3), (5, 0), *([] if name == "up to the next" else [(0, 3)])):
        x = np.random.default_rng(6).uniform(0.2, 0.9, d)
        np.testing.assert_allclose(kernel(x, k), plain(x, k), rtol=1e-12)
        h = 1e-6
        want = [(kernel(x + h * e, k) - kernel(x - h * e, k)) / (2 * h) for e in np.eye(d)]
        np.testing.assert_allclose(irgrad.grad(kernel)(x, k), want, rtol=1e-6, atol=1e-7)
