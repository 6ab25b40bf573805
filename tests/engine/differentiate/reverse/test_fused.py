"""Both sweeps of one iteration at a time: the same gradients, by every way, from a tape that does not grow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad import engine

SOURCE = """
#include <math.h>
#include <stdlib.h>
double f(const T *x, const T *w, double k, long n, long m) {
    T *e = malloc(m * sizeof *e), *t = malloc(m * sizeof *t), s = 0.25;
    double total;
    for (long j = 0; j < m; j++) e[j] = exp(w[j]);
    for (long i = 0; i < n; i++) {
        T q = 0;
        for (long j = 0; j < m; j++) t[j] = sin(x[i] * e[j]) * w[j];
        for (long j = 0; j < m; j++) q += t[j] * t[(j + 1) % m];
        s += (T)sqrt(k + q * q);
    }
    total = w[0] * s + n * log(e[0]);
    free(e); free(t);
    return total;
}
"""
LINE = 8
W = np.array([0.3, 0.5, 0.2, -0.4])
DEGREE = 0.7


def _kernels(kind: str = "double", **options: Any) -> tuple[ig.Kernel, ig.Kernel]:
    short = {"double": "f64", "float": "f32"}[kind]
    signature = f"f64({short}[n] x, {short}[m] w, f64 k, i64 n, i64 m)"
    library = ig.load(SOURCE.replace("T ", f"{kind} ").replace("(T)", f"({kind})"))
    return tuple(library.kernel("f", signature, checkpoint=said, **options)  # type: ignore[return-value]
                 for said in ({LINE: "fused"}, None))  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 300])
def test_gradients(n: int) -> None:
    x = np.linspace(0.1, 2, n)
    fused, plain = _kernels()
    value, found = ig.value_and_grad(fused, wrt=("x", "w", "k"))(x, W, DEGREE)
    assert value == plain(x, W, DEGREE)
    for mine, other in zip(found, ig.grad(plain, wrt=("x", "w", "k"))(x, W, DEGREE), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-14)
    step = 1e-6
    slope = (plain(x, W + step * W, DEGREE + step) - plain(x, W - step * W, DEGREE - step)) / (2 * step)
    np.testing.assert_allclose(found[1] @ W + found[2], slope, rtol=1e-7)


PROGRAM = """
#include <stdio.h>
extern int enzyme_runtime_activity, enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
static double f(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i];
    return s;
}
int main(void) {
    double x[40], dx[40] = {0};
    for (int i = 0; i < 40; i++) x[i] = i + 1;
    __enzyme_autodiff((void *)f, SWITCH enzyme_dup, x, dx, enzyme_const, 40l);
    printf("%g %g\\n", dx[1], dx[39]);
    return 0;
}
"""


@pytest.mark.parametrize("switch", ["", "enzyme_runtime_activity,"])
def test_programs(switch: str, tmp_path: Path) -> None:
    """What has a derivative has to be known before the loop."""
    file = tmp_path / "p.c"
    file.write_text(PROGRAM.replace("SWITCH", switch))
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", "-O2", "--checkpoint=p.c:7=fused", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if switch:
        assert done.returncode and "the loop at p.c:7 has no fused schedule" in done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, "12 4800\n"), done.stderr


def test_not_where_factors_of_zero_count() -> None:
    with pytest.raises(ig.Unsupported, match="has no fused schedule"):
        ig.grad(_kernels(strong_zero=True)[0], wrt="w")(np.linspace(0.1, 2, 5), W, DEGREE)


def test_sums_in_their_order() -> None:
    x = np.linspace(0.1, 2, 50)
    fused, plain = _kernels(strict_fp=True)
    np.testing.assert_allclose(ig.grad(fused, wrt="w")(x, W, DEGREE), ig.grad(plain, wrt="w")(x, W, DEGREE), rtol=1e-12)


def test_single_precision() -> None:
    x = np.linspace(0.1, 2, 50, dtype=np.float32)
    fused, plain = _kernels("float")
    w = W.astype(np.float32)
    np.testing.assert_allclose(ig.grad(fused, wrt="w")(x, w, DEGREE), ig.grad(plain, wrt="w")(x, w, DEGREE), rtol=2e-6)


def test_second_derivatives_and_batches() -> None:
    x, direction = np.linspace(0.1, 2, 40), np.array([0.5, -1.0, 0.3, 0.2])
    fused, plain = _kernels()
    found = ig.hvp(fused, (x, W, DEGREE), direction, wrt="w")
    np.testing.assert_allclose(found, ig.hvp(plain, (x, W, DEGREE), direction, wrt="w"), rtol=1e-10)
    gradient, step = ig.grad(plain, wrt="w"), 1e-6
    slope = (gradient(x, W + step * direction, DEGREE) - gradient(x, W - step * direction, DEGREE)) / (2 * step)
    np.testing.assert_allclose(found, slope, rtol=1e-6)
    many = np.stack([W, 2 * W, W[::-1]])
    rows = engine.batch_grad(fused, wrt="w", in_axes=(None, 0, None))(x, many, DEGREE)
    for row, w in zip(rows, many, strict=True):
        np.testing.assert_allclose(row, gradient(x, w, DEGREE), rtol=1e-12)


def test_several_cotangents_at_once() -> None:
    """A Jacobian has lanes of cotangents, whose shadows lie side by side."""
    source = """
    #include <math.h>
    void f(const double *x, double *out, long n) {
        double s = 0, r = 0, q = 0;
        for (long i = 0; i < n; i++) {
            double v = sin(x[i]) * x[n - 1 - i];
            s += v; r -= v * v; if (v > 0.1) q += 1 / v;
        }
        out[0] = 2 * s - r; out[1] = r; out[2] = q * 0.5;
    }"""
    signature, x = "void(f64[n] x, out f64[3] out, i64 n)", np.linspace(0.1, 1, 70)
    plain, fused = (ig.load(source).kernel("f", signature, checkpoint=said) for said in (None, {5: "fused"}))
    np.testing.assert_allclose(ig.jacrev(fused)(x), ig.jacfwd(plain)(x), rtol=1e-12)


def test_the_tape_does_not_grow() -> None:
    fused, plain = _kernels()
    used = []
    for kernel in (fused, plain):
        for n in (4_000, 8_000):
            used.append(kernel.tape_bytes(np.linspace(0.1, 2, n), W, DEGREE))
    assert used[0] == used[1] < 100_000 < 4_000 * 4 * 8 < used[2] < used[3]
