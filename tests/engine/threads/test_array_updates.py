"""Arrays of programs that the iterations of a loop add to atomically, on threads: chunks add in pages of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.threads.array_updates import is_addition, is_count, read_only
from irgrad.interop.driver import main_cc

HEAD = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static pthread_t first;
static int others;
static void ran(void) { if (pthread_self() != first) others = 1; }
static double slow(double a) { double s = a; for (int k = 0; k < 60; k++) s = sin(s) + 0.1 * a; return s; }
static void show(const double *a, long n) {
  unsigned long h = 0; double s = 0;
  for (long i = 0; i < n; i++) h = h * 31 + ((const unsigned long *)a)[i], s += a[i] * cos(i);
  printf("%016lx %.17g\n", h, s);
}
"""
HISTOGRAM = r"""
static void f(const double *restrict x, const long *restrict k, double *restrict y, long n) {
  #pragma omp parallel for schedule(dynamic, 5)
  for (long i = 0; i < n; i++) {
    double v = slow(x[i]);
    #pragma omp atomic
    y[k[i]] += v * x[i];
    #pragma omp atomic
    y[k[n - 1 - i]] -= v;
  }
}
"""
CRITICAL = r"""
static void f(const double *restrict x, const long *restrict k, double *restrict y, long n) {
  double total = 0;
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    double v = slow(x[i]), d = v * x[i];
    #pragma omp critical
    { y[k[i]] += d; y[k[n - 1 - i]] -= v; total += d; }
  }
  y[0] += total;
}
"""
PAIRS = r"""
static void f(const double *restrict x, const long *k, double *restrict y, long n) {
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    for (long j = i + 1; j < i + 20 && j < n; j++) {
      double d = x[i] - x[j], p = sin(d) * exp(-d * d);
      #pragma omp atomic
      y[i] += p;
      #pragma omp atomic
      y[j] -= p;
    }
  }
}
"""
SINGLE = r"""
static void f(const double *restrict p, const long *restrict k, double *restrict q, long n) {
  float *restrict w = malloc(40 * sizeof *w);
  for (int j = 0; j < 40; j++) w[j] = 0;
  double seen = 0, *a = q;
  #pragma omp parallel for schedule(guided)
  for (long i = 0; i < n; i++) {
    float v = (float)slow(p[i]);
    #pragma omp atomic
    w[k[i] % 40] += v;
    #pragma omp atomic
    seen += v * 0.01;
  }
  for (int j = 0; j < 40; j++) a[j] = w[j] * w[j] * seen;
  free(w);
}
"""
FILE = r"""
static double its[301];
static long seen[301], signs[301];
static void f(const double *restrict x, const long *restrict k, double *y, long n) {
  for (int j = 0; j < 301; j++) its[j] = 0, seen[j] = j % 3, signs[j] = 1;
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    double v = slow(x[i]);
    #pragma omp atomic
    its[k[i]] += v * x[i];
    #pragma omp atomic
    seen[k[n - 1 - i]]++;
    #pragma omp atomic
    signs[k[i]] |= i;
  }
  for (int j = 0; j < 301; j++) y[j] = its[j] * seen[j] + 0.1 * signs[j] * its[j];
}
"""
POINTERS = r"""
static double *its;
static long *seen;
static void f(const double *x, const long *k, double *y, long n) {
  its = calloc(301, 8), seen = calloc(301, 8);
  #pragma omp parallel for schedule(dynamic, 3)
  for (long i = 0; i < n; i++) {
    double v = slow(x[i]), d = v * x[i];
    long here = k[i];
    if (v > 0.2) {
      #pragma omp atomic
      its[here] -= d;
      #pragma omp atomic
      seen[here] += 2;
    }
  }
  for (int j = 0; j < 301; j++) y[j] = its[j] + 0.1 * seen[j] * its[j];
  free(its), free(seen);
}
"""
MEMBERS = r"""
struct model { const double *x; long count; double *y; const long *k; };
__attribute__((noinline)) static void spread(struct model *m, long n) {
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    double v = slow(m->x[i]), d = v * m->x[i];
    long here = m->k[i], there = m->k[n - 1 - i];
    #pragma omp atomic
    m->y[here] += d;
    #pragma omp critical
    { m->count++; m->y[there] -= v; }
  }
}
static void f(const double *x, const long *k, double *y, long n) {
  struct model m = {x, 0, y, k};
  spread(&m, n);
  y[0] *= m.count * 1e-3;
}
"""
MAIN = r"""
int main(void) {
  first = pthread_self();
  long n = 3000, m = 301, *k = malloc(n * sizeof *k);
  double *x = malloc(n * 8), *dx = calloc(n, 8), *y = calloc(n, 8), *dy = malloc(n * 8);
  for (long i = 0; i < n; i++) x[i] = sin(i * 1.3), k[i] = i * 7919 % m, dy[i] = cos(i * 0.7);
  f(x, k, y, n);
  show(y, n);
  for (long i = 0; i < n; i++) y[i] = 0;
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, k, enzyme_dup, y, dy, n);
  show(y, n);
  show(dx, n);
  for (long i = 0; i < n; i++) y[i] = 0;
  __enzyme_fwddiff((void *)f, enzyme_dup, x, dx, enzyme_const, k, enzyme_dup, y, dy, n);
  show(y, n);
  show(dy, n);
  fprintf(stderr, "%d", others);
}
"""


