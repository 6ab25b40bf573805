"""Critical sections and atomic updates of a function's own variables, on threads: sums and extremes as any other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.engine.threads.own_updates import with_own_updates
from irgrad.rules.errors import OneThread

SOURCE = r"""
#include <math.h>
double f(const double *x, double *y, long n) {
  double s = START;
  #pragma omp parallel for SCHEDULE
  for (long i = 0; i < n; i++) {
    double v = sin(x[i]) * x[i];
    y[i] = v * v;
    UPDATE
  }
  return s;
}
"""
SIGNATURE = "f64(f64[n] x, out f64[n] y, i64 n)"
X = np.random.default_rng(5).normal(size=500)
V = np.sin(X) * X
CASES = {
    "critical sum": ("0", "\n#pragma omp critical\ns += v;\n", V.sum()),
    "named critical sum": ("1", "\n#pragma omp critical(here)\n{ s += v; }\n", V.sum() + 1),
    "critical largest": ("-1e300", "\n#pragma omp critical\n{ if (v > s) s = v; }\n", V.max()),
    "critical fmin": ("1e300", "\n#pragma omp critical\ns = fmin(s, v);\n", V.min()),
    "atomic sum": ("0", "\n#pragma omp atomic\ns += v;\n", V.sum()),
    "atomic difference": ("2", "\n#pragma omp atomic update\ns -= v;\n", 2 - V.sum()),
    "atomic under a condition": ("0", "if (v > 0.5) {\n#pragma omp atomic\ns += v;\n}", V[V > 0.5].sum()),
}


def _gradients(kernel: Any) -> list[Any]:
    (value, y), pullback = ig.vjp(kernel, X)
    bars = (1.3, np.cos(np.arange(X.size)))
    gradient = pullback(bars)
    tangent = np.sin(np.arange(X.size) + 1.0)
    _, pushed = ig.jvp(kernel, (X,), (tangent,))
    gradient = gradient[0] if isinstance(gradient, tuple) else gradient
    assert bars[0] * pushed[0] + bars[1] @ pushed[1] == pytest.approx(gradient @ tangent, rel=1e-11)
    return [np.asarray(value), y, gradient, *map(np.asarray, pushed)]


@pytest.mark.parametrize("schedule", ["", "schedule(dynamic, 7)"])
@pytest.mark.parametrize("name", CASES)
def test_threads_share_the_loop(name: str, schedule: str) -> None:
    start, update, wanted = CASES[name]
    text = SOURCE.replace("START", start).replace("UPDATE", update).replace("SCHEDULE", schedule)
    lib = ig.load(text, flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        kernels = {t: lib.kernel("f", SIGNATURE, threads=t) for t in (1, 2, 4, 16)}
        found = {t: _gradients(kernel) for t, kernel in kernels.items()}
    assert shared_loops(kernels[2].primal).shared
    plain = _gradients(lib.kernel("f", SIGNATURE))
    assert plain[0] == pytest.approx(wanted, rel=1e-12)
    for results in found.values():
        for a, b, c in zip(results, found[1], plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("update", [
    "\n#pragma omp critical\n{ s = s * 0.5 + v; }\n",
    "\n#pragma omp critical\n{ s += v; y[0] += s; }\n",
    "\n#pragma omp atomic\ny[(i * 7) % n] += v;\n",
    "double before;\n#pragma omp atomic capture\n{ before = s; s += v; }\ny[i] += before;",
])  # fmt: skip
def test_what_needs_an_order_goes_in_the_order_of_iterations(update: str) -> None:
    lib = ig.load(SOURCE.replace("START", "0").replace("UPDATE", update).replace("SCHEDULE", ""), flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        found = {t: _gradients(lib.kernel("f", SIGNATURE, threads=t)) for t in (1, 2, 4)}
    for results in found.values():
        for a, b, c in zip(results, found[1], _gradients(lib.kernel("f", SIGNATURE)), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-12)


def test_ordered_sections_keep_their_order() -> None:
    text = SOURCE.replace("START", "0").replace("UPDATE", "\n#pragma omp ordered\ns += v;\n")
    kernel = ig.load(text.replace("SCHEDULE", "ordered"), flags=["-fopenmp"])
    with pytest.warns(OneThread, match="it has an ordered part"):
        kernel = kernel.kernel("f", SIGNATURE, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        assert kernel(X)[0] == pytest.approx(V.sum(), rel=1e-12)
        assert not shared_loops(kernel.primal).shared


def test_a_variable_that_others_know_is_left_alone() -> None:
    text = """
declare void @tell(ptr)
define double @f(double %x) {
  %own = alloca double, align 8
  %known = alloca double, align 8
  store double 0.0, ptr %own, align 8
  store double 0.0, ptr %known, align 8
  call void @tell(ptr %known)
  %a = atomicrmw fadd ptr %own, double %x monotonic, align 8
  %b = atomicrmw fadd ptr %known, double %x monotonic, align 8
  %c = load atomic double, ptr %known monotonic, align 8
  %d = load double, ptr %own, align 8
  %s = fadd double %c, %d
  ret double %s
}
"""
    made = with_own_updates(text, "f")
    assert made.count("atomicrmw") == 1 and "alloca" in made and made.count("alloca") == 1
    plain = text.replace("%own", "%known")
    assert with_own_updates(plain.replace("  %known = alloca double, align 8\n", "", 1), "f").count("atomicrmw") == 2


def test_a_shared_loop_inside_of_a_region_is_not_told_of() -> None:
    text = """
void f(const double *x, double *y, int *bins, long n) {
  #pragma omp parallel
  {
    #pragma omp for
    for (long i = 0; i < n; i++) {
      y[i] = x[i] * x[i];
      #pragma omp atomic
      bins[i % 4]++;
    }
  }
}
"""
    signature = "void(f64[n] x, out f64[n] y, out i32[4] bins, i64 n)"
    lib = ig.load(text, flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, bins = lib.kernel("f", signature, threads=2)(X)
    assert bins.tolist() == [125] * 4
