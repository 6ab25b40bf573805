"""Memory that variables keep from call to call: right derivatives in every call, not only in the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, hessian, hvp, jacfwd, jvp
from irgrad.rules.errors import Unsupported

SIGNATURE = "f64(f64[n] x, i64 n)"
SUM = "double s = 0; for (long i = 0; i < n; i++) s = 0.9 * s + b[i] * b[i]; return s; }"
GROWS = {
    "malloc": ("c", f"""#include <stdlib.h>
        static double *b; static long room;
        double f(const double *x, long n) {{
          if (room < n) {{ free(b); b = malloc(n * 8); room = n; }}
          for (long i = 0; i < n; i++) b[i] = x[i] * x[0];
          {SUM}"""),
    "realloc": ("c", f"""#include <stdlib.h>
        static struct {{ long room; double *at; }} work;
        double f(const double *x, long n) {{
          if (work.room < n) work.at = realloc(work.at, (work.room = n) * 8);
          double *b = work.at;
          for (long i = 0; i < n; i++) b[i] = x[i] * x[0];
          {SUM}"""),
    "rows": ("c", """#include <stdlib.h>
        static double **b; static long rows;
        double f(const double *x, long n) {
          if (rows < n) {
            for (long i = 0; i < rows; i++) free(b[i]);
            free(b);
            b = malloc(n * sizeof *b);
            for (long i = 0; i < n; i++) b[i] = malloc(n * 8);
            rows = n;
          }
          for (long i = 0; i < n; i++) b[i][n - 1 - i] = x[i] * x[0];
          double s = 0;
          for (long i = 0; i < n; i++) s = 0.9 * s + b[i][n - 1 - i] * b[i][n - 1 - i];
          return s;
        }"""),
    "tape": ("c", """#include <stdlib.h>
        static double *b; static long room;
        double f(const double *x, long n) {
          if (room < n) { free(b); b = malloc(n * 8); room = n; }
          double t = 1;
          for (long i = 0; i < n; i++) { double v = x[i]; while (v > 0.01) { v *= v; t += v; } b[i] = x[i] * x[0]; }
          double s = 0;
          for (long i = 0; i < n; i++) s = 0.9 * s + b[i] * b[i];
          return s + 0 * t;
        }"""),
    "vector": ("c++", f"""#include <vector>
        extern "C" double f(const double *x, long n) {{
          static std::vector<double> b;
          b.resize(n);
          for (long i = 0; i < n; i++) b[i] = x[i] * x[0];
          {SUM}"""),
    "push_back": ("c++", f"""#include <vector>
        extern "C" double f(const double *x, long n) {{
          static std::vector<double> b;
          b.clear();
          for (long i = 0; i < n; i++) b.push_back(x[i] * x[0]);
          {SUM}"""),
}  # fmt: skip
ADDS = """#include <stdlib.h>
static double *b; static long room;
double f(const double *x, long n) {
  if (room < 64) { free(b); room = 64 + (n > 1000); b = calloc(room, 8); }
  double s = 0;
  for (long i = 0; i < n; i++) { b[i & 63] += x[i] * x[0]; s += b[i & 63] * b[i & 63]; }
  return s;
}"""
NODES = """#include <stdlib.h>
typedef struct node { double value; struct node *next; } node;
static node *first;
double f(const double *x, long n) {
  if (!first) for (long i = 0; i < n; i++) { node *p = malloc(sizeof *p); p->next = first; first = p; }
  node *p = first;
  for (long i = 0; i < n && p; i++, p = p->next) p->value = x[i] * x[0];
  return first->value * first->next->value;
}"""


@pytest.mark.parametrize("mode", ["grad", "jvp", "jacfwd"])
@pytest.mark.parametrize("name", GROWS)
def test_memory_that_a_later_call_finds(name: str, mode: str) -> None:
    language, source = GROWS[name]
    kernel = irgrad.load(source, language=language).kernel("f", SIGNATURE)
    gradient = grad(kernel)
    for n in (4, 4, 9, 3, 700, 9, 2000, 4):
        x = np.linspace(0.3, 0.8, n)
        weight = 2 * x * x[0] * 0.9 ** np.arange(n - 1, -1, -1)
        want = weight * x[0]
        want[0] += weight @ x
        if mode == "jvp":
            np.testing.assert_allclose(jvp(kernel, (x,), (x,))[1], want @ x, rtol=1e-10)
        else:
            got = gradient(x) if mode == "grad" else jacfwd(kernel)(x) if n < 20 else want
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["malloc", "realloc"])
def test_second_derivatives(name: str) -> None:
    kernel = irgrad.load(GROWS[name][1]).kernel("f", SIGNATURE)
    for n in (3, 3, 6, 2):
        x, v = np.linspace(0.3, 0.8, n), np.cos(np.arange(n))
        weight = 2 * 0.9 ** np.arange(n - 1, -1, -1)
        want = np.diag(weight * x[0] ** 2)
        want[0] += 2 * weight * x * x[0]
        want[:, 0] += 2 * weight * x * x[0]
        want[0, 0] += weight @ x**2
        np.testing.assert_allclose(hvp(kernel, (x,), v), want @ v, rtol=1e-10)
        np.testing.assert_allclose(hessian(kernel)(x), want, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("mode", ["grad", "jvp", "jacfwd"])
def test_what_an_earlier_call_left_is_constant(mode: str) -> None:
    kernel = irgrad.load(ADDS).kernel("f", SIGNATURE)
    x = np.linspace(0.5, 1, 4)
    for calls in range(1, 4):  # the memory holds calls * x * x[0] at the end, of which this call added one part
        weight = 2 * calls * x * x[0]
        want = weight * x[0]
        want[0] += weight @ x
        if mode == "jvp":
            assert jvp(kernel, (x,), (x,))[1] == pytest.approx(want @ x)
        else:
            np.testing.assert_allclose(grad(kernel)(x) if mode == "grad" else jacfwd(kernel)(x), want)


SOLVER = """#include <stdlib.h>
typedef struct { int n; double *state; float weight[3]; double last, sum; int *order; } solver;
static solver *kept;
double f(const double *x, long n) {
  if (!kept || kept->n < n) {
    if (kept) { free(kept->state); free(kept->order); free(kept); }
    kept = calloc(1, sizeof *kept);
    kept->n = n; kept->state = calloc(n, 8); kept->order = calloc(n, 4);
    for (long i = 0; i < n; i++) kept->order[i] = i;
  }
  for (int i = 0; i < 3; i++) kept->weight[i] = (float)(i + 1) * (float)x[i];
  for (long i = 0; i < n; i++) {
    int j = kept->order[i];
    kept->state[j] = 0.5 * kept->state[j] + x[j] * kept->weight[(unsigned)j % 3];
    kept->last = kept->last * x[j] + kept->state[j];
    kept->sum += kept->last * kept->last;
  }
  return kept->sum + kept->last;
}"""


class Solver:
    """SOLVER in NumPy, for complex numbers too: what earlier calls left is real."""

    def __init__(self) -> None:
        self.state, self.last, self.sum = np.zeros(0), 0.0, 0.0

    def __call__(self, x: Any, *, stay: bool = False) -> Any:
        fresh = len(self.state) < len(x)
        state, last, total = (np.zeros(len(x)), 0.0, 0.0) if fresh else (self.state, self.last, self.sum)
        state = state.astype(x.dtype)
        for j in range(len(x)):
            state[j] = 0.5 * state[j] + x[j] * (j % 3 + 1) * x[j % 3]
            last = last * x[j] + state[j]
            total = total + last * last
        if stay:
            self.state, self.last, self.sum = state.real, np.real(last), np.real(total)
        return total + last


def _steps(f: Solver, x: Any) -> Any:
    return np.array([f(x + 1e-30j * e).imag for e in np.eye(len(x))]) / 1e-30


@pytest.mark.parametrize("mode", ["grad", "jvp", "jacfwd", "hvp"])
def test_pointers_beside_floats(mode: str) -> None:
    """The floats of a kept struct start from zero, the pointers beside them lead to their shadows."""
    kernel, model = irgrad.load(SOLVER).kernel("f", SIGNATURE), Solver()
    for n in (4, 4, 3, 6, 6):
        x = np.linspace(0.25, 0.5, n)
        v, want = np.cos(np.arange(n)), _steps(model, x)
        if mode == "hvp":
            want = (_steps(model, x + 1e-6 * v) - _steps(model, x - 1e-6 * v)) / 2e-6
            np.testing.assert_allclose(hvp(kernel, (x,), v), want, rtol=1e-5)
        elif mode == "jvp":
            assert jvp(kernel, (x,), (v,))[1] == pytest.approx(want @ v, rel=1e-6)
        else:
            np.testing.assert_allclose(grad(kernel)(x) if mode == "grad" else jacfwd(kernel)(x), want, rtol=1e-6)
        model(x, stay=True)


@pytest.mark.parametrize("mode", ["grad", "jvp"])
def test_a_list_that_is_kept(mode: str) -> None:
    kernel, x = irgrad.load(NODES).kernel("f", SIGNATURE), np.array([0.5, 2.0, 3.0])
    for _ in range(3):
        want = np.array([2 * x[0] * x[1] * x[0] + x[0] ** 2 * x[1], x[0] ** 3, 0.0])
        if mode == "jvp":
            assert jvp(kernel, (x,), (x,))[1] == pytest.approx(want @ x)
        else:
            np.testing.assert_allclose(grad(kernel)(x), want)
        x = x + 0.125


@pytest.mark.parametrize("mode", ["grad", "jvp"])
def test_floats_that_become_pointers_are_refused(mode: str) -> None:
    source = """#include <stdlib.h>
    static union cell { double value; union cell *next; } *first;
    double f(const double *x, long n) {
      if (!first) { first = calloc(n + 2, 8); first[1].next = calloc(1, 8); }
      if (n & 1) first[1].value = x[0]; else first[1].next->value = x[0];
      for (long i = 2; i < n; i++) first[i].value = x[i] * first[i - 1].value;
      return n & 1 ? first[n - 1].value : first[1].next->value;
    }"""
    kernel, x = irgrad.load(source).kernel("f", SIGNATURE), np.ones(2)
    with pytest.raises(Unsupported, match=r"memory with pointers beside active floats(.|\n)*in +@f \(.*\n.*@calloc"):
        grad(kernel)(x) if mode == "grad" else jvp(kernel, (x,), (x,))


MIXED = """#include <stdlib.h>
static struct { double *p; double a[4]; } one[1];
static double *apart_p, apart_a[4];
static char bytes[64];
static union { double *p; double a[4]; } either[2];
static struct { double *p; double a; } many[400];
#define KERNEL(name, P, A) double name(const double *x, long n) { double s = 0; if (!P) P = malloc(800); \\
  for (long i = 0; i < n; i++) P[i] = x[i] * x[i]; \\
  for (long i = 0; i < n; i++) { s = s * 0.5 + P[i] * (A(n & i) + 1); A((i * n) & 3) = 0.1 * s; } return s; }
#define A1(i) one->a[i]
#define A2(i) apart_a[i]
#define A3(i) ((double *)(bytes + 16))[i]
#define A4(i) either[1].a[i]
#define A5(i) many[i].a
KERNEL(mixed, one->p, A1)
KERNEL(apart, apart_p, A2)
KERNEL(untyped, (*(double **)bytes), A3)
KERNEL(unions, either[0].p, A4)
KERNEL(long_array, many[n].p, A5)
"""


@pytest.mark.parametrize("how", [grad, jacfwd])
def test_floats_beside_a_kept_pointer_start_from_zero(how: Callable[..., Any]) -> None:
    unit, x = irgrad.load(MIXED, language="c"), np.array([0.5, -0.3, 1.2, 0.7])
    mixed, apart = (how(unit.kernel(name, SIGNATURE)) for name in ("mixed", "apart"))
    calls = [(mixed(x), apart(x)) for _ in range(3)]
    for got, want in calls:
        np.testing.assert_allclose(got, want, rtol=1e-14)
    assert not np.allclose(calls[0][1], calls[1][1])


@pytest.mark.parametrize("name", ["untyped", "unions", "long_array"])
def test_floats_among_kept_pointers_are_refused(name: str) -> None:
    kernel = irgrad.load(MIXED, language="c").kernel(name, SIGNATURE)
    with pytest.raises(Unsupported, match="keeps pointers beside active floats"):
        grad(kernel)(np.array([0.5, -0.3, 1.2, 0.7]))
