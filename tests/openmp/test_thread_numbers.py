"""Programs that work by thread number: values of real threads (those of the system's compiler), derivatives against
differences, for several numbers of threads."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.interop.driver import main_cc
from irgrad.rules.errors import OneThread

HERE = Path(__file__).parent / "numbers"
PROGRAMS = sorted(path for path in HERE.iterdir() if path.suffix in (".c", ".cpp"))
QUICK = ("cyclic.c", "prefix_sums.c", "time_loop.c")
SIGNATURE = "f64(f64[n] x, out f64[n] y, i32 n)"
X = 0.8 + 0.37 * np.sin(2.3 * np.arange(23))


def _compiler(path: Path) -> str:
    return "g++" if path.suffix == ".cpp" else "gcc"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory):
    """What a program computes on real threads."""
    folder = tmp_path_factory.mktemp("real")

    def run(path: Path, threads: int) -> np.ndarray:
        compiler = shutil.which(_compiler(path))
        if compiler is None or "GNU" not in subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.replace("Free Software", "GNU"):
            pytest.skip("no compiler with an OpenMP library is here")
        built = folder / f"{path.name}.so"
        if not built.exists():
            subprocess.run([compiler, "-fopenmp", "-O1", "-shared", "-fPIC", path, "-lm", "-o", built], check=True)
        code = ("import ctypes, sys\nn = 23\nx, y = (ctypes.c_double * n)(*map(float, sys.argv[2:])), (ctypes.c_double * n)()\n"
                "f = ctypes.CDLL(sys.argv[1]).f\nf.restype = ctypes.c_double\nprint(f(x, y, n), *y)")
        done = subprocess.run([sys.executable, "-c", code, built, *map(repr, map(float, X))], capture_output=True, text=True, check=True,
                              env={**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_DYNAMIC": "false"})  # fmt: skip
        return np.array(done.stdout.split(), float)

    return run


@pytest.mark.parametrize(("path", "level", "threads"), [
    pytest.param(path, level, threads, id=f"{path.name} {level} {threads}",
                 marks=[] if path.name in QUICK and (level, threads) == (None, 3) else
                 [pytest.mark.long if (level, threads) in ((None, 3), ("O0", 2), ("O2", 7)) else pytest.mark.slow])
    for path in PROGRAMS for level in (None, "O0", "O2") for threads in (1, 2, 3, 7)
])  # fmt: skip
def test_kernels(path: Path, level: str | None, threads: int, theirs) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)  # the loops are small
        warnings.filterwarnings("error", "one thread runs a region", OneThread)
        kernel = ig.load(path, flags=["-fopenmp"], opt=level).kernel("f", SIGNATURE, threads=threads)
        value, y = kernel(X)
        np.testing.assert_allclose(np.array([value, *y]), theirs(path, threads), rtol=1e-12, atol=1e-13)
        report = ig.check(kernel, X)
        assert report.ok, report


MAIN = r"""
#include <math.h>
#include <stdio.h>
extern int enzyme_dup;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
double f(const double *x, double *y, int n);
double whole(const double *x, int n) {
  double y[64] = {0}, s = f(x, y, n);
  for (int i = 0; i < n; i++) s += sin(1.0 + i) * y[i];
  return s;
}
int main(void) {
  double x[23], dx[23] = {0}, v[23], back = 0, up[23], down[23], h = 1e-6, y[64] = {0};
  for (int i = 0; i < 23; i++) x[i] = 0.8 + 0.37 * sin(2.3 * i), v[i] = cos(1.7 * i), up[i] = x[i] + h * v[i], down[i] = x[i] - h * v[i];
  __enzyme_autodiff((void *)whole, enzyme_dup, x, dx, 23);
  for (int i = 0; i < 23; i++) back += dx[i] * v[i];
  double ahead = __enzyme_fwddiff((void *)whole, enzyme_dup, x, v, 23);
  double value = f(x, y, 23);
  printf("%.17g %.17g %.17g %.17g", value, back, ahead, (whole(up, 23) - whole(down, 23)) / (2 * h));
}
"""


@pytest.mark.parametrize("name", ["cyclic.c", *(pytest.param(p.name, marks=pytest.mark.long) for p in PROGRAMS
                                                if p.suffix == ".c" and p.name != "cyclic.c")])  # fmt: skip
def test_programs(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], theirs) -> None:
    (tmp_path / "main.c").write_text(MAIN)
    assert main_cc(["-O1", "-fopenmp", str(tmp_path / "main.c"), str(HERE / name), "-lm", "-o", str(tmp_path / "p")]) == 0
    assert "one thread runs a region" not in capfd.readouterr().err
    for threads in (1, 2, 5):
        done = subprocess.run([tmp_path / "p"], env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True, text=True, check=True)
        value, back, ahead, differences = map(float, done.stdout.split())
        assert value == pytest.approx(theirs(HERE / name, threads)[0], rel=1e-12)
        assert back == pytest.approx(ahead, rel=1e-10)
        assert ahead == pytest.approx(differences, rel=1e-5)


REGION = """
#include <omp.h>
#include <stdlib.h>
BEFORE
double f(const double *x, int n) {
  double s = 0;
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num();
    INSIDE
#pragma omp atomic
    s += x[me];
  }
  return s;
}
"""


@pytest.mark.parametrize(("before", "inside", "why"), [
    ("", "double t;\n#pragma omp single copyprivate(t)\nt = x[0];\ns += 0 * t;", "it has `copyprivate`"),
    ("", "#pragma omp for ordered\nfor (int i = 0; i < n; i++) {\n#pragma omp ordered\ns += x[i]; }", "it has `ordered`"),
    ("static double t;\n#pragma omp threadprivate(t)", "t = x[0]; s += t;", "thread-local variables"),
    ("double other(int);", "s += other(me);", "`other` is not here, which may ask for the thread"),
    ("", "double t[n]; t[0] = me;\n#pragma omp barrier\ns += t[0];", "memory of a length that is not constant"),
    ("double a(int n) { return omp_get_thread_num() * n; }\ndouble (*p)(int) = a;", "s += p(n);", "functions through pointers"),
    ("", "#pragma omp task\ns += omp_get_thread_num();", "functions through pointers"),
])  # fmt: skip
def test_what_stays_with_one_thread_is_said(before: str, inside: str, why: str) -> None:
    source = REGION.replace("BEFORE", before).replace("INSIDE", inside)
    with pytest.warns(OneThread, match=rf"<string>:\d+:1: .*{why}"):
        ig.load(source, flags=["-fopenmp"])


def test_a_function_that_regions_and_others_call() -> None:
    source = """
    #include <omp.h>
    double g(double x) {
      double s = 0;
      #pragma omp parallel num_threads(3)
      {
      #pragma omp atomic
      s += x * omp_get_num_threads();
      }
      return s;
    }
    double f(double x) {
      double s = g(x);
      #pragma omp parallel num_threads(2)
      {
      #pragma omp critical
      s += g(x) * omp_get_num_threads();
      }
      return s;
    }
    """
    with pytest.warns(OneThread, match="regions call its function, and others do"):
        lib = ig.load(source, flags=["-fopenmp"])
    assert lib.kernel("f", "f64(f64 x)")(1.0) == 1 + 2 * 2  # libomp has three threads for the first call


def test_programs_without_a_number_are_left_as_they_are() -> None:
    kernel = ig.load(HERE / "cyclic.c", flags=["-fopenmp"]).kernel("f", SIGNATURE)
    assert ig.check(kernel, X).ok
    assert "omp_outlined.team(" not in kernel._primal.stage.text
