"""Loops of wide derivatives cut in two: the same derivatives, also around the size of a chunk; what is left whole."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fuzz.widths import MODES, compare
from handwritten.made import make

import irgrad
from irgrad.engine import jacfwd, jacrev
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.differentiate.layout.lanes import LANES
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import scheduled
from irgrad.engine.schedule.distribute import CHUNK, distribute

SOURCE = """
#include <math.h>
void map(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = exp(x[i]) * sin(x[i]);
}
void chosen(const double *x, double *y, long n) {           /* conditions go through a buffer of bytes */
    for (long i = 0; i < n; i++) y[i] = exp(x[i] > 0.3 ? x[i] : 0.5 * x[i]) * cos(x[i]);
}
void last(const double *x, double *y, long n) {             /* the last value of a scalar and of its lanes */
    double e = 0, s = 0;
    for (long i = 0; i < n; i++) { e = exp(x[i]) / (1 + x[i] * x[i]); s += e * x[i]; y[i] = s; }
    y[0] = e * s;
}
void place(double *x, double *y, long n) {                  /* what is read is overwritten */
    for (long i = 0; i < n; i++) { y[i] = exp(x[i]) / x[i]; x[i] = sin(x[i]) * y[i]; }
}
void pairs(const double *x, double *y, long n) {            /* a nest, addresses that run backwards */
    for (long i = 0; i < 3; i++)
        for (long j = n - 1; j >= 0; j--) y[j] += exp(x[j] * x[i % n]) / (2 + sin(x[j]));
}
void single(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = expf(x[i]) * sinf(x[i]) / (1 + x[i]);
}
void chained(const double *x, double *y, long n) {          /* a float from one iteration to the next */
    double s = 0.3;
    for (long i = 0; i < n; i++) { s = sin(s) + exp(x[i]); y[i] = s; }
}
void moved(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] + 3;
}
void linear(const double *x, double *y, long n) {           /* nothing to be had */
    for (long i = 0; i < n; i++) y[i] = 3 * x[i];
}
"""
SIGNATURE = {
    "single": "void(f32[n] x, out f32[n] y, i32 n)", "pairs": "void(f64[n] x, inout f64[n] y, i64 n)",
    "place": "void(inout f64[n] x, out f64[n] y, i64 n)",
}  # fmt: skip
CUT = {"map": 1, "chosen": 1, "place": 1, "pairs": 3, "single": 1}  # how many loops; the nest is unrolled before


def _kernel(name: str) -> Any:
    return irgrad.load(SOURCE).kernel(name, SIGNATURE.get(name, "void(f64[n] x, out f64[n] y, i64 n)"))


def _program(name: str, mode: str, width: int) -> Any:
    primal = _kernel(name).primal
    return getattr(primal, "jvp_only" if mode == "forward" else "pullback")((0, 1), width)


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 200])
@pytest.mark.parametrize("name", [*CUT, "last", "chained"])
def test_the_same_derivatives(name: str, n: int) -> None:
    """Against separate derivatives, whose loops are whole."""
    kernel = _kernel(name)
    x = np.random.default_rng(n).uniform(0.1, 1.0, n).astype(np.float32 if name == "single" else np.float64)
    inputs = {"x": x, "y": np.ones_like(x)} if name == "pairs" else {"x": x}
    for mode in MODES:
        assert not compare(kernel, inputs, ["x"], 4, mode, 1e-4 if name == "single" else 1e-12)


@pytest.mark.parametrize("width", [8, 16, 24])
@pytest.mark.parametrize("name", ["map", "pairs", "single"])
def test_chunks_of_lanes_that_fill_cache_lines(name: str, width: int) -> None:
    """They are 8 doubles or 16 floats long, whatever the width."""
    kernel = _kernel(name)
    for n in (1, 7, 8, 9, 15, 16, 17, 100):
        x = np.random.default_rng(n).uniform(0.1, 1.0, n).astype(np.float32 if name == "single" else np.float64)
        inputs = {"x": x, "y": np.ones_like(x)} if name == "pairs" else {"x": x}
        for mode in MODES:
            assert not compare(kernel, inputs, ["x"], width, mode, 1e-4 if name == "single" else 1e-12)
    for mode in MODES:
        buffers = set(re.findall(r"alloca \[(\d+) x (?:double|float)\], align 64", _program(name, mode, width).ir))
        filled = width * (4 if name == "single" else 8) >= 64
        assert buffers == {str(16 if name == "single" else 8) if filled else str(CHUNK)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CUT)
def test_loops_that_are_cut(name: str, mode: str) -> None:
    """No block has maths of the primal and lanes side by side any more."""
    program = _program(name, mode, 4)
    text = program.stage.text
    assert LANES in text
    module = read(prepare(text, [program.stage.name]))
    assert distribute(module) == CUT[name]
    assert distribute(read(to_text(module))) == 0
    for fn in module.functions.values():
        for block in fn.blocks:
            maths = any(i.is_call and (i.callee_name or "").startswith("llvm.exp") for i in block.instructions)
            assert not (maths and any(i.type.is_vector for i in block.instructions))


@pytest.mark.parametrize("name", ["chained", "linear", "moved"])
def test_loops_that_stay_whole(name: str) -> None:
    program = _program(name, "forward", 4)
    text = program.stage.text
    assert distribute(read(prepare(text, [program.stage.name]))) == 0
    assert scheduled(text, program.stage.name) is text, "no pass has anything to do"


def test_only_plain_shadows() -> None:
    """Where lanes travel in integers or small copies, a scalar access may be one of shadow memory."""
    plain = "void f(double *x, double *y, long *n) { for (long i = 0; i < *n; i++) y[i] = exp(x[i]); }"
    copied = "void f(float *x, float *y, long *n) { for (long i = 0; i < *n; i++) memcpy(y + 4 * i, x + 4 * i, 20); }"
    small = "void f(double *x, double *y, long *n) { volatile double s = x[0]; y[0] = s * s; }"
    assert LANES in make(plain, "f", "forward", ["dup", "dup", "const"], width=4).function.tail
    assert LANES not in make(plain, "f", "forward", ["dup", "dup", "const"]).function.tail
    for source in (copied, small):
        made = make(source, "f", "forward", ["dup", "dup", "const"], width=4)
        assert LANES not in made.function.tail, made.text


VECTORS = """
#include <math.h>
#include <stdlib.h>
typedef double v2d __attribute__((vector_size(16), aligned(8), may_alias));
#define STEP double z = u[i], e = exp(-z) + sqrt(1 + z * z) + sin(z);
#define KERNEL(NAME, ...) \\
  double NAME(double *x, long n) { \\
    double *w = malloc(200 * 8), *u = malloc(200 * 8), s = 0; \\
    for (long i = 0; i < 200; i++) { w[i] = 0.01 * i; u[i] = x[i % n] * 0.01 * i; } \\
    for (long i = 0; i < 150; i++) { STEP __VA_ARGS__ } \\
    free(w); free(u); \\
    return s; \\
  }
KERNEL(loaded, v2d v = *(v2d *)(w + i); w[i] = 7; w[i + 3] = 0.5 * w[i + 4]; v = v * v + 1.0;
       s += e * (v[0] + 2 * v[1]);)
KERNEL(stored, double t = w[i]; v2d v = {t, t + 1}; *(v2d *)(w + i + 1) = v; s += e * t;)
KERNEL(between, double t = w[i]; v2d v = {t, z}; v = v * v + 1.0; v = v / (v + 2.0); w[i + 3] = v[0] + 2 * v[1] * v[0];
       s += e * t;)
"""


@pytest.mark.parametrize("name", ["loaded", "stored", "between"])
def test_vectors_of_the_primal_are_no_lanes(name: str) -> None:
    """The primal's own vectors keep their place among the numbers that it loads and stores."""
    kernel = irgrad.load(VECTORS, language="c").kernel(name, "f64(f64[n] x, i64 n)")
    x = np.array([0.7, 1.3, -0.4])
    want = jacfwd(kernel, width=1)(x)
    for width in (3, 8):
        np.testing.assert_allclose(jacfwd(kernel, width=width)(x), want, rtol=1e-12)
        np.testing.assert_allclose(jacrev(kernel, width=width)(x), want, rtol=1e-12)
