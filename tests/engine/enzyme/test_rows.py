"""Tables of pointers to rows: derivatives are right wherever the rows lie, and nothing is read that the function does
not read."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from random_loops import loops

from irgrad.interop.cli import main
from irgrad.interop.driver import program_text

HEAD = """#include <math.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
"""
ASKED = """
void d_NAME(T **x, T **dx, T **y, T **dy, int n) {
    __enzyme_autodiff((void *)NAME, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n);
}
"""
N, WIDE = 5, 5
KERNELS = {  # over n rows of n numbers
    "product": """for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)
                      y[i][j] += x[i][k] * x[k][j];""",
    "pairs": """for (int i = 0; i < n; i++) for (int j = i + 1; j < n; j++) {
                    T s = 0.1; for (int l = 0; l < n; l++) s += (x[i][l] - x[j][l]) * (x[i][l] - x[j][l]);
                    y[0][0] += 1.0 / s; }""",
    "below": "for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) y[i][j] *= x[j][i] * x[i][j] * y[j][i];",
    "stencil": """for (int t = 0; t < 2; t++) for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++)
                      y[i][j] += x[i - 1][j] * x[i][j + 1] + x[i + 1][j] * y[i][j - 1];""",
    "down": "for (int i = n - 1; i >= 0; i--) for (int j = 0; j < n; j++) y[j][i] += x[j][i] * x[i][j] * y[j][i];",
    "steps": """for (int t = 0; t < 2; t++) for (int i = 0; i < n; i++) for (int j = i; j < n; j++)
                    y[j][i] = y[j][i] * x[i][j] + x[j][0];""",
    "some": """for (int i = 0; i < n; i++) if (i < 3)
                   for (int k = 0; k < n; k++) y[i][k] += x[i][0] * x[k][1] * y[k][0];""",
    "columns": "for (int j = 0; j < 3; j++) for (int i = 0; i < n; i += 2) y[i][j] += x[i][j] * x[i][2] * y[i][0];",
    "aside": """if (n > 2) y[2][1] *= x[1][0];
                    for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) y[i][0] *= x[k][i];""",
    "chosen": """for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)
                     y[i][(int)(9 * x[j][i]) % 3] += x[i][j] * x[j][i];""",
    "naturals": """unsigned m = n;
                   for (unsigned i = 0; 2 * i < m; i++)
                       for (unsigned j = i; j < m; j++) y[j][2 * i] += x[i][j] * x[j][i];""",
    "last": """for (int i = 0; i < n - 1; i++) for (int j = i + 1; j < n; j++) for (int l = 0; l < n; l++)
                   y[0][l] += x[i][l] * x[j][l] * x[j][l];""",
    "choice": """for (int i = 0; i < n; i++)
                     for (int k = 0; k < n; k++) if (k > 1) y[k][i] += x[k][i] * x[i][k] * y[k][i];""",
}  # fmt: skip


def source(kernels: dict[str, str]) -> str:
    """A program with the kernels, the functions that ask for their gradients, and the kernels on complex numbers."""
    text, exact = HEAD, "#include <complex.h>\n"
    for name, body in kernels.items():
        text += f"void {name}(T **x, T **y, int n) {{ {body} }}\n" + ASKED.replace("NAME", name)
        exact += f"void c_{name}(T **x, T **y, int n) {{ {body} }}\n"
    return re.sub(r"\bT\b", "double", text) + re.sub(r"\bT\b", "double complex", exact)


def compiled(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    (folder / "a.c").write_text(text, encoding="utf-8")
    assert main(["cc", "-O2", *flags, "-shared", str(folder / "a.c"), "-o", str(folder / "a.so"), "-lm"]) == 0
    return ctypes.CDLL(str(folder / "a.so"))


def table(memory: np.ndarray, rows: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    """Pointers to these elements."""
    return (ctypes.c_void_p * max(1, len(rows)))(*(memory.ctypes.data + memory.itemsize * row for row in rows))


def check(library: ctypes.CDLL, name: str, x: Sequence[int], y: Sequence[int], n: int) -> None:
    """The gradient where rows begin at these elements of one array, against a step of the whole array in an imaginary
    direction."""
    rng = np.random.default_rng([n, *x, *y])
    memory, weights, way = rng.uniform(0.05, 0.25, 200), rng.uniform(-1, 1, 200), rng.uniform(-1, 1, 200)
    held, shadow, exact = memory.copy(), weights.copy(), memory + 1e-100j * way
    getattr(library, f"d_{name}")(*(table(a, rows) for rows in (x, y) for a in (held, shadow)), n)
    getattr(library, f"c_{name}")(table(exact, x), table(exact, y), n)
    wanted, found = float(weights @ (exact.imag / 1e-100)), float(way @ shadow)
    size_of_terms = float(np.abs(weights) @ np.abs(exact.imag / 1e-100))
    assert abs(found - wanted) <= 1e-11 * max(1.0, size_of_terms), (name, x, y, n, found, wanted)


def spaced(first: int, step: int, n: int = N) -> list[int]:
    return [first + step * i for i in range(n)]


TABLES = {
    "one array": (spaced(20, WIDE), spaced(80, WIDE)),
    "wide rows": (spaced(20, 7), spaced(80, 9)),
    "in the same array": (spaced(20, WIDE), spaced(20, WIDE)),
    "begins inside": (spaced(20, WIDE), spaced(33, WIDE)),
    "the last is the first": (spaced(20, WIDE), spaced(40, WIDE)),
    "rows that overlap": (spaced(20, 3), spaced(80, WIDE)),
    "one row": (spaced(20, 0), spaced(80, 0)),
    "upside down": (spaced(40, -WIDE), spaced(100, -WIDE)),
    "exchanged": ([20, 30, 25, 35, 40], [80, 85, 95, 90, 100]),
    "the last is another": ([20, 25, 30, 35, 20], [80, 85, 90, 95, 82]),
    "the first is another": ([60, 25, 30, 35, 40], [81, 85, 90, 95, 100]),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(source(KERNELS), tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_wherever_rows_lie(library: ctypes.CDLL, name: str) -> None:
    for (x, y), n in itertools.product(TABLES.values(), (N, 3, 2, 1, 0)):
        check(library, name, x, y, n)


def test_two_versions_are_made(tmp_path: Path) -> None:
    """Where tables are read only, and a tape or a loop over rows would be left; not where a table is written."""
    others = {
        "changed": "T *r = x[0]; x[0] = x[1]; x[1] = r; for (int i = 0; i < n; i++) y[0][i] *= x[0][i] * y[i][0];",
    }
    for name, body in {**KERNELS, **others}.items():
        (tmp_path / "a.c").write_text(source({name: body}))
        text = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
        assert ("irgrad.rows.spaced" in text) == (name in KERNELS and name != "chosen"), name


def test_shadows_lie_elsewhere(library: ctypes.CDLL) -> None:
    """The tables of the shadows have another order than those of the values, and other distances."""
    rng = np.random.default_rng(3)
    x, y, dx, dy = (rng.uniform(0.5, 1.5, (N, N)) for _ in range(4))
    wanted_x = dx + dy @ x.T + x.T @ dy
    for order, wide in ((range(N), N), (range(N), N + 2), ([2, 0, 1, 4, 3], N)):
        held = np.zeros((N, wide)), np.zeros((N, wide))
        for array, shadow in zip(held, (dx, dy), strict=True):
            array[list(order), :N] = shadow
        places = [wide * row for row in order]
        rows = [table(x.copy(), spaced(0, N)), table(held[0], places), table(y.copy(), spaced(0, N))]
        values = x.copy(), y.copy()
        rows[0], rows[2] = table(values[0], spaced(0, N)), table(values[1], spaced(0, N))
        library.d_product(*rows, table(held[1], places), N)
        np.testing.assert_allclose(held[0][list(order), :N], wanted_x, rtol=1e-12)
        np.testing.assert_allclose(held[1][list(order), :N], dy, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_no_pointer_is_read_beyond_those_of_the_function(library: ctypes.CDLL, name: str) -> None:
    """Tables that end where memory ends, as long as the function reads them: reading on would end this process."""
    some, odd = (lambda n: n if n > 1 else 0), (lambda n: n if n % 2 else max(0, n - 1))
    read = {"below": some, "pairs": some, "last": some, "columns": odd, "choice": lambda n: n if n > 2 else 0,
            "stencil": lambda n: n if n > 2 else 0}.get(name, lambda n: n)  # fmt: skip
    page = mmap.PAGESIZE
    held = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(held))
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert mprotect(address + page, page, 0) == 0
    numbers = [np.full((N, N), 0.7) for _ in range(4)]
    for n in (N, 4, 3, 2, 1, 0):
        for which in range(4):
            rows = [table(array, spaced(0, N)) for array in numbers]
            count = min(1, read(n)) if name == "pairs" and which > 1 else read(n)
            at = address + page - 8 * count
            ctypes.memmove(at, rows[which], 8 * count)
            given = [ctypes.c_void_p(ctypes.addressof(row)) for row in rows]
            given[which] = ctypes.c_void_p(at)
            getattr(library, f"d_{name}")(*given, n)
    assert mprotect(address + page, page, 3) == 0


def random_kernel(rng: np.random.Generator) -> str:
    """A nest over rows whose subscripts reach no row and no column before 0 nor behind 9."""
    nest, counters = loops(rng)

    def number() -> str:
        if rng.random() < 0.15:
            return str(rng.integers(0, 6))
        return f"{rng.choice(counters)} + {rng.integers(0, 3)}"

    def place() -> str:
        return f"[{number()}][{number()}]"

    body = f"y{place()} {rng.choice(['+=', '=', '*='])} x{place()} * x{place()}"
    body += rng.choice(["", f" + 0.5 * y{place()}", f" * y{place()}"]) + ";"
    if rng.random() < 0.3:
        body = f"if ({rng.choice(counters)} > {rng.integers(0, 3)}) {body}"
    more = f" y{place()} += x{place()} * x{place()};" if rng.random() < 0.4 else ""
    whole = f"int m = {rng.choice(['n / 2 + 1', 'n'])}; {nest} {{ {body}{more} }}"
    return whole + (" for (int t = 0; t < 2; t++) for (int i = 0; i < n; i++) y[i][0] *= x[0][i] * x[i][2];"
                   if rng.random() < 0.3 else "")  # fmt: skip


@pytest.mark.parametrize("first", range(0, min(int(os.environ.get("IRGRAD_FUZZ", "20")), 200), 20))
def test_random_nests(first: int, tmp_path: Path) -> None:
    kernels = {f"f{seed}": random_kernel(np.random.default_rng(seed)) for seed in range(first, first + 20)}
    made = compiled(source(kernels), tmp_path)
    for name in kernels:
        rng = np.random.default_rng([first, int(name[1:])])
        tables = [(spaced(0, 8, 10), spaced(90, 8, 10)), (spaced(0, 9, 10), spaced(100, 9, 10)),
                  (spaced(0, 7, 10), spaced(80, 7, 10)), (spaced(10, 8, 10), spaced(20, 8, 10))]  # fmt: skip
        tables += [tuple(spaced(int(a), step, 10) for a in rng.integers(0, 100, 2)) for step in (5, 6, 7)]
        odd = spaced(0, 8, 10)
        odd[int(rng.integers(10))] = int(rng.integers(90))
        for x, y in [*tables, (odd, spaced(100, 8, 10))]:
            check(made, name, x, y, N)
