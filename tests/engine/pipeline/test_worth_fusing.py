"""Which loops are fused where nobody asks: by the bytes of tape of an iteration, and what an iteration reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.memory.value_ranges import Ranges

SOURCE = """
#include <math.h>
#include <stdlib.h>
double f(const double *x, const double *w, const long *p, long n, long m) {
    double total = 0, s[1000], *t = malloc(m * sizeof *t);
    for (long i = 0; i < n; i++) {
        double q = 0;
        /* body */
        total += q;
    }
    free(t);
    return total;
}
"""
NEST = """for (long j = 0; j < m; j++) {
    double a = x[i];
    for (long k = 0; k < m; k++) a = sin(a) * w[k] + cos(a * w[j]) * tanh(a) + exp(-a * a);
    q += a * a;
}"""
CHAIN = "for (long j = 0; j < m; j++) q = sin(q + x[i]) * w[j];"
SCRATCH = "for (long j = 0; j < m; j++) t[j] = sin(x[i] * w[j]); for (long j = 0; j < m; j++) "
FIXED = SCRATCH.replace("t[j]", "s[j]")
NESTS = "for (long k = 0; k < m; k++) { q += exp(V * w[k]); q = tanh(q) + sin(q) * w[j] + q * q / (1 + q * q); }"
OWN = """double *u = malloc((m + i) * sizeof *u);
for (long j = 0; j < m; j++) u[j] = sin(x[i] * w[j]);
for (long j = 0; j < m; j++) q += u[j] * u[m - 1 - j];
free(u);"""
COUNTS = """long *u = malloc((m + i) * sizeof *u);
for (long j = 0; j < m; j++) u[j] = p[m - 1 - j];
for (long j = 0; j < m; j++) q += x[i] * w[u[j]];
free(u);"""
CASES = {
    "memory of an iteration": (OWN, {}, True),
    "such memory without adjoints": (COUNTS, {}, False),
    "a nest": (NEST, {}, True),
    "a chain of few numbers": (CHAIN, {}, False),
    "scratch on the heap": (SCRATCH + NESTS.replace("V", "t[j]"), {}, True),
    "scratch that may be read anywhere": (FIXED + NESTS.replace("V", "s[p[j]]"), {}, False),
    "all of a tape is wanted": (NEST, {"tape_memory": None}, False),
    "zeros are looked for": (NEST, {"strong_zero": True}, False),
    "threads share it": (NEST, {"threads": 2}, False),
    "another choice": (NEST, {"checkpoint": {"6": 4}}, False),
}
SIGNATURE = "f64(f64[n] x, f64[m] w, i64[m] p, i64 n, i64 m)"
ARGUMENTS = np.linspace(0.1, 0.9, 23), np.linspace(0.3, 0.8, 7), np.arange(7)


def _kernel(body: str, **options: Any) -> ig.Kernel:
    return ig.load(SOURCE.replace("/* body */", body)).kernel("f", SIGNATURE, **options)


@pytest.mark.parametrize("name", CASES)
def test_by_default(name: str) -> None:
    body, options, fused = CASES[name]
    kernel, plain = _kernel(body, **options), _kernel(body, tape_memory=None)
    assert (".fused." in str(kernel.primal.pullback([0, 1, 5]).stage.text)) is fused
    for found, wanted in zip(*(ig.grad(k, wrt=("x", "w"))(*ARGUMENTS) for k in (kernel, plain)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-14)
    assert ig.value_and_grad(kernel, wrt="w")(*ARGUMENTS)[0] == plain(*ARGUMENTS)


def test_one_cotangent_of_a_function() -> None:
    """Several at a time, and derivatives of derivatives, are made from a tape of all."""
    primal = _kernel(NEST).primal
    assert ".fused." in str(primal.vjp([0, 5]).stage.text)
    assert ".fused." not in str(primal.pullback([0, 5], 4).stage.text)
    again = primal.jvp_only([0, 5]).pullback([0, 7])
    assert ".fused." not in str(again.stage.text)


ROWS = """
#include <math.h>
#include <stdlib.h>
struct rows { double *one, *other; };
double f(const double *x, long n, long m) {
    struct rows *r = malloc(m * sizeof *r);
    double total = 0, *s = malloc(m * sizeof *s), *t = malloc(m * sizeof *t);
    for (long j = 0; j < m; j++) { s[j] = sin(x[j]); t[j] = cos(x[j]); r[j].one = s; r[j].other = t; }
    /* loops */
    free(s); free(t); free(r);
    return total;
}
"""
ROW = """
    for (long i = 0; i < n; i++) for (long j = 0; j < m; j++) total = sin(total + r[i].one[j] * r[j].other[i]);
    for (long j = 0; j < m; j++) r[j].one = r[j].one == s ? t : s;"""


def test_where_pointers_lead_is_found_out_for_all_loops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was found out for each: a third of the time of a program with ten nests in its root."""
    made: list[Any] = []
    begin = Ranges.__init__
    monkeypatch.setattr(Ranges, "__init__", lambda self, pointers: (made.append(self), begin(self, pointers))[1])
    counts = []
    for loops in (1, 5):
        made.clear()
        kernel = ig.load(ROWS.replace("/* loops */", ROW * loops)).kernel("f", "f64(f64[m] x, i64 n, i64 m)")
        ig.engine.grad(kernel)(np.ones(4), 3)
        counts.append(len(made))
    assert counts[0] == counts[1]
