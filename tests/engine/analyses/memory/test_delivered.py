"""Which sums a caller may be told, through whatever they flow, and that those keep their order."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import make, module_of

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.reductions import free_sums
from irgrad.engine.analyses.memory.delivered import delivered

SUM = "double s = 0; for (long i = 0; i < 100; i++) s += x[i] * x[i];"
HELPERS = """
NOINLINE static void put(double *to, double v) { *to = v; }
NOINLINE static double get(const double *from) { return *from * 2; }
NOINLINE static double total(const double *x) { double t = 0; for (long i = 0; i < 100; i++) t += x[i]; return t; }
int printf(const char *, ...);
"""
TOLD = {
    "stored": "o[0] = s * s;",
    "through memory": "double t[2]; put(t + 1, s); o[0] = get(t + 1);",
    "through a copy": "double t[9], u[9]; for (int i = 0; i < 9; i++) put(t + i, s); memcpy(u, t, 72); o[0] = get(u);",
    "through the heap": "double *t = malloc(80); put(t, s); o[0] = get(t); free(t);",
    "as a condition": "if (s > 1) o[0] = x[0];",
    "as a place": "o[(long)s & 7] = x[0];",
    "printed": 'printf("%g", s);',
}
SILENT = {
    "discarded": "q[0] = s * s;",
    "discarded, read back": "q[0] = s; q[1] = get(q) * s;",
    "in local memory": "double t[2]; put(t + 1, s); q[0] = get(t + 1); o[0] = x[1];",
    "beside what is told": "o[0] = x[3]; q[0] = s;",
}


def _told(body: str, silent: bool = True) -> bool:
    """Whether the caller may be told the sum; it does not ask for q."""
    module = module_of(f"{HELPERS} void f(double *x, double *o, double *q) {{ {SUM} {body} }}", "f")
    root = module.functions["f"]
    pointers = points_to(module, root)
    (one,) = free_sums(root, get(Loops, root))
    quiet = pointers.object_of.get(root.args[2])
    return one in delivered(pointers, 1 << quiet.index if silent and quiet is not None else 0)


@pytest.mark.parametrize("body", TOLD.values(), ids=list(TOLD))
def test_what_the_caller_is_told(body: str) -> None:
    assert _told(body)


@pytest.mark.parametrize("body", SILENT.values(), ids=list(SILENT))
def test_what_it_is_not(body: str) -> None:
    assert not _told(body)
    assert _told(body, silent=False)


def test_sums_of_callees_count_by_where_their_results_go() -> None:
    for target, told in (("o", True), ("q", False)):
        module = module_of(f"{HELPERS} void f(double *x, double *o, double *q) {{ {target}[0] = total(x); }}", "f")
        root, callee = module.functions["f"], module.functions["total"]
        pointers = points_to(module, root)
        (one,) = free_sums(callee, get(Loops, callee))
        assert (one in delivered(pointers, 1 << pointers.object_of[root.args[2]].index)) == told


def test_values_that_are_told_are_bitwise_those_of_the_function() -> None:
    """One of two sums is told: in both modes it is the function's to the bit, while the other one is reordered."""
    source = """
void f(double *x, double *o, double *q) {
    double s = 0, t = 0;
    for (long i = 0; i < 1000; i++) s += x[i] * 0.1;
    for (long i = 0; i < 1000; i++) t += x[i] * x[i];
    o[0] = s; q[0] = t * t;
}"""
    x = np.random.default_rng(3).normal(size=1000)
    gradient = 0.1 + 4 * (x @ x) * x
    for mode, want in (("forward", np.sum(gradient)), ("reverse", 1 + gradient)):
        told = []
        for options in ({"discard": [2]}, {"strict_fp": True}):
            made = make(source, "f", mode, ["dup", "dup", "dup"], **options)
            o, q, do, dq, dx = np.zeros(1), np.zeros(1), np.ones(1), np.ones(1), np.ones(1000)
            made(x, dx, o, do, q, dq)
            assert np.allclose(dx if mode == "reverse" else do + dq, want, rtol=1e-12)
            told.append((o.tobytes(), sum("reassoc" in i.flags for i in made.function.instructions())))
        assert told[0][0] == told[1][0]
        assert told[0][1] > told[1][1] == 0
