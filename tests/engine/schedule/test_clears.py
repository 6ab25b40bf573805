"""Shadows of stack arrays are cleared as far as loops read, on a stack full of NaN; others are cleared whole."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz.widths import MODES, compare

import irgrad
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.text.reader import read
from irgrad.engine.schedule.clears import shorten_clears

SOURCE = """
#include <math.h>
void layer(const double *x, double *y, long n) {
    double t[600];
    for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < n; j++) s += x[j] * cos(0.1 * (i + j)); t[i] = s; }
    for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < n; j++) s += t[j] * sin(0.1 * i * j); y[i] = s; }
}
void shifted(const double *x, double *y, long n) {          /* offsets, strides, addresses that fall */
    double t[1300];
    for (long i = 0; i <= 2 * n + 3; i++) t[i] = 0.5;
    for (long i = n - 1; i >= 0; i--) t[2 * i + 3] = x[i] * x[n - 1 - i];
    for (long i = 0; i < n; i++) y[i] = t[2 * (n - 1 - i) + 3] * t[n - 1 - i] * t[3];
}
void guarded(const double *x, double *y, long n) {          /* one of two arrays, chosen by data */
    double t[300], u[600];
    for (long i = 0; i < n; i++) { u[i] = x[i] * 2; if (i < 300) t[i] = 0; }
    for (long i = 0; i < n; i++) { if (x[i] > 0 && i < 300) t[i] += x[i] * x[i]; else u[n - 1 - i] += 3 * x[i]; }
    for (long i = 0; i < n; i++) y[i] = u[i] * (i < 300 ? t[i] : 1.0);
}
void nest(const double *x, double *y, long n) {
    double t[4800];
    for (long i = 0; i < n; i++) for (long j = 0; j < 8; j++) t[8 * i + j] = x[i] * (j + x[j % n]);
    for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < 8; j++) s += t[8 * i + j] * t[8 * (n - 1 - i) + j]; y[i] = s; }
}
void whole(const double *x, double *y, long n) {            /* indices that are data */
    double t[600];
    for (long i = 0; i < n; i++) t[i] = x[i];
    for (long i = 0; i < n; i++) { long k = (long)(fabs(x[i]) * 1e6) % n; t[k] *= x[i]; y[i] = t[k]; }
}
void left(const double *x, double *y, long n) {             /* a loop that is left early */
    double t[600];
    for (long i = 0; i < 600; i++) t[i] = 1;
    for (long i = 0; i < n; i++) { t[i] *= x[i] * x[i]; if (t[i] > 0.9) break; }
    for (long i = 0; i < n; i++) y[i] = t[i] * x[i];
}
void strided(const double *x, double *y, long n) {          /* a step that may be zero when the loop does not run */
    double t[600];
    long step = n / 4;
    for (long i = 0; i < n; i++) y[i] = x[i];
    if (n < 4) return;
    for (long i = 0; i < n; i += step) t[i] = x[i] * x[n - 1 - i];
    for (long i = 0; i < n; i += step) y[i] = t[i] * t[0];
}
"""  # noqa: E501
SHORTENED = {"layer": 1, "shifted": 1, "guarded": 1, "nest": 1, "whole": 0, "left": 0, "strided": 0}
DIRTY = """
define void @dirty() {
  %room = alloca [131072 x i64]
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %at = getelementptr i64, ptr %room, i64 %i
  store volatile i64 9221120237041090560, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 131072
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def _kernel(name: str) -> Any:
    return irgrad.load(SOURCE).kernel(name, "void(f64[n] x, out f64[n] y, i64 n)")


@cache
def _dirty() -> Any:
    return compile_module(DIRTY, ["dirty"], cache=False).function("dirty")


@pytest.mark.parametrize("n", [1, 2, 17, 300, 600])
@pytest.mark.parametrize("name", SHORTENED)
def test_the_same_derivatives(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack is overwritten before each call: what should have been cleared and was not is NaN."""
    from irgrad.engine.kernel.programs import Program

    invoke = Program.invoke
    monkeypatch.setattr(Program, "invoke", lambda self, buffers: (_dirty()(), invoke(self, buffers))[1])
    kernel = _kernel(name)
    x = np.random.default_rng(n).uniform(-1.0, 1.0, n)
    for mode in MODES:
        assert not compare(kernel, {"x": x}, ["x"], 4, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SHORTENED)
def test_what_is_shortened(name: str, mode: str) -> None:
    """Each array once; a second look finds nothing more to do."""
    primal = _kernel(name).primal
    program = getattr(primal, "jvp_only" if mode == "forward" else "pullback")((0, 1), 4)
    module = read(prepare(program.stage.text, [program.stage.name]), roots=[program.stage.name])
    assert (shorten_clears(module) > 0) == (SHORTENED[name] > 0)
    assert shorten_clears(module) == 0
    sizes = re.findall(r"llvm\.memset\.p0\.i64\(ptr .*? i8 0, i64 (\S+), i1", program.ir)
    assert any(size.startswith("%") for size in sizes) == (SHORTENED[name] > 0), sizes


def test_ends_of_loops_that_never_run_do_no_harm() -> None:
    """n = 0 makes the end of a loop's accesses a huge number: then all is cleared, and nothing read."""
    kernel = _kernel("layer")
    for mode in MODES:
        assert not compare(kernel, {"x": np.zeros(0)}, ["x"], 4, mode)
