"""Widened functions against the function itself, lane by lane, as machine code."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.widen.widening import widen

RNG = np.random.default_rng(5)
KERNELS: dict[str, tuple[str, str]] = {
    "straight": ("f64(f64 x, f64 y)", "double f(double x, double y) { return x * y - x / (1 + y * y); }"),
    "math": ("f64(f64 x, f64 y)", "double f(double x, double y) { return sin(x) + pow(fabs(y), x) + fmin(x, y); }"),
    "library": ("f64(f64 x, f64 y)", "double f(double x, double y) { return erf(x) + lgamma(1 + y * y); }"),
    "single": ("f32(f32 x, f32 y)", "float f(float x, float y) { return expf(x) * sqrtf(1 + y * y); }"),
    "mixed": ("f64(f64 x, f32 y)", "double f(double x, float y) { return x * y + (double)(float)x; }"),
    "loop": ("f64(f64[4] x, f64[3] y)", """double f(const double *x, const double *y) {
        double s = 0;
        for (int i = 0; i < 4; i++) for (int j = 0; j < 3; j++) s += x[i] * y[j] * (i + 1); return s; }"""),
    "local": ("f64(f64[5] x, f64 y)", """double f(const double *x, double y) {
        double a[5], s = 0; for (int k = 0; k < 9; k++) for (int i = 0; i < 5; i++) a[(i + k) % 5] = x[i] * y + s;
        for (int i = 0; i < 5; i++) s += a[i] * a[4 - i]; return s; }"""),
    "struct": ("f64(f64[6] x, f64 y)", """typedef struct { double a, b[2]; } T;
        double f(const double *x, double y) {
        const T *t = (const T *)x; return t[0].a * t[1].b[1] + y * t[1].a + t[0].b[0]; }"""),
    "select": ("f64(f64 x, f64 y)", "double f(double x, double y) { return x > y ? x * x : y < 0 ? -y : x + y; }"),
    "sides": ("f64(f64 x, f64 y)", """double f(double x, double y) {
        if (x > 0) { y = exp(-x) * log(1 + x) + y; } else { y = sin(x * y); }
        if (y > 0.5) y = sqrt(y) + cos(y); return y; }"""),
    "integers": ("f64(f64 x, f64 y)", """double f(double x, double y) {
        long k = (long)(8 * x); return (k & 3) + (k % 5) * y + (double)(k << 1); }"""),
    "copies": ("f64(f64[4] x, f64 y)", """double f(const double *x, double y) {
        double a[4], b[4]; memset(b, 0, sizeof b); memcpy(a, x, sizeof a);
        for (int k = 0; k < 7; k++) { b[k % 4] += a[(3 * k) % 4] * y; memmove(a, a + 1, 3 * sizeof *a); }
        return a[0] + b[0] + b[1] * b[2] + b[3]; }"""),
    "spread": ("f64(f64 x, f64[4] y)", """double f(double x, const double *y) {
        double a[4], s = 0; memcpy(a, y, sizeof a);
        for (int k = 0; k < 30; k++) { a[k % 4] += x * a[(k + 1) % 4] / 9; s += a[(k * k) % 4]; } return s; }"""),
    "extended": ("f64(f64[4] x, f64 y)", """static const long double table[4] = {1, 2.5L, 3, 4.25L};
        double f(const double *x, double y) { long double a[4], s = 0; memcpy(a, table, sizeof a);
        for (int i = 0; i < 30; i++) { int k = (int)(fabs(x[i % 4]) * 9) % 4;
            a[k] += a[(k + i) % 4] * y / 9; s += a[(i * i) % 4] * x[i % 4]; } return (double)s; }"""),
    "gather": ("f64(f64[6] x, f64 y)", """static const double table[3] = {1.5, -2, 4};
        double f(const double *x, double y) { int i = (int)(fabs(y) * 7); short j = (short)(i + 1);
        return x[i % 6] * y + table[j % 3] * x[j % 6]; }"""),
    "scatter": ("f64(f64[4] x, f64 y)", """double f(const double *x, double y) {
        struct { double a, b[4]; } t[2] = {{1, {2, 3, 4, 5}}, {6, {7, 8, 9, 10}}};
        for (int i = 0; i < 4; i++) {
            unsigned k = (unsigned)(fabs(x[i] * y) * 9);
            t[k & 1].b[k / 2 % 4] += x[i] * t[k % 2].a; }
        return t[0].b[0] + t[1].b[1] * y + t[0].b[2] * t[1].b[3] + t[1].b[0]; }"""),
    "bytes": ("f64(f64[4] x, f64 y)", """double f(const double *x, double y) {
        char seen[40]; int n = 0; memset(seen, 0, 40);
        for (int i = 0; i < 4; i++) { int k = (int)(fabs(x[i]) * 5) & 7; n += 1 - seen[k]; seen[k] = 1; }
        return n * y; }"""),
    "trips": ("f64(f64 x, f64 y)", """double f(double x, double y) {
        double d; long n = 0; y = 2 + y * y;
        do { d = (x * x * x + exp(0.1 * x) - y) / (3 * x * x + 0.2 * exp(0.1 * x)); x -= d; n++; }
        while (fabs(d) > 1e-9 && n < 50);
        return x * n; }"""),
    "entered": ("f64(f64 x, f64 y)", """double f(double x, double y) {
        while (x < 1) x = 0.1 + fabs(x) * (1 + y * y); return x + y; }"""),
    "nested": ("f64(f64 x, f64 y)", """double f(double x, double y) {
        double s = 0; for (int i = 0; i < (int)(5 * fabs(x)); i++) {
            double z = y; int k = 0; do { z = z * z + x / (i + 1); k++; } while (fabs(z) < 4 && k < 30);
            s += k + fmin(fabs(z), 5); }
        return s; }"""),
    "walk": ("f64(f64[6] x, f64 y)", """double f(const double *x, double y) {
        int i = 0; double s = y; do { s += x[i]; i++; } while (s < 1 && i < 6); return s * i; }"""),
    "long": ("f64(f64 x, f64 y)", "double f(double x, double y) { if (x > y) { "
             + " ".join(f"x = sin(x) * 0.{k}5 + y;" for k in range(12)) + " } return x; }"),
    "both": ("f64(f64 x, f64[3] y)", """double f(double x, const double *y) { double a = 1, b = x;
        if (x > 0.2) { a = sin(y[0] * x); b = exp(-y[1] * y[1]); } else { a = cos(y[2]) + x; b += a; }
        if (a > b) a = sqrt(fabs(y[1])) + y[2]; return a * b; }"""),
    "heap": ("f64(f64[3] x, f64 y)", """double f(const double *x, double y) {
        double *a = malloc(24), s = 0; for (int i = 0; i < 3; i++) a[i] = x[i] * y;
        for (int k = 0; k < 30; k++) s += a[k % 3] * s + a[(k + 1) % 3]; free(a); return s; }"""),
}
HEAD = "#include <math.h>\n#include <string.h>\n#include <stdlib.h>\n"


def _module(name: str) -> tuple[Any, Any, Any]:
    signature, source = KERNELS[name]
    kernel = irgrad.load(HEAD + source).kernel("f", signature)
    stage = kernel.primal.stage
    return kernel, read(stage.text, roots=[stage.name]), stage.name


@pytest.mark.parametrize("lanes", (2, 3, 8, 16))
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shared", (False, True))
def test_lanes_are_samples(name: str, lanes: int, shared: bool) -> None:
    """Both arguments per sample, or the second shared by all samples."""
    kernel, module, fname = _module(name)
    slots = kernel.primal.slots
    varying = [0, 2] if shared else [0, 1, 2]
    made = widen(module, fname, varying, [s.dtype.size for s in slots], lanes)
    assert not verify_module(module)
    compiled = compile_module(to_text(module), [made])
    shapes = [tuple(int(str(e)) for e in s.parameter.shape or ()) for s in slots]
    rows = [RNG.normal(size=(*shape, lanes)).astype(s.dtype.numpy) for s, shape in zip(slots, shapes, strict=True)]
    if shared:
        rows[1] = rows[1][..., 0].copy()
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(compiled.address(made))
    call(*(row.ctypes.data for row in rows))
    for lane in range(lanes):
        wanted = kernel(rows[0][..., lane], rows[1] if shared else rows[1][..., lane])
        assert rows[2][lane] == pytest.approx(wanted, rel=1e-5 if name in ("single", "mixed") else 1e-13)


def test_code_is_vector_code() -> None:
    _, module, fname = _module("sides")
    made = widen(module, fname, [0, 1, 2], [8, 8, 8], 4)
    text = to_text(module)
    body = text[text.index(f"define void @{made}") :].split("\n}")[0]
    assert "select <4 x i1>" in body and "@llvm.exp.v4f64(<4 x double>" in body
    assert "br i1" not in body and " double %" not in body.replace("x double>", "")


REFUSED: dict[str, tuple[str, str, str]] = {
    "loop": ("void(inout f64[9] x)", "void f(double *x) { for (int i = 0; x[i] > 1 && i < 9; i++) x[i] /= 2; }",
             "different ways"),
    "pointer": ("f64(f64[4] x, f64[4] y, f64 z)", """double f(const double *x, const double *y, double z) {
                const double *p = z > 0 ? x : y; double s = 0; for (int i = 0; i < 4; i++) s += p[i]; return s; }""",
                "type ptr varies"),
    "global": ("f64(f64 x)", "double s[2]; double f(double x) { s[0] += x; s[1] = 2 * s[0]; return s[1]; }", "global"),
    "call": ("f64(f64 x)", "double f(double x) { return x < 1 ? x : 2 * f(x / 3) * f(x / 2); }", "`f` is called"),
    "pun": ("f64(f64[2] x)", """double f(const double *x) { double s = 0;
        for (int i = 0; i < 4; i++) s += ((const float *)x)[i]; return s + x[0]; }""", "4 and 8 bytes"),
    "store": ("void(f64 x, inout f64[2] y)", "void f(double x, double *y) { if (x > 0) y[1] = exp(x) + y[0]; }",
              "different ways"),
    "volatile": ("f64(f64 x)", "double f(double x) { volatile double y = x; return y; }", "volatile"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_instruction(name: str) -> None:
    signature, source, because = REFUSED[name]
    program = irgrad.load(HEAD + source).kernel("f", signature).primal
    module = read(program.stage.text, roots=[program.stage.name])
    varying = [i for i, s in enumerate(program.slots) if s.dtype.is_float]
    with pytest.raises(irgrad.Unsupported, match=because) as caught:
        widen(module, program.stage.name, varying, [s.dtype.size for s in program.slots], 8)
    assert caught.value.which
