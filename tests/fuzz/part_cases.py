"""Worksharing loops in two parts, as kernels and as programs: what threads do at once, then what stays in order."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import numpy as np

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


def source_of(name: str) -> str:
    """The functions of a case."""
    start, clause, body, result = CASES[name]
    text = FUNCTION.replace("START", start).replace("CLAUSE", clause).replace("BODY", body).replace("RESULT", result)
    return HEAD + text

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
