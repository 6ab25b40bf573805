"""Programs whose derivatives call the vector functions of the C library."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from irgrad.engine.codegen import vector_math
from irgrad.interop.cli import main

VECTORS = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
void f(const double *restrict x, double *restrict y, double *restrict out, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        double e = exp(x[i]);
        y[i] = sin(e) + e;
        s += log(e + x[i] * x[i]);
    }
    *out = s;
}
int main(void) {
    enum { N = 999 };
    double *x = malloc(N * 8), *dx = calloc(N, 8), *y = malloc(N * 8), *dy = malloc(N * 8), *again = malloc(N * 8);
    double out = 0, seed = 1, value;
    for (int i = 0; i < N; i++) x[i] = i * 1e-3 - 0.4, dy[i] = 1;
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_dup, &out, &seed, enzyme_const, N);
    f(x, again, &value, N);
    int bad = value != out;
    for (int i = 0; i < N; i++) {
        double e = exp(x[i]), want = (cos(e) + 1) * e + (e + 2 * x[i]) / (e + x[i] * x[i]);
        bad += y[i] != again[i] || fabs(dx[i] - want) > 1e-14 * fabs(want) + 1e-14;
    }
    return bad != 0;
}
"""


@pytest.mark.parametrize(("option", "functions"), [("", "b"), ("-march=native", "bde"), ("-fveclib=none", "")])
def test_derivatives_take_vector_functions_and_values_stay(option: str, functions: str, tmp_path: Path) -> None:
    source, program = tmp_path / "vectors.c", tmp_path / "vectors"
    source.write_text(VECTORS)
    words = ["-O2", *([option] if option else []), str(source)]
    assert main(["cc", *words, "-o", str(program)]) == 0
    assert subprocess.run([str(program)], check=False).returncode == 0
    assert main(["cc", "-S", *words, "-o", str(tmp_path / "vectors.s")]) == 0
    called = set(re.findall(r"_ZGV(\w)N\d+v_cos", (tmp_path / "vectors.s").read_text()))
    assert called <= set(functions) and bool(called) == bool(functions and vector_math.available())
    assert not re.search(r"_ZGV\w+_(log|exp|sin)\b", (tmp_path / "vectors.s").read_text())  # values are told
