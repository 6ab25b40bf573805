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


LAYERS = """#include <math.h>
#include <stdlib.h>
double f(const double *x, int d, int n, int first, int second, int from) {
    double *h = malloc((first + second) * sizeof(double)), *g = h + first, s = 0;
    for (int l = 0; l < n; l++) {
        for (int j = 0; j < second; j++) g[j] = x[j] * x[l];
        for (int j = 0; j < first; j++) h[j] = sin(x[j] * g[0] + l);
        for (int i = 0; i < from; i++) s += h[i] * h[i] * x[i];
    }
    free(h);
    return s;
}
"""
ASKED = {
    "as it is": ("", ""),
    "from the second on": ("s += h[i] * h[i]", "s += h[i] * h[i] * g[second - 1]"),
    "in a loop": ("*g = h + first, s = 0;", "*g, s = 0;\n    for (int r = 0; r < 2; r++) {\n    g = h + first;"),
}
SIGNATURE = "f64(f64[d] x, i32 d, i32 n, i32 first, i32 second, i32 from)"


def _layers(name: str) -> str:
    old, new = ASKED[name]
    source = LAYERS.replace(old, new) if old else LAYERS
    return source.replace("    free(h);", "    }\n    free(h);") if name == "in a loop" else source


@pytest.mark.parametrize("name", ASKED)
def test_pieces_are_apart_by_what_is_known_at_run_time(name: str) -> None:
    """A version where the numbers that are read are those of the piece; what reads on into the next piece is right."""
    source = _layers(name)
    if name == "as it is":
        assert _cuts(source) == 2
    kernel = irgrad.load(source).kernel("f", SIGNATURE)
    plain = irgrad.load(source, preopt=False).kernel("f", SIGNATURE)
    x = np.random.default_rng(7).uniform(0.2, 0.9, 6)
    for sizes in ((3, 3, 2, 3), (3, 2, 3, 2), (2, 2, 3, 4), (2, 3, 1, 4), (0, 2, 2, 1), (2, 0, 2, 0)):
        np.testing.assert_allclose(kernel(x, *sizes), plain(x, *sizes), rtol=1e-12)
        h = 1e-6
        want = [(kernel(x + h * e, *sizes) - kernel(x - h * e, *sizes)) / (2 * h) for e in np.eye(6)]
        np.testing.assert_allclose(irgrad.grad(kernel)(x, *sizes), want, rtol=1e-6, atol=1e-7)
        tangent = irgrad.jvp(kernel, (x, *sizes), (np.ones(6), *[None] * 4))[1]
        np.testing.assert_allclose(tangent, sum(want), rtol=1e-6, atol=1e-7)


def test_a_piece_that_never_ends_before_the_next_one_has_no_version() -> None:
    assert _cuts(LAYERS.replace("h[j] = sin", "h[j + 1] = sin")) == 0
    assert _cuts(LAYERS.replace("free(h);", "s += g[0]; free(h);")) == 0
