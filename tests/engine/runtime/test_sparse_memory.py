"""Memory behind addresses of `__enzyme_todense`: many places, far apart, each stored to more than once."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.engine.runtime.sparse_memory import CLOSE, FIND, PLACE, PREFIX, WORDS, sparse_text
from irgrad.interop.cli import main

PROGRAM = """
#include <stddef.h>
#include <stdio.h>
double *__enzyme_todense(void *, void *, ...);
void __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
enum { N = 5000 };
static double total[N], x[N];
static long calls, step = 8 * 1000003L;
static double none(long byte) { return 0; }
static void put(double value, long byte) { total[byte / step] += value; calls++; }
static double f(const double *x, long n) {
  double s = 0;
  for (int k = 0; k < 3; k++)
    for (long i = 0; i < n; i++) s += x[i * 1000003] * (i + k);
  return s;
}
static double value(long byte) { return byte / step; }
int main(void) {
  __enzyme_autodiff((void *)f, enzyme_dup, __enzyme_todense((void *)value, (void *)put),
                    __enzyme_todense((void *)none, (void *)put), enzyme_const, (long)N);
  for (long i = 0; i < N; i++)
    if (total[i] != 3 * i + 3) { printf("%ld %g\\n", i, total[i]); return 1; }
  return calls != N;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_many_places(tmp_path: Path, level: str) -> None:
    path = tmp_path / "many.c"
    path.write_text(PROGRAM)
    assert main(["run", level, str(path)]) == 0


def test_the_names() -> None:
    for name in (FIND, PLACE, CLOSE):
        assert name.startswith(PREFIX) and f" @{name}(" in sparse_text()
    assert f"memory = type {{ {', '.join(['ptr', 'ptr', 'i64', 'i64'][:WORDS])} }}" in sparse_text()
