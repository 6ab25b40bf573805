"""Products of lanes that a loop keeps stay outside of it; the derivatives are the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fuzz.widths import MODES, compare

import irgrad
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.schedule.factors import keep_factors

SOURCE = """
#include <math.h>
void layer(const double *x, const double *w, double *y, long n) {
    for (long i = 0; i < n; i++) {
        double s = 0;
        for (long j = 0; j < n; j++) s += w[i * n + j] * x[j];
        y[i] = tanh(s);
    }
}
void single(const float *x, const float *w, float *y, long n) {
    for (long i = 0; i < n; i++) {
        float s = 0;
        for (long j = 0; j < n; j++) s += w[i * n + j] * x[j];
        y[i] = sinf(s) / (1 + i);
    }
}
void map(const double *x, const double *w, double *y, long n) {     /* nothing is kept */
    for (long i = 0; i < n; i++) y[i] = w[i] * x[i] * x[i];
}
"""
PRODUCT = """
define void @f(ptr noalias %lanes, ptr noalias %w, ptr noalias %y, double %factor, i64 %n) {
entry:
  %kept = load <4 x double>, ptr %lanes, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr double, ptr %w, i64 %i
  %weight = load double, ptr %at
  %both = fmul FLAGS double %weight, %factor
  %first = insertelement <4 x double> poison, double %both, i64 0
  %spread = shufflevector <4 x double> %first, <4 x double> poison, <4 x i32> zeroinitializer
  %product = fmul FLAGS <4 x double> %spread, %kept
  %to = getelementptr <4 x double>, ptr %y, i64 %i
  store <4 x double> %product, ptr %to, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def _kernel(name: str) -> Any:
    kind = "f32" if name == "single" else "f64"
    weights = "n" if name == "map" else "n,n"
    return irgrad.load(SOURCE).kernel(name, f"void({kind}[n] x, {kind}[{weights}] w, out {kind}[n] y, i64 n)")


def _in_loops(module: Module, opcode: str, vectors: bool) -> int:
    """How many instructions of that opcode innermost loops have."""
    count = 0
    for fn in module.functions.values():
        if fn.blocks:
            loops = Loops(Cfg(fn))
            inner = [b for b in fn.blocks if (found := loops.of(b)) is not None and not found.children]
            count += sum(i.opcode == opcode and i.type.is_vector == vectors for b in inner for i in b.instructions)
    return count


@pytest.mark.parametrize("name", ["layer", "single", "map"])
def test_the_same_derivatives(name: str) -> None:
    rng = np.random.default_rng(3)
    kind = np.float32 if name == "single" else np.float64
    for n in (1, 5, 40):
        w = rng.normal(size=n if name == "map" else (n, n)).astype(kind)
        inputs = {"x": rng.normal(size=n).astype(kind), "w": w / n}
        for mode in MODES:
            assert not compare(_kernel(name), inputs, ["x"], 8, mode, 1e-4 if name == "single" else 1e-12)


def test_a_layer_in_reverse() -> None:
    """The factor of tanh leaves the loop over the weights: one product of one number and lanes is left there."""
    program = _kernel("layer").primal.pullback((0, 2), 4)
    module = read(prepare(program.stage.text, [program.stage.name]), roots=[program.stage.name])
    assert _in_loops(module, "fmul", vectors=False) == 1
    assert keep_factors(module) > 0
    assert keep_factors(module) == 0, "there is nothing left to fix"
    text = to_text(module)
    again = read(prepare(text, [program.stage.name]), roots=[program.stage.name])
    assert _in_loops(again, "fmul", vectors=False) == 0, "LLVM joined the products again"
    assert _in_loops(again, "fmul", vectors=True) == 1


def test_nothing_to_keep() -> None:
    """Products that nothing is taken out of stay as they are: LLVM may join them (pair forces, 1.08 of the time)."""
    program = _kernel("map").primal.pullback((0, 2), 4)
    module = read(prepare(program.stage.text, [program.stage.name]))
    before = to_text(module)
    assert keep_factors(module) == 0
    assert to_text(module) == before and re.search(r"fmul reassoc .*<4 x double>", before)


@pytest.mark.parametrize("flags", ["reassoc", "reassoc nsz contract", ""])
def test_one_product(flags: str) -> None:
    """The same numbers but for rounding, and nothing without the flag that allows it."""
    import ctypes

    text = PRODUCT.replace("FLAGS", flags)
    module = read(text)
    assert keep_factors(module) == bool(flags)
    lanes, w = np.array([1.1, -0.3, 1e-3, 7.0]), np.array([0.7, 2.5, -1.3])
    results = []
    for source in (text, to_text(module)):
        y = np.zeros((3, 4))
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_int64)
        call = compile_module(source, ["f"], cache=False).function("f", None, *kinds)
        call(lanes.ctypes.data, w.ctypes.data, y.ctypes.data, 0.37, 3)
        results.append(y)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-15)
    np.testing.assert_allclose(results[0], np.outer(w * 0.37, lanes), rtol=1e-15)
