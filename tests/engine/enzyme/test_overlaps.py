"""Memory that overlaps or not, compared when the program runs: derivatives are right at every distance."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
from pathlib import Path

import numpy as np
import pytest
from apart_kernels import HEAD, KERNELS, PLACES, N, check, compiled, exact_source, random_kernel

from irgrad.interop.cli import main
from irgrad.interop.driver import program_text

ASKED = """
void d_NAME(T *x, T *dx, T *y, T *dy, int n) {
    __enzyme_autodiff((void *)NAME, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n);
}
"""
TANGENTS = ASKED.replace("d_NAME", "t_NAME").replace("autodiff", "fwddiff")
ADD = """__attribute__((noinline)) static void add(const T *x, T *y, int n) {
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i + 2 * j] += x[j] * x[i] * x[i];
}
"""


def source(kernels: dict[str, str], kind: str = "double") -> str:
    """A program with the kernels, the functions that ask for their gradients, and the kernels on complex numbers."""
    add = ADD if "called" in kernels else ""
    text, exact = HEAD + add, add.replace("add(", "c_add(")
    for name, body in kernels.items():
        text += f"void {name}(const T *x, T *y, int n) {{ {body} }}\n" + (ASKED + TANGENTS).replace("NAME", name)
    complexes = "#include <complex.h>\n" + re.sub(r"\bT\b", "double complex", exact)
    return re.sub(r"\bT\b", kind, text) + complexes + exact_source(kernels)


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
    kernels |= {name: KERNELS[name] for name in ("scratch", "walked", "volume")}
    others = {
        "kept": "for (int i = 0; i < n; i++) y[i] += x[i];",
        "until": "for (int i = 0; (double)x[i] > 0.1; i++) for (int j = 0; j < n; j++) y[i] += x[j] * x[j];",
        "places": "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[(int)x[j]] += x[i] * x[j];",
    }
    for name, body in {**kernels, **others}.items():
        (tmp_path / "a.c").write_text(source({"called": KERNELS["called"]} if name == "called" else {name: body}))
        text = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
        assert (".check(" in text) == (name in kernels), name


def test_tangents_have_a_version_where_memory_is_written(tmp_path: Path) -> None:
    """Of what only reads its arrays nothing is gained; a single loop over places is LLVM's to compare."""
    kernels = {"outer": KERNELS["outer"], "sums": KERNELS["sums"], "kept": "for (int i = 0; i < n; i++) y[i] += x[i];"}
    kernels["reads"] = "T s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += x[j] * y[i]; total = s;"
    for name, body in kernels.items():
        text = HEAD + f"T total;\nvoid {name}(const T *x, T *y, int n) {{ {body} }}\n" + TANGENTS.replace("NAME", name)
        (tmp_path / "a.c").write_text(re.sub(r"\bT\b", "double", text))
        made = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
        assert (".check(" in made) == (name in ("outer", "sums")), name


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


VECTORS = """#include <vector>
typedef std::vector<double> V;
extern int enzyme_dup;
template <class... A> void __enzyme_autodiff(void *, A...);
static void scratch(const V &x, V &y) {
    int n = x.size();
    V t(n);
    for (int i = 0; i < n; i++) t[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i + 2 * j] += t[i] * x[j] * x[i];
}
static void ranges(const V &x, V &y) { for (double &v : y) for (double u : x) v += u * u * v; }
struct pair { double one, two; };
static void pairs(const std::vector<pair> &x, std::vector<pair> &y) {
    for (size_t i = 0; i < y.size(); i++) for (auto &p : x) y[i].one += p.one * p.two * p.one * y[i].two;
}
extern "C" {
void d_scratch(V *x, V *dx, V *y, V *dy) { __enzyme_autodiff((void *)scratch, enzyme_dup, x, dx, enzyme_dup, y, dy); }
void d_ranges(V *x, V *dx, V *y, V *dy) { __enzyme_autodiff((void *)ranges, enzyme_dup, x, dx, enzyme_dup, y, dy); }
void d_pairs(V *x, V *dx, V *y, V *dy) { __enzyme_autodiff((void *)pairs, enzyme_dup, x, dx, enzyme_dup, y, dy); }
}
"""


def _of_vectors(name: str, x: int, y: int, sizes: tuple[int, int], memory: np.ndarray) -> None:
    """What the functions above do to vectors that begin at x and y, in their order."""
    m, n = sizes
    if name == "scratch":
        square = memory[x : x + m] ** 2
        for i, j in itertools.product(range(m), range(m)):
            memory[y + i + 2 * j] += square[i] * memory[x + j] * memory[x + i]
    for i, j in itertools.product(range(n), range(m)) if name == "ranges" else ():
        memory[y + i] += memory[x + j] ** 2 * memory[y + i]
    for i, j in itertools.product(range(n // 2), range(m // 2)) if name == "pairs" else ():
        one, two = y + 2 * i, x + 2 * j
        memory[one] += memory[two] * memory[two + 1] * memory[two] * memory[one + 1]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "a.cpp").write_text(VECTORS)
    words = ["-O2", "-shared", str(folder / "a.cpp"), "-o", str(folder / "a.so")]
    assert program_text(words).count(".members.check(") >= 6  # each has a version, defined and called
    assert main(["cc", *words]) == 0
    return ctypes.CDLL(str(folder / "a.so"))


@pytest.mark.parametrize("name", ["scratch", "ranges", "pairs"])
def test_vectors_at_every_distance(name: str, vectors: ctypes.CDLL) -> None:
    """Scratch that may throw, ends of ranges, sizes that are quotients; vectors that share memory are made by hand."""
    made, rng = getattr(vectors, f"d_{name}"), np.random.default_rng(8)
    places = [(0, 30), (0, 0), (4, 0), (0, 5), (30, 29), (12, 4)]
    for (x, y), sizes in itertools.product(places, [(4, 6), (6, 2), (0, 4)]):
        start, weight = rng.uniform(0.2, 0.9, 60), rng.normal(size=60)
        memory, shadow, want = start.copy(), weight.copy(), np.zeros(60)
        for k in range(60):
            moved = start + 1e-30j * (np.arange(60) == k)
            _of_vectors(name, x, y, sizes, moved)
            want[k] = (weight @ moved).imag / 1e-30
        ends = [np.array([whole.ctypes.data + 8 * at + 8 * n for n in (0, size, size)])
                for at, size in ((x, sizes[0]), (y, sizes[1])) for whole in (memory, shadow)]  # fmt: skip
        made(*(ctypes.c_void_p(row.ctypes.data) for row in ends))
        np.testing.assert_allclose(shadow, want, rtol=1e-9, atol=1e-12, err_msg=f"{x} {y} {sizes}")


@pytest.mark.parametrize("first", range(0, min(int(os.environ.get("IRGRAD_FUZZ", "20")), 60), 20))
def test_random_nests(first: int, tmp_path: Path) -> None:
    kernels = {f"f{seed}": random_kernel(np.random.default_rng(seed)) for seed in range(first, first + 20)}
    made = compiled(source(kernels), tmp_path)
    for name in kernels:
        rng = np.random.default_rng([first, int(name[1:])])
        for distance in (0, -70, 70, *rng.integers(-40, 40, 12)):
            check(made, name, 100, 100 + int(distance), N, size=280)
