"""Distances of addresses that nothing shows to lie in one allocation: looked at where the derivative runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine import grad, hvp, jvp
from irgrad.rules.errors import KernelError

SOURCE = """
#include <stdlib.h>
double moved(const double *x, long n, long far) {
  double **rows = malloc(n * sizeof *rows), **ends = malloc(n * sizeof *ends), s = 0;
  long *by = malloc(n * sizeof *by);
  for (long i = 0; i < n; i++) {
    rows[i] = malloc(SIZE * 40 * sizeof **rows);
    for (long j = 0; j < 3; j++) rows[i][j] = x[i] * (j + 1);
  }
  for (long i = 0; i < n; i++) ends[i] = rows[i < n - far ? i + far : i] + 1;
  for (long i = 0; i < n; i++) by[i] = ends[i] - rows[i];
  for (long i = 0; i < n; i++) { double *p = rows[i] + by[i]; s += *p * *p * (i + 1); }
  for (long i = 0; i < n; i++) free(rows[i]);
  free(rows); free(ends); free(by);
  return s;
}
"""
MAIN = """
#include <stdio.h>
double __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
int main(int argc, char **argv) {
  double x[3] = {0.5, 0.3, 1.2}, g[3] = {0};
  __enzyme_autodiff((void *)moved, enzyme_dup, x, g, enzyme_const, 3L, enzyme_const, argc - 1L);
  printf("%.9f %.9f %.9f\\n", g[0], g[1], g[2]);
}
"""
X, WORDS = np.array([0.5, 0.3, 1.2]), "moves by the distance of two allocations"
WANTED = 8 * X * np.arange(1, 4)


@pytest.mark.parametrize("size", ["2", "i+2"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_distances_within_blocks(level: str, size: str) -> None:
    moved = ig.load(SOURCE, language="c", flags=[level, f"-DSIZE=({size})"]).kernel(
        "moved", "f64(f64[n] x, i64 n, i64 far)"
    )
    assert moved(X, 0) == pytest.approx(4 * X * X @ np.arange(1, 4))
    np.testing.assert_allclose(grad(moved)(X, 0), WANTED)
    np.testing.assert_allclose(jvp(moved, (X, 0), (X, 0))[1], WANTED @ X)
    np.testing.assert_allclose(ig.jacobian(moved)(X, 0), WANTED)
    np.testing.assert_allclose(hvp(moved, (X, 0), X), WANTED)


@pytest.mark.parametrize("size", ["2", "i+2"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_other_distances_end_the_call(level: str, size: str) -> None:
    moved = ig.load(SOURCE, language="c", flags=[level, f"-DSIZE=({size})"]).kernel(
        "moved", "f64(f64[n] x, i64 n, i64 far)"
    )
    assert moved(X, 1) == pytest.approx(4 * (X[1] ** 2 + 2 * X[2] ** 2 + 3 * X[2] ** 2))
    for derivative in (lambda: grad(moved)(X, 1), lambda: jvp(moved, (X, 1), (X, 0))):
        with pytest.raises(KernelError, match=f"a pointer of `moved` {WORDS}") as found:
            derivative()
        assert "<string>:11" in str(found.value)
        np.testing.assert_allclose(grad(moved)(X, 0), WANTED)


def test_in_jax() -> None:
    import jax

    moved = ig.load(SOURCE, language="c", flags=["-DSIZE=2"]).kernel("moved", "f64(f64[n] x, i64 n, i64 far)")
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(moved))
        np.testing.assert_allclose(slope(X, 0), WANTED)
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match=WORDS):
            jax.block_until_ready(slope(X, 1))


def test_programs_stop(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    path.write_text(SOURCE + MAIN)
    run = [sys.executable, "-m", "irgrad.interop.cli", "run", "-O1", "-DSIZE=2", "-w", str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    np.testing.assert_allclose(np.array(done.stdout.split(), float), WANTED)
    stopped = subprocess.run([*run, "--", "far"], capture_output=True, text=True, check=False)
    assert stopped.returncode and f"a pointer {WORDS}" in stopped.stderr and "p.c:11" in stopped.stderr
