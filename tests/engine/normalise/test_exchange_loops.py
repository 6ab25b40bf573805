"""Loops of compare-and-exchange become load, operation and store, which compute the same."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.exchange_loops import settle_exchanges
from irgrad.interop.cli import main

LOOP = """define TYPE @f(ptr %p, double %h) {
entry:
  %old = load atomic i64, ptr %p monotonic, align 8
  br label %again
again:
  %bits = phi i64 [ %old, %entry ], [ %seen, %again ]
  %x = bitcast i64 %bits to double
  %y = fmul double %x, %h
  %new = bitcast double %y to i64
  MORE
  %pair = cmpxchg ptr %p, i64 %bits, i64 %new monotonic monotonic, align 8
  %seen = extractvalue { i64, i1 } %pair, 0
  %okay = extractvalue { i64, i1 } %pair, 1
  br i1 %okay, label %done, label %again
done:
  ret TYPE %RESULT
}
"""


def _loop(result: str = "x", more: str = "", kind: str = "double") -> str:
    return LOOP.replace("RESULT", result).replace("MORE", more).replace("TYPE", kind)


@pytest.mark.parametrize(("result", "kind", "value"), [
    ("x", "double", 3.0), ("y", "double", 6.0), ("bits", "i64", 3.0),
])  # fmt: skip
def test_the_same_is_computed(result: str, kind: str, value: float) -> None:
    module = read(_loop(result, kind=kind))
    assert settle_exchanges(module.functions["f"])
    text = to_text(module)
    assert "cmpxchg" not in text
    assert ("load double" in text) == (kind == "double")
    memory = np.array([3.0])
    given = ctypes.c_double if kind == "double" else ctypes.c_int64
    run = compile_module(text, ["f"], cache=False).function("f", given, ctypes.c_void_p, ctypes.c_double)
    found = run(memory.ctypes.data, 2.0)
    assert (found if kind == "double" else np.array([found]).view(float)[0]) == value
    assert memory[0] == 6.0


@pytest.mark.parametrize("text", [
    _loop(more="store i64 5, ptr %p, align 8"),  # the exchange fails
    _loop().replace("  br label %again\nagain", "  store i64 5, ptr %p, align 8\n  br label %again\nagain"),
    _loop().replace("cmpxchg ptr", "cmpxchg volatile ptr"),
    _loop().replace("label %done, label %again\n", "label %again, label %done\n"),
    _loop().replace("[ %seen, %again ]", "[ 0, %again ]"),
])  # fmt: skip
def test_other_loops_stay(text: str) -> None:
    assert not settle_exchanges(read(text).functions["f"])


PROGRAM = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static double *its_x, *its_y;
static long *its_at;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup;
static __attribute__((noinline)) double g(long n) {
    double s = 0;
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double h = 1 + 0.1 * sin(its_x[i]);
        #pragma omp atomic
        its_y[(i * 3) % n] /= h;
    }
    for (long i = 0; i < n; i++) s += its_y[i] * its_x[its_at[i]];
    return s;
}
double f(const double *x, long n) {
    its_x = malloc(n * 8); its_y = malloc(n * 8); its_at = malloc(n * 8);
    for (long i = 0; i < n; i++) its_x[i] = x[i], its_y[i] = x[i] + 2, its_at[i] = (i * 2) % n;
    double s = g(n);
    free(its_x); free(its_y); free(its_at);
    return s;
}
int main(void) {
    double x[7], dx[7] = {0}, to[7], back = 0;
    for (int i = 0; i < 7; i++) x[i] = 0.3 + 0.1 * i, to[i] = cos(i);
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, 7L);
    double ahead = __enzyme_fwddiff((void *)f, enzyme_dup, x, to, 7L), at[2];
    for (int side = 0; side < 2; side++) {
        double near[7];
        for (int i = 0; i < 7; i++) near[i] = x[i] + (side ? -1e-5 : 1e-5) * to[i];
        at[side] = f(near, 7);
    }
    for (int i = 0; i < 7; i++) back += dx[i] * to[i];
    return fabs(back - ahead) > 1e-12 || fabs(ahead - (at[0] - at[1]) / 2e-5) > 1e-8;
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2"])
def test_quotients_behind_pointers_of_the_file(level: str, tmp_path: Path) -> None:
    """Their bits were taken for what may be the addresses beside them."""
    (tmp_path / "p.c").write_text(PROGRAM)
    assert main(["run", level, "-fopenmp", str(tmp_path / "p.c"), "-lm"]) == 0
