"""Memory that overlaps or not, compared when the program runs: derivatives are right at every distance."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_loops import loops

from irgrad.interop.cli import main
from irgrad.interop.driver import program_text

HEAD = """#include <math.h>
#include <string.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
"""
ASKED = """
void d_NAME(T *x, T *dx, T *y, T *dy, int n) {
    __enzyme_autodiff((void *)NAME, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n);
}
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
    "empty": "for (int i = 5; i < n; i++) for (int j = 0; j < n; j++) y[i] *= x[j] * x[i]; y[0] *= x[1] * x[1] * y[0];",
}  # fmt: skip
ADD = """__attribute__((noinline)) static void add(const T *x, T *y, int n) {
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i + 2 * j] += x[j] * x[i] * x[i];
}
"""


def source(kernels: dict[str, str], kind: str = "double") -> str:
    """A program with the kernels, the functions that ask for their gradients, and the kernels on complex numbers."""
    add = ADD if "called" in kernels else ""
    text, exact = HEAD + add, add.replace("add(", "c_add(")
    for name, body in kernels.items():
        text += f"void {name}(const T *x, T *y, int n) {{ {body} }}\n" + ASKED.replace("NAME", name)
        exact += f"void c_{name}(const T *x, T *y, int n) {{ {body.replace('add(', 'c_add(')} }}\n"
    exact = re.sub(r"\bsin\((?=x)", "csin(", exact)
    return re.sub(r"\bT\b", kind, text) + "#include <complex.h>\n" + re.sub(r"\bT\b", "double complex", exact)


def compiled(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    (folder / "a.c").write_text(text, encoding="utf-8")
    assert main(["cc", "-O2", *flags, "-shared", str(folder / "a.c"), "-o", str(folder / "a.so"), "-lm"]) == 0
    return ctypes.CDLL(str(folder / "a.so"))


def check(library: ctypes.CDLL, name: str, x: int, y: int, n: int, dtype: Any = np.float64, size: int = 160) -> None:
    """The gradient where x and y lie at these elements of one array, against a step of the whole array in an imaginary
    direction."""
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


NEAR = (-50, -26, -25, -24, -3, -1, 1, 2, 4, 5, 6, 9, 10, 11, 12, 25, 26, 30, 31)
PLACES = [(0, 60), (60, 0), (0, 0), *((40, 40 + distance) for distance in NEAR)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(source(KERNELS), tmp_path_factory.mktemp("overlaps"))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_at_every_distance(library: ctypes.CDLL, name: str) -> None:
    places = [(x + 40, y + 40) for x, y in PLACES]
    for (x, y), n in itertools.product(places, (N, 3, 0)):
        check(library, name, x, y, n)


@pytest.mark.long
def test_floats_and_other_levels(tmp_path: Path) -> None:
    for number, (kind, dtype, flag) in enumerate((("float", np.float32, "-O1"), ("double", np.float64, "-O3"))):
        (tmp_path / str(number)).mkdir()
        made = compiled(source(KERNELS, kind), tmp_path / str(number), flag)
        for name in KERNELS:
            for x, y in PLACES:
                check(made, name, x + 40, y + 40, N, dtype)


def test_a_version_for_memory_apart(tmp_path: Path) -> None:
    """Where what is touched is known, and something would be kept for memory that overlaps, or a loop be slower."""
    kernels = {name: KERNELS[name] for name in ("outer", "product", "sums", "called", "neighbours", "swapped")}
    others = {
        "kept": "for (int i = 0; i < n; i++) y[i] += x[i];",
        "until": "for (int i = 0; (double)x[i] > 0.1; i++) for (int j = 0; j < n; j++) y[i] += x[j] * x[j];",
        "places": "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[(int)x[j]] += x[i] * x[j];",
    }
    for name, body in {**kernels, **others}.items():
        (tmp_path / "a.c").write_text(source({"called": KERNELS["called"]} if name == "called" else {name: body}))
        text = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
        assert (".check(" in text) == (name in kernels), name


def test_shadows_are_compared_too(tmp_path: Path) -> None:
    """One shadow lies in the memory of the other, though the values do not: what the overlapping version gives."""
    made = compiled(source({"outer": KERNELS["outer"]}), tmp_path)
    rng = np.random.default_rng(3)
    x, y, shadow = rng.uniform(0.3, 0.9, 30), rng.uniform(0.3, 0.9, 30), rng.uniform(-1, 1, 60)
    before = shadow.copy()
    address = [ctypes.c_void_p(a.ctypes.data + 8 * at) for a, at in ((x, 0), (shadow, 0), (y, 0), (shadow, 2))]
    made.d_outer(*address, N)
    right = before.copy()
    for i, j in reversed(list(itertools.product(range(N), range(N)))):
        d = right[2 + i * N + j]
        right[i] += 2 * d * x[i] * x[j]
        right[j] += d * x[i] * x[i]
    np.testing.assert_allclose(shadow, right, rtol=1e-12)


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


@pytest.mark.parametrize("first", range(0, min(int(os.environ.get("IRGRAD_FUZZ", "20")), 60), 20))
def test_random_nests(first: int, tmp_path: Path) -> None:
    kernels = {f"f{seed}": random_kernel(np.random.default_rng(seed)) for seed in range(first, first + 20)}
    made = compiled(source(kernels), tmp_path)
    for name in kernels:
        rng = np.random.default_rng([first, int(name[1:])])
        for distance in (0, -70, 70, *rng.integers(-40, 40, 12)):
            check(made, name, 100, 100 + int(distance), N, size=280)
