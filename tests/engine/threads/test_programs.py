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


GATHERS = HEAD + r"""
void f(const double *x, const float *w, const long *at, double *y, long n) {
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    double s = 0;
    for (int k = 0; k < 5; k++) s += sin(x[at[i]] + k) * x[at[i] / 2] * w[i % 3];
    y[i] = s + sin(x[i % 5]);
  }
}
double inside(const double *p, double *q, long n) {
  double s = 0;
  #pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++) { for (int k = 0; k < 2; k++) q[i] = sin(p[i]) * (k + 1); s += q[i] * p[i]; }
  return s;
}
int main(int argc, char **argv) {
  long n = 30000;
  double *x = malloc(n * 8), *dx = calloc(n, 8), *y = malloc(n * 8), *dy = malloc(n * 8);
  float w[3] = {1, 2, 3}, dw[3] = {0};
  long *at = malloc(n * sizeof *at);
  for (long i = 0; i < n; i++) x[i] = sin(i), at[i] = i * i % 1000, dy[i] = 1;
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, w, dw, enzyme_const, at, enzyme_dup, y, dy, n);
  show(dx, n);
  double total = 0;
  for (long i = 0; i < n; i++) total += dx[i] * cos(i);
  double *q = argc > 1 ? x : y, *dq = argc > 1 ? dx : dy;
  for (long i = 0; i < n; i++) dx[i] = dy[i] = 0;
  __enzyme_autodiff((void *)inside, enzyme_dup, x, dx, enzyme_dup, q, dq, n);
  show(dx, n);
  printf("\n");
  for (long i = 0; i < n; i++) total += dx[i] * sin(2 * i);
  printf("%.9g %.5g %.5g %.5g", total, dw[0], dw[1], dw[2]);
}
"""


def test_what_several_chunks_add_to_behind_pointers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plain = _built(tmp_path, GATHERS)
    expected = [subprocess.run([plain, *more], capture_output=True, text=True, check=True).stdout.splitlines()[1]
                for more in ([], ["same"])]  # fmt: skip
    capfd.readouterr()
    program = _built(tmp_path, GATHERS, "-fopenmp")
    said = capfd.readouterr().err
    # q may be p: then an iteration reads what it has written, and its adjoint may not be added elsewhere
    assert "of `f`" not in said
    assert "a loop of a derivative of `inside` runs on one thread" in said
    assert "read it into variables first" in said
    for number, more in enumerate(([], ["same"])):
        found = {subprocess.run([program, *more], env={**os.environ, "OMP_NUM_THREADS": threads}, capture_output=True,
                                text=True, check=True).stdout for threads in ("1", "2", "16")}  # fmt: skip
        assert [row.splitlines()[1] for row in found] == [expected[number]]


@pytest.mark.parametrize("flags", [[], pytest.param(["-flto"], marks=pytest.mark.long)])
def test_programs_of_several_objects(tmp_path: Path, flags: list[str]) -> None:
    sources = {
        "one": "#include <math.h>\nvoid f(const double *x, double *y, long n) {\n#pragma omp parallel for\n"
               "for (long i = 0; i < n; i++) y[i] = sin(x[i]) * x[(i + 1) % n]; }",
        "two": f"""{HEAD}
        void f(const double *x, double *y, long n);
        static void g(const double *x, double *y, long n) {{
          #pragma omp parallel for
          for (long i = 0; i < n; i++) y[i] = x[i] * x[(i + 2) % n];
        }}
        int main(void) {{
          double x[5000], y[5000], dx[5000] = {{0}}, dy[5000];
          for (int i = 0; i < 5000; i++) x[i] = i % 10, dy[i] = 1;
          f(x, y, 5000);
          printf("%g ", y[1]);
          __enzyme_autodiff((void *)g, enzyme_dup, x, dx, enzyme_dup, y, dy, 5000L);
          printf("%g", dx[12]);
        }}""",
    }  # fmt: skip
    for name, source in sources.items():
        (tmp_path / f"{name}.c").write_text(source)
        assert main_cc(["-fopenmp", *flags, "-c", f"{tmp_path}/{name}.c", "-o", f"{tmp_path}/{name}.o"]) == 0
    objects = [f"{tmp_path}/{name}.o" for name in sources]
    assert main_cc(["-fopenmp", *flags, *objects, "-lm", "-o", f"{tmp_path}/p"]) == 0
    assert {_run(tmp_path / "p", threads)[0] for threads in (1, 4)} == {"1.68294 4"}


def test_iterations_that_do_little_keep_to_one_thread(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = f"""{HEAD}
    void f(const double *x, double *y, long n) {{
      #pragma omp parallel for
      for (long i = 0; i < n; i++) y[i] = x[i] * x[(i + 1) % n];
    }}
    int main(void) {{
      double x[9], dx[9] = {{0}}, y[9], dy[9];
      for (int i = 0; i < 9; i++) x[i] = i, dy[i] = 1;
      __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, 9L);
      printf("%g", dx[3]);
    }}
    """
    assert _run(_built(tmp_path, source, "-fopenmp"), 4)[0] == "6"
    assert "its iterations do too little for memory of their own" in capfd.readouterr().err


def test_loops_of_the_program_that_stay_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = f"""{HEAD}
    int main(void) {{
      double x[99], s = 0, last = 0;
      for (int i = 0; i < 99; i++) x[i] = i;
      #pragma omp parallel for
      for (int i = 0; i < 99; i++) {{
        #pragma omp task
        s += x[i];
      }}
      #pragma omp parallel for lastprivate(last)
      for (int i = 0; i < 99; i++) {{ last = x[i]; x[i] += 1; }}
      printf("%g %g", s, last);
    }}
    """
    assert _run(_built(tmp_path, source, "-fopenmp"), 4)[0] == "4851 98"
    said = capfd.readouterr().err
    assert "a worksharing loop runs on one thread: " in said
    assert "it has tasks" in said
    assert "a loop of the program runs on one thread: " in said


def test_programs_without_openmp_are_left_as_they_are() -> None:
    text = load("double f(double x) { return x * x; }").text
    assert not has_worksharing(text)
    assert not worksharing_functions(text)
    assert program_on_threads(text, []) is text
    assert linked_team(text) is text
