"""Chunks say which accesses never meet, until they are differentiated again."""

from __future__ import annotations

import re

import numpy as np

import irgrad as ig
from irgrad.engine.ir.text.outline import function_bodies
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.iteration_scopes import DECLARE, drop_scopes, without_scopes
from irgrad.engine.normalise.iterations import ITERATION

SHARED = """
double f(const double *restrict x, double *restrict y, long n, long m) {
    double s = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++) y[i] += x[i] * x[i] * j;
    for (long i = 0; i < n; i++) s += y[i] * y[i];
    return s;
}
"""


def _of_iterations(text: str) -> str:
    return "".join(body for name, body in function_bodies(text).items() if ITERATION in name)


def test_chunks_have_scopes_until_they_are_differentiated_again() -> None:
    kernel = ig.load(SHARED).kernel("f", "f64(f64[n] x, inout f64[n] y, i64 n, i64 m)", threads=2)
    x, y = np.linspace(0.1, 1, 40), np.linspace(1, 2, 40)
    ig.vjp(kernel, x, y.copy(), 3)
    text = kernel.primal.pullback([0, 1]).stage.text
    assert "!alias.scope" in _of_iterations(text) and DECLARE in _of_iterations(text)
    left = without_scopes(text)
    assert not {"!alias.scope", "!noalias", DECLARE} & set(re.findall(r"[!\w.]+", _of_iterations(left)))
    assert ITERATION in left and "!alias.scope" in left  # what is outside of iterations keeps its own
    verify_module(read(left))
    module = read(text)
    assert drop_scopes(module)
    assert not drop_scopes(module)
    assert without_scopes(left) is left
    assert without_scopes("define void @f() {\n  ret void\n}\n") == "define void @f() {\n  ret void\n}\n"
