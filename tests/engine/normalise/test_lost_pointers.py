"""Pointers that lead nowhere for the analysis: derivatives are right where nobody follows them, and say so where one is
followed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine import grad, hvp, jvp
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.rules.errors import KernelError

NEVER_SET = """
struct options { double *weights; double scale; };
double f(const double *x, long n, int weighted) {
  struct options o = {0, 2.0}, *volatile held = &o;
  double s = 0;
  for (long i = 0; i < n; i++) s += x[i] * x[i] * o.scale + (weighted ? held->weights[i] : 0);
  return s;
}
"""
KEPT = """
#include <stdlib.h>
#include <string.h>
struct box { double *inside; };
double f(const double *x, long n) {
  struct box **boxes = malloc(n * sizeof *boxes);
  double s = 0;
  for (long i = 0; i < n; i++) {
    boxes[i] = malloc(sizeof **boxes);
    boxes[i]->inside = malloc(2 * sizeof(double));
    boxes[i]->inside[0] = x[i];
  }
  for (long i = 0; i < n; i++) s += FOLLOW;
  return s;
}
"""
FOLLOWS = {
    "load": "boxes[i]->inside[0] * boxes[i]->inside[0]",
    "copy": "({ double copied[1]; memcpy(copied, boxes[i]->inside, sizeof copied * (1 + (n > 99))); copied[0]; })",
}
CAST = """
typedef double (*function)(double, long);
static double square(double v, KIND k) { return v * v * k; }
static double cube(double v, KIND k) { return v * v * v * k; }
static double line(double v, long k) { return v * k; }
__attribute__((noinline)) static double call(function f, double v) { return f(v, 2); }
double f(const double *x, long n, const int *which) {
  function all[3] = {(function)square, (function)cube, line};
  double s = 0;
  for (long i = 0; i < n; i++) s += call(all[which[i] % COUNT], x[i]);
  return s;
}
"""
MAIN = """
#include <stdio.h>
double __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
int main(int argc, char **argv) {
  double x[2] = {0.5, 0.3}, g[2] = {0};
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, 2L, enzyme_const, argc - 1);
  printf("%.9f %.9f\\n", g[0], g[1]);
}
"""
X, WORDS = np.array([0.5, 0.3, 1.2]), "leads where no analysis has seen that it may"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_pointers_that_are_null(level: str) -> None:
    f = ig.load(NEVER_SET, language="c", flags=[level]).kernel("f", "f64(f64[n] x, i64 n, i32 weighted)")
    np.testing.assert_allclose(grad(f)(X, 0), 4 * X)
    np.testing.assert_allclose(jvp(f, (X, 0), (X, 0))[1], 4 * X @ X)
    np.testing.assert_allclose(hvp(f, (X, 0), X), 4 * X)
    for derivative in (lambda: grad(f)(X, 1), lambda: jvp(f, (X, 1), (X, 0)), lambda: hvp(f, (X, 1), X)):
        with pytest.raises(KernelError, match=WORDS) as caught:
            derivative()
        assert ":6:" in str(caught.value)
    np.testing.assert_allclose(grad(f)(X, 0), 4 * X)


def test_programs(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    path.write_text(NEVER_SET + MAIN)
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", "-O1", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2.000000000", "1.200000000"], done.stderr
    done = subprocess.run([*command, "--", "more"], capture_output=True, text=True, check=False)
    assert done.returncode and WORDS in done.stderr and "p.c:6:" in done.stderr


@pytest.mark.parametrize("how", FOLLOWS)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_what_an_analysis_loses(how: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis that forgets what is stored in some memory gives no zeros."""
    source = KEPT.replace("FOLLOW", FOLLOWS[how])
    f = ig.load(source, language="c", flags=[level]).kernel("f", "f64(f64[n] x, i64 n)")
    want = [(f(X + d) - f(X - d)) / 2e-5 for d in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(grad(f)(X), want, rtol=1e-8)
    stores = Pointers._store_to

    def forgets(self: Pointers, bit: int, *rest: Any) -> None:
        if self.objects[bit].size != 8:
            stores(self, bit, *rest)

    monkeypatch.setattr(Pointers, "_store_to", forgets)
    other = source.replace("double f(", "double lost(")  # what is made of the other one is kept
    lost = ig.load(other, language="c", flags=[level]).kernel("lost", "f64(f64[n] x, i64 n)")
    for derivative in (lambda: grad(lost)(X), lambda: jvp(lost, (X,), (X,))):
        with pytest.raises(KernelError, match=WORDS):
            derivative()


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("kind", ["long", "int"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_functions_of_other_types(level: str, kind: str, count: int) -> None:
    f = ig.load(CAST, language="c", flags=[level, f"-DKIND={kind}", f"-DCOUNT={count}"]).kernel(
        "f", "f64(f64[n] x, i64 n, i32[n] which)"
    )
    which = np.arange(3, dtype=np.int32)
    if kind == "int":
        for derivative in (lambda: grad(f)(X, which), lambda: jvp(f, (X, which), (X, which * 0.0))):
            with pytest.raises(KernelError, match=WORDS):
                derivative()
    else:
        want = [(f(X + d, which) - f(X - d, which)) / 2e-5 for d in 1e-5 * np.eye(3)]
        np.testing.assert_allclose(grad(f)(X, which), want, rtol=1e-8)
    if count == 3:
        np.testing.assert_allclose(grad(f)(X, which * 0 + 2), [2, 2, 2])
