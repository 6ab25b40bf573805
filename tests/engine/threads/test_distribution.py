"""Loops as two: what threads do at once, then critical sections and the like in the order of the iterations."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.interop.driver import main_cc
from irgrad.rules.errors import OneThread

HEAD = r"""
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
typedef struct { double re, im; } pair;
typedef struct { double m, s; } weighed;
typedef struct { double v; long at; } place;
static pair times(pair a, pair b) { return (pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static weighed joined(weighed a, weighed b) { double m = fmax(a.m, b.m); return (weighed){m, a.s * exp(a.m - m) + b.s * exp(b.m - m)}; }
#pragma omp declare reduction(times : pair : omp_out = times(omp_out, omp_in)) initializer(omp_priv = (pair){1, 0})
#pragma omp declare reduction(join : weighed : omp_out = joined(omp_out, omp_in)) initializer(omp_priv = (weighed){-1e30, 0})
#pragma omp declare reduction(largest : place : omp_out = omp_in.v > omp_out.v ? omp_in : omp_out) initializer(omp_priv = (place){-1e300, 0})
struct cells { double *h; long count; };
static double slow(double a) { double s = a; for (int k = 0; k < 9; k++) s = sin(s) + 0.3 * a; return s; }
"""
FUNCTION = r"""
static double f(const double *restrict x, double *restrict y, long n) {
  START
  #pragma omp parallel for CLAUSE
  for (long i = 0; i < n; i++) {
    BODY
  }
  return RESULT;
}
"""
EIGHT = "double h[8]; for (int j = 0; j < 8; j++) h[j] = 0.3 + 0.1 * j;"
SUM = "h[0] * h[1] + h[2] * h[3] - h[4] + h[5] * h[6] * h[7]"
ATOMIC, CRITICAL = "\n#pragma omp atomic\n", "\n#pragma omp critical\n"
CASES = {
    "the place of the largest": ("double m = -1e9; long at = 0;", "", f"double v = slow(x[i]);{CRITICAL}if (v > m) {{ m = v; at = i; }}", "m * x[at]"),
    "the largest of a variable": ("double m = -1e9;", "", f"double v = slow(x[i]);{CRITICAL}if (v > m) m = v;\ny[i] = v;", "m"),
    "a product": ("double m = 1;", "", f"double v = 1 + 0.01 * slow(x[i]);{CRITICAL}m *= v;", "m"),
    "an atomic product": ("double m = 1;", "", f"double v = 1 + 0.01 * slow(x[i]);{ATOMIC}m *= v;", "m"),
    "an atomic quotient of a float": ("float m = 1;", "", f"float v = 1 + 0.01f * (float)slow(x[i]);{ATOMIC}m /= v;", "m"),
    "extremes of elements": (EIGHT, "", f"double v = slow(x[i]);{CRITICAL}{{ if (v > h[i % 5]) h[i % 5] = v; h[7] = fmin(h[7], v); }}", SUM),
    "atomic products of elements": (EIGHT, "", f"double v = 1 + 0.01 * slow(x[i]);{ATOMIC}h[i * 3 % 8] *= v;", SUM),
    "products of an argument": ("", "", f"double v = 1 + 0.01 * slow(x[i]);{ATOMIC}y[i * 7 % n] *= v;", "y[0]"),
    "two sections that meet": (EIGHT + "double m = 0;", "", f"double v = slow(x[i]);{CRITICAL}{{ h[i % 8] = 0.5 * h[i % 8] + v; }}\ndouble w = v * cos(v);{CRITICAL}m = 0.9 * m + h[(i + 1) % 8] * w;", f"m + {SUM}"),
    "in an order": ("double m = 0;", "", f"double v = slow(x[i]);{CRITICAL}m = sin(m) + v;", "m"),
    "a captured sum": ("double m = 0.1;", "", "double v = slow(x[i]), b;\n#pragma omp atomic capture\n{ b = m; m += v; }\ny[i] = b * v;", "m"),
    "a captured place": ("long c = 0;", "", "double v = slow(x[i]); long b;\nif (v > 0.2) {\n#pragma omp atomic capture\nb = c++;\ny[b] = v * x[i];\n}", "c * y[0]"),
    "what depends on what was captured": ("double m = 0;", "", "double v = slow(x[i]), b;\n#pragma omp atomic capture\nb = m += v;\nif (b > 3) y[i] = slow(b); else y[i] = v;", "m"),
    "an element that is read again": ("", "", f"double v = slow(x[i]);{CRITICAL}if (v > y[i / 2]) y[i / 2] = v;\n", "y[1] * y[2]"),
    "variables of an iteration": (EIGHT, "", f"double t[4]; for (int j = 0; j < 4; j++) t[j] = slow(x[i] + j);{CRITICAL}for (int j = 0; j < 4; j++) h[(i + j) % 8] = fmax(h[(i + j) % 8], t[(i + j * 3) % 4]);", SUM),
    "under conditions": (EIGHT, "", f"double v = slow(x[i]), w = 0;\nif (v > 0.1) {{ w = slow(v); if (w > 0.3) {{{CRITICAL}h[i % 8] = fmax(h[i % 8], w); }} else {{{ATOMIC}h[1] *= 1 + 0.001 * v; }} }}\ny[i] = w;", SUM),
    "an array reduction": (EIGHT, "reduction(+ : h[:8])", "h[i * 3 % 8] += slow(x[i]); h[i % 5] += x[i];", SUM),
    "the largest of an array": (EIGHT, "reduction(max : h)", "double v = slow(x[i]); if (v > h[i % 8]) h[i % 8] = v;", SUM),
    "products of an array": (EIGHT, "reduction(* : h[2:3])", "h[2 + i % 3] *= 1 + 0.01 * slow(x[i]);", SUM),
    "an array of some length": ("", "reduction(+ : y[:n])", "y[i * 7 % n] += slow(x[i]);", "y[3]"),
    "an operator on numbers": ("pair p = {1, 0.1};", "reduction(times : p)", "double v = slow(x[i]); p = times(p, (pair){1 + 0.01 * cos(v), 0.01 * v});", "p.re + 2 * p.im"),
    "an operator with exponents": ("weighed p = {0.1, 1};", "reduction(join : p)", "p = joined(p, (weighed){slow(x[i]), 1});", "p.m + log(p.s)"),
    "an operator that chooses": ("place p = {-1, 0};", "reduction(largest : p)", "double v = slow(x[i]); if (v > p.v) p = (place){v, i};", "p.v * x[p.at]"),
    "members": ("double *q = calloc(9, 8); struct cells its = {q, 0}, *c = &its;", "", f"double v = slow(x[i]);\nif (v > 0.2) {{{CRITICAL}{{ c->count++; c->h[i % 9] = fmax(c->h[i % 9], v); }} }}", "q[0] * q[1] + its.count * q[2]"),
}  # fmt: skip
SIGNATURE = "f64(f64[n] x, inout f64[n] y, i64 n)"
X = np.random.default_rng(7).normal(size=150)
Y = 0.3 + 0.1 * np.sin(np.arange(150.0))
QUICK = ("the place of the largest", "a captured place", "variables of an iteration", "under conditions", "an array reduction", "an operator that chooses")


def _source(name: str) -> str:
    start, clause, body, result = CASES[name]
    text = FUNCTION.replace("START", start).replace("CLAUSE", clause).replace("BODY", body).replace("RESULT", result)
    return HEAD + text


def _results(kernel: Any) -> list[np.ndarray]:
    values, pullback = ig.vjp(kernel, X, Y)
    bars = (1.3, np.cos(np.arange(Y.size)))
    gradients = pullback(bars)
    slopes = np.sin(np.arange(X.size) + 1.0), np.cos(np.arange(Y.size) * 2.0)
    _, pushed = ig.jvp(kernel, (X, Y), slopes)
    both = sum(float(g @ t) for g, t in zip(gradients, slopes, strict=True))
    assert bars[0] * pushed[0] + bars[1] @ pushed[1] == pytest.approx(both, rel=1e-5)
    return [*map(np.asarray, values), *gradients, *map(np.asarray, pushed)]


def _cases() -> list[Any]:
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in CASES]


@pytest.mark.parametrize("name", _cases())
def test_kernels(name: str) -> None:
    lib = ig.load(_source(name).replace("static double f(", "double f("), flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        kernels = {t: lib.kernel("f", SIGNATURE, threads=t) for t in (1, 2, 4, 16)}
        found = {t: _results(kernel) for t, kernel in kernels.items()}
    assert shared_loops(kernels[2].primal).shared
    plain = lib.kernel("f", SIGNATURE)
    single = "float m" in CASES[name][0]
    for results in found.values():
        for a, b, c in zip(results, found[1], _results(plain), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-4 if single else 1e-10, atol=1e-12)
    report = ig.check(plain, X, Y)
    assert single or report.ok, report


MAIN = r"""
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static void show(const double *a, long n) {
  unsigned long h = 0; double s = 0;
  for (long i = 0; i < n; i++) h = h * 31 + ((const unsigned long *)a)[i], s += a[i] * cos(i);
  printf("%016lx %.17g\n", h, s);
}
static double whole(const double *restrict x, double *restrict y, long n) {
  double s = f(x, y, n);
  for (long i = 0; i < n; i++) s += y[i] * cos(3 * i);
  return s;
}
int main(void) {
  long n = 700;
  double *x = malloc(n * 8), *dx = calloc(n, 8), *tx = malloc(n * 8), *y = malloc(n * 8), *dy = calloc(n, 8), *ty = calloc(n, 8);
  double before = 0, after = 0;
  for (long i = 0; i < n; i++) x[i] = sin(i * 1.3), tx[i] = cos(i * 0.7), y[i] = 0.3 + 0.1 * sin(i);
  double s = f(x, y, n);
  show(&s, 1);
  show(y, n);
  for (long i = 0; i < n; i++) y[i] = 0.3 + 0.1 * sin(i);
  __enzyme_autodiff((void *)whole, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n);
  show(dx, n);
  show(dy, n);
  for (long i = 0; i < n; i++) y[i] = 0.3 + 0.1 * sin(i), after += dx[i] * tx[i];
  before = __enzyme_fwddiff((void *)whole, enzyme_dup, x, tx, enzyme_dup, y, ty, enzyme_const, n);
  show(&before, 1);
  printf("0 %.17g\n", after);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", _cases())
def test_programs(name: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.c"
    file.write_text(_source(name) + MAIN)
    for flags in ([level, "-fopenmp"], [level]):
        assert main_cc([*flags, str(file), "-lm", "-o", str(tmp_path / f"p{len(flags)}")]) == 0
    assert "a loop of the program runs on one thread" not in (said := capfd.readouterr().err)
    assert "a worksharing loop" not in said
    runs = [(2, threads) for threads in (1, 2, 4, 16)] + [(1, 1)]
    found = [subprocess.run([str(tmp_path / f"p{number}")], env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                            check=True, capture_output=True, text=True).stdout for number, threads in runs]  # fmt: skip
    assert set(found[:-1]) == {found[0]}
    ours, plain = ([float(row.split()[1]) for row in said.splitlines()] for said in (found[0], found[-1]))
    assert ours == pytest.approx(plain, rel=1e-4 if "float m" in CASES[name][0] else 1e-9)
    assert ours[-1] == pytest.approx(ours[-2], rel=1e-4 if "float m" in CASES[name][0] else 1e-9)


def test_cheap_iterations_stay_with_one_thread_and_are_told() -> None:
    text = HEAD + FUNCTION.replace("START", EIGHT).replace("CLAUSE", "").replace("RESULT", SUM)
    text = text.replace("BODY", f"{CRITICAL}h[i % 8] = fmax(h[i % 8], x[i]);").replace("static double f(", "double f(")
    kernel = ig.load(text, flags=["-fopenmp"]).kernel("f", SIGNATURE, threads=2)
    with pytest.warns(OneThread, match="but for what one thread does at a time, its iterations do too little"):
        kernel(X, Y)
