"""Critical sections that only add to memory become atomic updates."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import warnings

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.engine.parallel.critical_updates import with_critical_updates
from irgrad.rules.errors import OneThread

SOURCE = r"""
#include <math.h>
double f(const double *x, double *y, long n) {
  double h[8] = {0}, s = 0;
  #pragma omp parallel for
  for (long i = 0; i < n; i++) {
    double v = sin(x[i]) * x[i];
    SECTIONS
  }
  for (int j = 0; j < 8; j++) s += h[j] * h[(j + 1) % 8];
  return s;
}
"""
SIGNATURE = "f64(f64[n] x, inout f64[n] y, i64 n)"
X, Y = np.random.default_rng(3).normal(size=(2, 300))
UPDATES = {
    "arrays": "\n#pragma omp critical\n{ h[i * 5 % 8] += v; y[(i * 7) % n] -= v * v; }\n",
    "written out, and a product": "\n#pragma omp critical(two)\n{ h[i % 3] = h[i % 3] + 2 * v; h[7] = 0.5 * v + h[7]; }\n",
    "with variables of its own": "\n#pragma omp critical\n{ int k = (int)(i * 3 % 8); double w = v * 0.3; h[k] += w; }\n",
    "with a hint": "\n#pragma omp critical(three) hint(2)\n{ h[i % 8] += v; s += v; }\n",
}


def _results(kernel: object) -> list[np.ndarray]:
    values, pullback = ig.vjp(kernel, X, Y)  # type: ignore[arg-type]
    bars = (1.3, np.cos(np.arange(Y.size)))
    gradients = pullback(bars)
    slopes = np.sin(np.arange(X.size) + 1.0), np.cos(np.arange(Y.size) * 2.0)
    _, pushed = ig.jvp(kernel, (X, Y), slopes)  # type: ignore[arg-type]
    both = sum(float(g @ t) for g, t in zip(gradients, slopes, strict=True))
    assert bars[0] * pushed[0] + bars[1] @ pushed[1] == pytest.approx(both, rel=1e-11)
    return [*map(np.asarray, values), *gradients, *map(np.asarray, pushed)]


@pytest.mark.parametrize("name", UPDATES)
def test_threads_share_the_loop(name: str) -> None:
    lib = ig.load(SOURCE.replace("SECTIONS", UPDATES[name]), flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        kernels = {t: lib.kernel("f", SIGNATURE, threads=t) for t in (1, 2, 4)}
        found = {t: _results(kernel) for t, kernel in kernels.items()}
    assert shared_loops(kernels[2].primal).shared
    plain = _results(lib.kernel("f", SIGNATURE))
    for results in found.values():
        for a, b, c in zip(results, found[1], plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("section", [
    "s += v; y[i] += s;",  # reads what it has updated
    "h[i % 8] = h[(i + 1) % 8] + v;",  # of another place
    "h[i % 8] *= v;",
    "h[i % 8] += x[i];",  # may be what another thread updates
    "h[i % 8] += v; y[0] = v;",
    "if (h[0] < v) h[0] = v;",
])  # fmt: skip
def test_what_does_more_stays(section: str) -> None:
    lib = ig.load(SOURCE.replace("SECTIONS", f"\n#pragma omp critical\n{{ {section} }}\n"), flags=["-fopenmp"])
    assert "atomicrmw" not in lib.text


def test_updates_of_a_type_that_another_section_reads_stay() -> None:
    row = "  call void @__kmpc_{}critical(ptr null, i32 0, ptr @lock)\n"
    counts = row.format("") + (
        "  %a = load i32, ptr %n, align 4\n  %b = add i32 %a, 1\n  store i32 %b, ptr %n, align 4\n") + row.format("end_")  # fmt: skip
    reads = row.format("") + (
        "  %k = load i32, ptr %n, align 4\n  %p = getelementptr double, ptr %y, i32 %k\n  %c = load double, ptr %p, align 8\n"
        "  %d = fadd double %c, 1.0\n  store double %d, ptr %p, align 8\n") + row.format("end_")  # fmt: skip
    text = f"""@lock = global i32 0
define void @f(ptr %n, ptr %y) {{
{counts}{reads}  ret void
}}
declare void @__kmpc_critical(ptr, i32, ptr)
declare void @__kmpc_end_critical(ptr, i32, ptr)
"""
    made = with_critical_updates(text, variables=True)
    assert made.count("atomicrmw add") == 1
    assert "atomicrmw fadd" not in made
    assert with_critical_updates(text.replace(counts, ""), variables=True).count("atomicrmw fadd") == 1
    alone = text.replace(reads, "")
    assert with_critical_updates(alone, variables=False) == alone  # a variable: a reduction, as it stands


@pytest.mark.parametrize(("order", "count"), [("abAB", 0), ("aAbB", 2)])
def test_an_update_that_another_one_may_overwrite_stays(order: str, count: int) -> None:
    """`a = *p, b = *q; *p = a + v; *q = b + v` adds v once where both are one place."""
    rows = {
        "a": "  %a = load double, ptr %p, align 8\n  %c = fadd double %a, %v\n",
        "b": "  %b = load double, ptr %q, align 8\n  %d = fadd double %b, %v\n",
        "A": "  store double %c, ptr %p, align 8\n",
        "B": "  store double %d, ptr %q, align 8\n",
    }
    text = f"""@lock = global i32 0
define void @f(ptr %p, ptr %q, double %v) {{
  call void @__kmpc_critical(ptr null, i32 0, ptr @lock)
{"".join(rows[letter] for letter in order)}  call void @__kmpc_end_critical(ptr null, i32 0, ptr @lock)
  ret void
}}
declare void @__kmpc_critical(ptr, i32, ptr)
declare void @__kmpc_end_critical(ptr, i32, ptr)
"""
    assert with_critical_updates(text, variables=True).count("atomicrmw fadd") == count