def _built(tmp_path: Path, source: str, *flags: str) -> Path:
    file, program = tmp_path / "p.c", tmp_path / ("p" + "".join(flags))
    file.write_text(HEAD + source)
    assert main_cc([*flags, str(file), "-lm", "-o", str(program)]) == 0
    return program


def _run(program: Path, threads: int, *more: str) -> tuple[str, str]:
    done = subprocess.run([str(program), *more], env={**os.environ, "OMP_NUM_THREADS": str(threads)}, check=True,
                          capture_output=True, text=True)  # fmt: skip
    return done.stdout, done.stderr


def _sums(said: str) -> list[float]:
    return [float(row.split()[1]) for row in said.splitlines()]


@pytest.mark.parametrize(("source", "level"), [
    pytest.param(HISTOGRAM, "-O0", id="histogram -O0"),
    pytest.param(HISTOGRAM, "-O2", id="histogram -O2", marks=pytest.mark.long),
    pytest.param(CRITICAL, "-O1", id="critical sections -O1"),
    pytest.param(CRITICAL, "-O3", id="critical sections -O3", marks=pytest.mark.long),
    pytest.param(PAIRS, "-O2", id="pairs -O2"),
    pytest.param(PAIRS, "-O0", id="pairs -O0", marks=pytest.mark.long),
    pytest.param(SINGLE, "-O1", id="floats, and a variable -O1"),
    pytest.param(FILE, "-O0", id="arrays of the file -O0", marks=pytest.mark.long),
    pytest.param(FILE, "-O2", id="arrays of the file -O2"),
    pytest.param(POINTERS, "-O0", id="pointers of the file -O0", marks=pytest.mark.long),
    pytest.param(POINTERS, "-O3", id="pointers of the file -O3", marks=pytest.mark.long),
    pytest.param(MEMBERS, "-O0", id="members -O0", marks=pytest.mark.long),
    pytest.param(MEMBERS, "-O2", id="members -O2"),
])  # fmt: skip
def test_the_same_bits_on_any_number_of_threads(
    source: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = _built(tmp_path, source + MAIN, level, "-fopenmp")
    said = capfd.readouterr().err
    assert "of a derivative of `f`" not in said
    assert "atomic" not in said
    assert "critical" not in said
    plain = _sums(_run(_built(tmp_path, source + MAIN, level), 1)[0])
    found = {threads: _run(program, threads)[0] for threads in (1, 2, 4, 16)}
    assert set(found.values()) == {found[1]}
    assert _sums(found[1]) == pytest.approx(plain, rel=1e-5 if source == SINGLE else 1e-11)


def test_iterations_run_on_other_threads(tmp_path: Path) -> None:
    source = PAIRS.replace("double d = x[i]", "if (j == i + 1) ran(); double d = x[i]")
    forward = MAIN[: MAIN.index("  f(x, k, y, n);")]
    forward += '  for (int t = 0; t < 300 && !others; t++) f(x, k, y, n);\n  fprintf(stderr, "%d", others);\n}\n'
    program = _built(tmp_path, source + forward, "-O2", "-fopenmp")
    assert _run(program, 1)[1] == "0"
    assert _run(program, 4)[1] == "1"


SAME = r"""
static void f(const double *x, const long *k, double *y, long n) {
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    double v = slow(k[i]);
    #pragma omp atomic
    y[i] += v;
    #pragma omp atomic
    y[n + k[i]] += x[i] * v;
  }
}
int main(int argc, char **argv) {
  long n = 2000, *k = malloc(n * sizeof *k);
  double *x = calloc(2 * n, 8), *dx = calloc(2 * n, 8), *y = calloc(2 * n, 8), *dy = calloc(2 * n, 8);
  for (long i = 0; i < n; i++) x[i] = sin(i), k[i] = i * 7 % 40, dy[i + n] = cos(i);
  double *q = argc > 1 ? x : y, *dq = argc > 1 ? dx : dy;
  if (argc > 1) for (long i = 0; i < n; i++) dx[i + n] = cos(i);
  f(x, k, q, n);
  show(q, 2 * n);
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, k, enzyme_dup, q, dq, n);
  show(q, 2 * n);
  show(dx, 2 * n);
}
"""


def test_what_is_read_after_an_update_may_be_the_same_memory(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No `restrict`: an iteration that reads x[i] has updated it, where y is x. So it goes behind the updates."""
    program = _built(tmp_path, SAME, "-O2", "-fopenmp")
    assert "a loop of the program" not in capfd.readouterr().err
    plain = _built(tmp_path, SAME, "-O2")
    for more in ([], ["same"]):
        assert _sums(_run(program, 4, *more)[0]) == pytest.approx(_sums(_run(plain, 1, *more)[0]), rel=1e-11)


@pytest.mark.parametrize("update", [
    "double b;\n#pragma omp atomic capture\n{ b = y[k[i]]; y[k[i]] += v; }\nif (b > 1e9) y[0] = 1;",
    "#pragma omp atomic\ny[k[i]] *= 1 + 0.0001 * v;",
    "#pragma omp atomic\nmany[k[i]] += 1;\n#pragma omp atomic\nmany[k[i]] |= 4;\nif (i == n - 1) y[0] = v;",
    "#pragma omp atomic\ny[k[i]] += v;\nif (x[i] > 1e9) y[i] = 0;",
    "#pragma omp atomic\ntable[k[i]] += v;\nif (i == n - 1) y[0] = table[3];",
])  # fmt: skip
def test_what_needs_an_order_goes_in_the_order_of_iterations(
    update: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = HISTOGRAM[: HISTOGRAM.index("#pragma omp atomic")] + f"\n{update}\n  }}\n}}\n"
    source = f"static double table[301];\nstatic int many[301];\n{body}" + MAIN
    if "table" in update:  # of a variable only the value: a derivative has memory for its adjoint from the program
        source = source[: source.index("  __enzyme_autodiff")] + "}\n"
    program = _built(tmp_path, source, "-O1", "-fopenmp")
    assert "a loop of the program" not in capfd.readouterr().err
    plain = _built(tmp_path, source, "-O1")
    found = {_run(program, threads)[0] for threads in (1, 2, 4, 16)}
    assert len(found) == 1
    assert _sums(found.pop()) == pytest.approx(_sums(_run(plain, 1)[0]), rel=1e-11)


def test_which_operations_are_additions() -> None:
    module = read("""
define void @f(ptr %p, ptr %q, double %x) {
  %a = atomicrmw fadd ptr %p, double %x monotonic, align 8
  %b = atomicrmw fsub ptr %p, double %x seq_cst, align 8
  %c = atomicrmw fadd ptr %p, double %x monotonic, align 8
  %d = atomicrmw fmax ptr %p, double %x monotonic, align 8
  %e = atomicrmw add ptr %q, i64 1 monotonic, align 8
  %f = atomicrmw volatile fadd ptr %p, double %x monotonic, align 8
  %g = atomicrmw xchg ptr %q, i64 1 monotonic, align 8
  store double %c, ptr %q, align 8
  ret void
}
""", ["f"])  # fmt: skip
    rows = [i for i in module.functions["f"].instructions() if i.opcode == "atomicrmw"]
    uses = uses_of(module.functions["f"].blocks)
    used = {i for i in rows if uses.get(i)}
    assert [is_addition(row, used) for row in rows] == [True, True, False, False, False, False, False]
    assert [is_count(row, used) for row in rows] == [False, False, False, False, True, False, False]


def test_an_adjoint_that_is_put_back_is_only_read() -> None:
    text = """
define double @f(ptr %p, ptr %q) {
  %a = load double, ptr %p, align 8
  store double 0.0, ptr %p, align 8
  %n = fneg double %a
  %b = load double, ptr %p, align 8
  %s = fadd double %b, %a
  store double %s, ptr %p, align 8
  ret double %n
}
"""
    module = read(text, ["f"])
    read_only(module.functions["f"])
    assert [i.opcode for i in module.functions["f"].instructions()] == ["load", "fneg", "ret"]
    for changed in (text.replace("%b = load double, ptr %p", "%b = load double, ptr %q"),
                    text.replace("  %n =", "  %o = load double, ptr %q, align 8\n  %n ="),
                    text.replace("ret double %n", "ret double %s")):  # fmt: skip
        module = read(changed, ["f"])
        before = to_text(module)
        read_only(module.functions["f"])
        assert to_text(module) == before
