"""Which sums may be reordered, and that only programs without the primal's values do it."""

from __future__ import annotations

import numpy as np
from handwritten.made import OUT, gradient, module_of

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.reductions import free_sums

SUM = """
void f(double *x, long *n, double *o) {
    double s = 0;
    for (long i = 0; i < *n; i++) s += x[i] * x[i];
    *o = s * s;
}"""
COMPENSATED = """
void f(double *x, long *n, double *o) {
    double s = 0, c = 0;
    for (long i = 0; i < *n; i++) { double y = x[i] - c, t = s + y; c = (t - s) - y; s = t; }
    *o = s * s;
}"""
WATCHED = """
void f(double *x, long *n, double *o) {
    double s = 0;
    for (long i = 0; i < *n; i++) { s += x[i]; if (s > 10) s *= 0.5; }
    *o = s * s;
}"""


def _free(source: str) -> int:
    fn = module_of(source, "f").functions["f"]
    cfg = Cfg(fn)
    return len(free_sums(fn, Loops(cfg, Dominators(cfg))))


def test_plain_sums_are_free() -> None:
    assert _free(SUM) == 1


def test_compensated_sums_keep_their_order() -> None:
    assert _free(COMPENSATED) == 0


def test_sums_that_are_looked_at_keep_their_order() -> None:
    assert _free(WATCHED) == 0


def test_only_without_the_values_and_only_by_default() -> None:
    x, n = np.linspace(0.1, 1, 50), np.array([50])
    for options, loose in (({"discard": [2]}, True), ({}, False), ({"discard": [2], "strict_fp": True}, False)):
        (dx, _), made = gradient(SUM, "f", "dcd", x, n, OUT, **options)
        assert np.allclose(dx, 4 * (x @ x) * x, rtol=1e-13)
        forward = [i for b in made.function.blocks if (b.name or "").startswith("p.") for i in b.instructions]
        assert any("reassoc" in i.flags for i in forward) == loose
