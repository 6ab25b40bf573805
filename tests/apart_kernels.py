"""Kernels over two arrays in C, their gradients where the arrays lie at any distance, against steps in an imaginary
direction."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
from random_loops import loops

from irgrad.interop.cli import main

__all__ = ["HEAD", "KERNELS", "PLACES", "N", "check", "compiled", "exact_source", "random_kernel"]

HEAD = """#include <math.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
"""
N = 5
KERNELS = {  # x has at least 6 n, y 2 n * n elements
    "outer": "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i * n + j] += x[i] * x[j] * x[i];",
    "product": """for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) for (int j = 0; j < n; j++)
                      y[i * n + j] += x[i + k] * x[k * n + j];""",
    "sums": "for (int i = 0; i < n; i++) for (int k = 0; k < 3; k++) y[i] += x[i + k] * x[k];",
    "down": "for (int i = n - 1; i >= 0; i--) for (int j = n; j > 0; j--) y[i] += x[j] * x[j] * x[i + 2];",
    "pointers": """T *q = y; const T *p = x;
                   for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) *q += p[j] * p[j + 1]; q++; p += 2; }""",
    "triangle": "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) y[i] += x[i * 2 + j] * x[j] * y[j];",
    "steps": """for (long t = 0; t < 3; t++) { for (int i = 1; i < n; i++) y[i] += x[i - 1] * x[i] * y[i];
                memcpy(y + n, y, n * sizeof(T)); }""",
    "guarded": "if (n > 2) for (int i = 0; i < n - 2; i++) for (int j = 0; j < n; j++) y[i] += sin(x[j]) * x[i + 2];",
    "naturals": """unsigned m = n;
                   for (unsigned i = 0; i < m; i++) for (unsigned j = i; j < m; j++) y[2 * i] += x[j] * x[j];""",
    "called": "add(x, y, n); add(x + n, y + 1, n);",
    "neighbours": "for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) y[i * n + j] = x[i * n + j] + x[i + j - 1];",
    "swapped": """T *p = (T *)x, *q = y; for (int t = 0; t < n; t++) {
                  for (int i = 1; i < n; i++) q[i] = p[i - 1] - 2 * p[i] + p[i + 1]; T *r = p; p = q; q = r; }""",
    "scratch": """T *t = malloc(n * sizeof(T)); for (int i = 0; i < n; i++) t[i] = x[i] * x[i];
                  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i + j] += t[i] * x[j] * x[i]; free(t);""",
    "walked": "for (T *q = y; q != y + n; q++) for (const T *p = x; p != x + n; p++) *q += *p * *p * *q;",
    "volume": """int p = n / 2 + 1; for (int i = 0; i < 2; i++) for (int j = 0; j < n; j++) for (int k = 0; k < p; k++)
                     y[(i * n + j) * p + k] += x[(i * n + j) * p + k] * x[(j + 1) * p] * x[k];""",
    "empty": "for (int i = 5; i < n; i++) for (int j = 0; j < n; j++) y[i] *= x[j] * x[i]; y[0] *= x[1] * x[1] * y[0];",
}  # fmt: skip
NEAR = (-50, -26, -25, -24, -3, -1, 1, 2, 4, 5, 6, 9, 10, 11, 12, 25, 26, 30, 31)
PLACES = [(0, 60), (60, 0), (0, 0), *((40, 40 + distance) for distance in NEAR)]


def exact_source(kernels: dict[str, str]) -> str:
    """The kernels on complex numbers."""
    exact = "".join(f"void c_{name}(const T *x, T *y, int n) {{ {body.replace('add(', 'c_add(')} }}\n"
                    for name, body in kernels.items())  # fmt: skip
    exact = re.sub(r"\bsin\((?=x)", "csin(", exact)
    return "#include <complex.h>\n" + re.sub(r"\bT\b", "double complex", exact)


def compiled(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    (folder / "a.c").write_text(text, encoding="utf-8")
    assert main(["cc", "-O2", *flags, "-shared", str(folder / "a.c"), "-o", str(folder / "a.so"), "-lm"]) == 0
    return ctypes.CDLL(str(folder / "a.so"))


def check(library: ctypes.CDLL, name: str, x: int, y: int, n: int, dtype: Any = np.float64, size: int = 160) -> None:
    """The gradient where x and y lie at these elements of one array, against a step of the whole array in an imaginary
    direction; and tangents, of what has them."""
    rng = np.random.default_rng(x * 1000 + y)
    memory, weights, way = rng.uniform(0.05, 0.25, size), rng.uniform(-1, 1, size), rng.uniform(-1, 1, size)
    held, shadow, exact = memory.astype(dtype), weights.astype(dtype), memory + 1e-100j * way

    def places(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
        return [ctypes.c_void_p(a.ctypes.data + a.itemsize * at) for at in (x, y) for a in arrays]

    getattr(library, f"d_{name}")(*places(held, shadow), n)
    getattr(library, f"c_{name}")(*places(exact), n)
    wanted = float(weights @ (exact.imag / 1e-100))
    found = float(way @ shadow)
    tolerance = 1e-11 if dtype == np.float64 else 1e-3
    size_of_terms = float(np.abs(weights) @ np.abs(exact.imag / 1e-100))
    assert abs(found - wanted) <= tolerance * max(1.0, size_of_terms), (name, x, y, n, found, wanted)
    if hasattr(library, f"t_{name}"):
        values, tangents = memory.astype(dtype), way.astype(dtype)
        getattr(library, f"t_{name}")(*places(values, tangents), n)
        for got, right in ((values, exact.real), (tangents, exact.imag / 1e-100)):
            assert np.all(np.abs(got - right) <= tolerance * (1 + np.abs(right))), (name, x, y, n, got - right)


def random_kernel(rng: np.random.Generator) -> str:
    """A nest with affine subscripts, which reach no element before 0 nor behind 60."""
    nest, counters = loops(rng)

    def place() -> str:
        terms = [f"{rng.choice([1, 1, 2, 3])} * {c}" for c in counters if rng.random() < 0.7]
        turned = f"{5 * rng.integers(1, 4)} - {rng.choice(counters)}" if rng.random() < 0.2 else ""
        return " + ".join([*terms, *([turned] if turned else []), str(rng.integers(0, 4))])

    body = f"y[{place()}] {rng.choice(['+=', '=', '*='])} x[{place()}] * x[{place()}]"
    body += rng.choice(["", f" + 0.5 * y[{place()}]", f" * y[{place()}]"]) + ";"
    if rng.random() < 0.3:
        body = f"if ({rng.choice(counters)} > {rng.integers(0, 3)}) {body}"
    more = f" y[{place()}] += sin(x[{place()}]);" if rng.random() < 0.4 else ""
    whole = f"int m = {rng.choice(['n / 2 + 1', '(int)sqrt((double)n) + 2', 'n'])}; {nest} {{ {body}{more} }}"
    return whole + (" for (int t = 0; t < 2; t++) for (int i = 0; i < n; i++) y[i] *= x[i] * x[2 * i];"
                   if rng.random() < 0.3 else "")  # fmt: skip
