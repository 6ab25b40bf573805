"""Worksharing loops of whole programs on threads: the same bits on any number of them, in the program and in its
derivatives, and a word for the loops that stay with one."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from irgrad.engine.threads.programs import has_worksharing, linked_team, program_on_threads, worksharing_functions
from irgrad.interop.driver import main_cc
from irgrad.interop.loaders import load

HEAD = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
extern int enzyme_dup, enzyme_const, enzyme_out;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static pthread_t seen[200000];
static int others(long n) { int found = 0; for (long i = 0; i < n; i++) found |= seen[i] != pthread_self(); return found; }
static void show(const double *a, long n) {
  unsigned long h = 0;
  for (long i = 0; i < n; i++) h = h * 31 + ((const unsigned long *)a)[i];
  printf("%016lx ", h);
}
"""
SHARED = HEAD + r"""
__attribute__((noinline)) static double slow(double a) { double s = a; for (int k = 0; k < 200; k++) s = sin(s) + 0.1 * a; return s; }
void f(const double *x, double *y, long n) {
  #pragma omp parallel for schedule(dynamic, 3)
  for (long i = 0; i < n; i++) { seen[i] = pthread_self(); y[i] = slow(x[i]) * x[i]; }
}
double total(const double *x, const double *w, long n) {
  double s = 0;
  #pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++) s += slow(x[i]) * w[i];
  return s;
}
int main(void) {
  long n = 20000;
  double *x = malloc(n * 8), *y = malloc(n * 8), *dx = calloc(n, 8), *dy = malloc(n * 8);
  for (long i = 0; i < n; i++) x[i] = sin(i), dy[i] = 1;
  f(x, y, n);
  show(y, n);
  fprintf(stderr, "%d\n", others(n));
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, n);
  show(dx, n);
  __enzyme_fwddiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, n);
  show(dy, n);
  double s = total(x, y, n);
  show(&s, 1);
  __enzyme_autodiff((void *)total, enzyme_dup, x, dx, enzyme_dup, y, dy, n);
  show(dx, n);
  show(dy, n);
}
"""


def _built(tmp_path: Path, source: str, *flags: str) -> Path:
    file, program = tmp_path / "p.c", tmp_path / "p"
    file.write_text(source)
    assert main_cc([*flags, str(file), "-lm", "-o", str(program)]) == 0
    return program


def _run(program: Path, threads: int) -> tuple[str, str]:
    done = subprocess.run([str(program)], env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True,
                          text=True, check=True)  # fmt: skip
    return done.stdout, done.stderr


@pytest.mark.parametrize("level", ["-O0", pytest.param("-O2", marks=pytest.mark.long)])
def test_the_same_bits_on_any_number_of_threads(tmp_path: Path, level: str) -> None:
    program = _built(tmp_path, SHARED, level, "-fopenmp")
    results = {threads: _run(program, threads) for threads in (1, 2, 4, 16)}
    assert {bits for bits, _ in results.values()} == {results[1][0]}
    assert results[1][1] == "0\n"
    assert results[4][1] == "1\n"  # iterations ran on other threads than the one that called


def test_a_loop_that_stays_with_one_thread_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
      #pragma omp parallel for
      for (long i = 0; i < n; i++) y[i] = x[at[i]] * x[at[i]];
    """
    source = f"""{HEAD}
    void f(const double *x, const long *at, double *y, long n) {{ {body} }}
    int main(void) {{
      double x[3] = {{1, 2, 3}}, dx[3] = {{0}}, y[40], dy[40];
      long at[40];
      for (int i = 0; i < 40; i++) at[i] = i % 3, dy[i] = 1;
      __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, at, enzyme_dup, y, dy, 40L);
      printf("%g %g %g", dx[0], dx[1], dx[2]);
    }}
    """
    program = _built(tmp_path, source, "-fopenmp")
    assert _run(program, 4)[0] == "28 52 78"
    assert "a loop of a derivative of `f` runs on one thread" in capfd.readouterr().err


def test_programs_without_openmp_are_left_as_they_are() -> None:
    text = load("double f(double x) { return x * x; }").text
    assert not has_worksharing(text)
    assert not worksharing_functions(text)
    assert program_on_threads(text, []) is text
    assert linked_team(text) is text
