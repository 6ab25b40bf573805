"""What loops hand on where they change nothing, on a condition that stays, is what entered them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.steady_phis import drop_steady

LOOP = """define double @f(i64 %n, i1 %c, double %x) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %back ]
  %old = phi double [ 0.5, %entry ], [ %new, %back ]
  %sum = phi double [ 0.0, %entry ], [ %more, %back ]
  {}
work:
  %y = fmul double %sum, %x
  %made = fadd double %y, {}
  br label %back
back:
  %new = phi double [ %old, %loop ], [ %made, %work ]
  %some = phi double [ %old, %loop ], [ 1.0, %work ]
  %more = fadd double %sum, %some
  %next = add i64 %i, 1
  %end = icmp sge i64 %next, %n
  br i1 %end, label %out, label %loop
out:
  ret double {}
}}
"""
STAYS = "br i1 %c, label %work, label %back"
CHANGES = "%odd = trunc i64 %i to i1\n  br i1 %odd, label %work, label %back"


def _values(text: str) -> list[float]:
    call = compile_module(text, ["f"], cache=False).function(
        "f", ctypes.c_double, ctypes.c_int64, ctypes.c_int, ctypes.c_double)  # fmt: skip
    return [call(n, c, 0.25) for n in (1, 2, 5) for c in (0, 1)]


@pytest.mark.parametrize(("branch", "used", "result", "gone"), [
    (STAYS, "%x", "%more", 1),
    (CHANGES, "%x", "%more", 0),  # an iteration that changes it may come before
    (STAYS, "%old", "%more", 0),  # what is new is made of what was
    (STAYS, "%x", "%old", 0),  # it leaves the loop, from whichever way
])  # fmt: skip
def test_only_where_no_iteration_changes_it(branch: str, used: str, result: str, gone: int) -> None:
    text = LOOP.format(branch, used, result)
    module = read(text)
    assert drop_steady(module.functions["f"]) == gone
    made = to_text(module)
    assert ("%old" in made) is not gone
    assert _values(made) == _values(text)


def test_the_first_of_a_scratch_vector() -> None:
    """LLVM hands it on from iteration to iteration, in case that the loop which fills it does not run."""
    source = """
    #include <math.h>
    #include <stdlib.h>
    double f(const double *x, long n, long k) {
        double *t = malloc((k + 1) * sizeof *t), s = 0;
        for (long i = 0; i < n; i++) {
            for (long j = 0; j < k; j++) t[j] = x[i] * (j + 1);
            double top = t[0], r = 0;
            for (long j = 1; j < k; j++) if (t[j] > top) top = t[j];
            for (long j = 0; j < k; j++) r += exp(t[j] - top);
            s += top + log(r);
        }
        free(t);
        return s;
    }"""
    library, x = ig.load(source), np.linspace(0.1, 2, 40)
    fused = ig.grad(library.kernel("f", "f64(f64[n] x, i64 n, i64 k)", checkpoint={6: "fused"}))
    np.testing.assert_allclose(
        fused(x, 3), ig.grad(library.kernel("f", "f64(f64[n] x, i64 n, i64 k)"))(x, 3), rtol=1e-13
    )
