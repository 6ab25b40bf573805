"""Structs of pointers and counts: derivatives are right wherever the memory behind the members lies, members are read
only where the function reads them."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import re
from pathlib import Path

import numpy as np
import pytest
from apart_kernels import HEAD, KERNELS, PLACES, N, check, compiled, exact_source, random_kernel

from irgrad.interop.driver import program_text

SPELLINGS = {  # what is declared, the parameters, what stands before the kernel, what is passed, with `d` for shadows
    "struct": ("struct A { T *x; int n; T *y; };", "struct A *a", "T *x = a->x, *y = a->y; int n = a->n;",
               "struct A a = {x, n, y}, da = {dx, n, dy};", "enzyme_dup, &a, &da"),
    "each time": ("struct A { int n_; T *x_, *y_; double other; };", "struct A *a",
                  "\n#define x a->x_\n#define y a->y_\n#define n a->n_\n",
                  "struct A a = {n, x, y, 1}, da = {n, dx, dy, 0};", "enzyme_dup, &a, &da"),
    "behind": ("struct V { T *at; int length; }; struct A { long id; struct V *p, *q; };", "const struct A *a",
               "\n#define x a->p->at\n#define y a->q->at\n#define n a->p->length\n",
               """struct V u = {x, n}, v = {y, n}, du = {dx, n}, dv = {dy, n};
                  struct A a = {3, &u, &v}, da = {3, &du, &dv};""", "enzyme_dup, &a, &da"),
    "ends": ("struct V { T *begin, *end; };", "struct V *u, struct V *v",
             "T *x = u->begin, *y = v->begin; int n = u->end - x;",
             "struct V u = {x, x + n}, v = {y, y + n}, du = {dx, dx + n}, dv = {dy, dy + n};",
             "enzyme_dup, &u, &du, enzyme_dup, &v, &dv"),
    "if some": ("struct V { T *begin, *end; };", "struct V *u, struct V *v",
                "if (u->begin == u->end) return; T *x = u->begin, *y = v->begin; int n = v->end - y;",
                "struct V u = {x, x + n}, v = {y, y + n}, du = {dx, dx + n}, dv = {dy, dy + n};",
                "enzyme_dup, &u, &du, enzyme_dup, &v, &dv"),
    "by reference": ("", "T *x, T *y, const int *count", "\n#define n (*count)\n", "",
                     "enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, &n"),
    "written": ("struct A { double sum; T *x; int n; T *y; double last; };", "struct A *a",
                "T *x = a->x, *y = a->y; int n = a->n; a->sum = 2; a->last = a->sum;",
                "struct A a = {0, x, n, y, 1}, da = {0, dx, n, dy, 0};", "enzyme_dup, &a, &da"),
}  # fmt: skip


def source(kernels: dict[str, str], spelling: str) -> str:
    """A program with kernels in one spelling, gradients by flat arguments, and the kernels on complex numbers."""
    declared, parameters, before, passed, given = SPELLINGS[spelling]
    text = HEAD + declared + "\n"
    for name, body in kernels.items():
        text += f"""static void {name}({parameters}) {{ {before}
    {body} }}
#undef x
#undef y
#undef n
void d_{name}(T *x, T *dx, T *y, T *dy, int n) {{
    {passed}
    __enzyme_autodiff((void *){name}, {given});
}}
void t_{name}(T *x, T *dx, T *y, T *dy, int n) {{
    {passed}
    __enzyme_fwddiff((void *){name}, {given});
}}
"""
    return re.sub(r"\bT\b", "double", text) + exact_source(kernels)


PLAIN = {name: body for name, body in KERNELS.items() if name not in ("called", "swapped")}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_gradients_at_every_distance(spelling: str, tmp_path: Path) -> None:
    some = list(PLAIN)[list(SPELLINGS).index(spelling) % 2 :: 2]
    left_out = {("steps", "behind"), ("empty", "if some")}  # refused: memcpy; it writes where n is 0
    kernels = {name: PLAIN[name] for name in some if (name, spelling) not in left_out}
    made = compiled(source(kernels, spelling), tmp_path)
    places = [(x + 40, y + 40) for x, y in PLACES]
    for name, (x, y), n in itertools.product(kernels, places, (N, 3, 1, 0)):
        check(made, name, x, y, n)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_version_for_memory_apart(spelling: str, tmp_path: Path) -> None:
    for name in ("outer", "product", "neighbours"):
        (tmp_path / "a.c").write_text(source({name: PLAIN[name]}, spelling))
        text = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
        assert ".check(" in text and ".given(" in text, (name, spelling)


MATRIX = HEAD + """
typedef struct { double *at; int rows, columns; } M;
static double *in(const M *m, int i, int j) { return &m->at[i * m->columns + j]; }
static void by_rows(const M *a, const M *b, M *c) {
    for (int i = 0; i < c->rows; i++)
        for (int k = 0; k < a->columns; k++)
            for (int j = 0; j < c->columns; j++) *in(c, i, j) += *in(a, i, k) * *in(b, k, j);
}
static void by_cells(const M *a, const M *b, M *c) {
    for (int i = 0; i < c->rows; i++)
        for (int j = 0; j < c->columns; j++)
            for (int k = 0; k < a->columns; k++) *in(c, i, j) += *in(a, i, k) * *in(b, k, j);
}
#define GIVEN enzyme_dup, a, da, enzyme_dup, b, db, enzyme_dup, c, dc
void d_by_rows(M *a, M *da, M *b, M *db, M *c, M *dc) { __enzyme_autodiff((void *)by_rows, GIVEN); }
void d_by_cells(M *a, M *da, M *b, M *db, M *c, M *dc) { __enzyme_autodiff((void *)by_cells, GIVEN); }
"""


def product(memory: np.ndarray, places: tuple[int, int, int], sizes: tuple[int, int, int], *, rows: bool) -> None:
    """What the functions above do to memory, in their order."""
    (a, b, c), (m, inner, n) = places, sizes
    for i, q, r in itertools.product(range(m), range(inner if rows else n), range(n if rows else inner)):
        k, j = (q, r) if rows else (r, q)
        memory[c + i * n + j] += memory[a + i * inner + k] * memory[b + k * n + j]


@pytest.mark.parametrize("name", ["by_rows", "by_cells"])
def test_a_matrix_whose_width_is_read_within_a_loop(name: str, tmp_path: Path) -> None:
    """`i * m->columns + j`: how wide a matrix is stands behind a condition on another one."""
    (tmp_path / "a.c").write_text(MATRIX)
    text = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
    assert text.count(".given(") >= 4
    made, rng = getattr(compiled(MATRIX, tmp_path), f"d_{name}"), np.random.default_rng(5)
    for places in ((0, 20, 40), (0, 0, 40), (0, 20, 0), (5, 3, 0), (0, 20, 9), (30, 0, 31)):
        for sizes in ((3, 4, 2), (2, 1, 5), (4, 3, 4), (0, 3, 2), (2, 0, 3)):
            start, weight = rng.uniform(0.2, 0.9, 70), rng.normal(size=70)
            want = np.zeros(70)
            for n in range(70):
                memory = start + 1e-30j * (np.arange(70) == n)
                product(memory, places, sizes, rows=name == "by_rows")
                want[n] = (weight @ memory).imag / 1e-30
            memory, shadow = start.copy(), weight.copy()
            shapes = ((sizes[0], sizes[1]), (sizes[1], sizes[2]), (sizes[0], sizes[2]))
            rows = [np.array([whole.ctypes.data + 8 * at, shape[0] + (shape[1] << 32)])
                    for at, shape in zip(places, shapes, strict=True) for whole in (memory, shadow)]  # fmt: skip
            made(*(ctypes.c_void_p(row.ctypes.data) for row in rows))
            np.testing.assert_allclose(shadow, want, rtol=1e-9, atol=1e-12, err_msg=f"{places} {sizes}")


CHANGED = {
    "swapped": "for (int t = 0; t < a->n; t++) { double *r = a->x; a->x = a->y; a->y = r; KERNEL }",
    "shorter": "while (a->n > 1) { a->n = a->n - 1; KERNEL }",
}


@pytest.mark.parametrize("how", CHANGED)
def test_no_version_where_members_change(how: str, tmp_path: Path) -> None:
    """Pointers that change places, a count that is written."""
    kernel = "for (int i = 0; i < a->n; i++) for (int j = 0; j < a->n; j++) a->y[i] += a->x[i + j] * a->x[j];"
    (tmp_path / "a.c").write_text(HEAD + f"""struct A {{ int n; double *x; double *y; }};
static void f(struct A *a) {{ {CHANGED[how].replace("KERNEL", kernel)} }}
void d_f(struct A *a, struct A *da) {{ __enzyme_autodiff((void *)f, enzyme_dup, a, da); }}
""")
    text = program_text(["-O2", str(tmp_path / "a.c"), "-shared", "-o", str(tmp_path / "a.so")])
    assert ".given(" not in text


def test_the_bits_of_a_float_are_no_count(tmp_path: Path) -> None:
    """A float that is moved as an integer keeps its derivative."""
    made = compiled(HEAD + """struct A { long n; double *x; double *y; long bits; };
static void f(struct A *a) {
    long bits = a->bits; memcpy(a->y + 4, &bits, 8);
    for (int i = 0; i < a->n; i++) for (int j = 0; j < a->n; j++) a->y[i] += a->x[i + j] * a->x[j];
}
void d_f(struct A *a, struct A *da) { __enzyme_autodiff((void *)f, enzyme_dup, a, da); }
""", tmp_path)  # fmt: skip
    x, y, dx, dy = np.full(5, 0.5), np.ones(5), np.zeros(5), np.array([1.0, 0, 0, 0, 3])
    structs = [np.array([2, one.ctypes.data, two.ctypes.data, 0]) for one, two in ((x, y), (dx, dy))]
    structs[0][3:].view(np.float64)[:] = 0.25
    made.d_f(*(ctypes.c_void_p(row.ctypes.data) for row in structs))
    assert structs[1][3:].view(np.float64)[0] == 3 and dy[4] == 0 and y[4] == 0.25
    np.testing.assert_allclose(dx[:2], [2 * 0.5, 0.5 + 0.5])


LATE = HEAD + """
struct A { int n; int some; double *x; double *y; };
static void late(struct A *a) {
    if (a->n > 2) for (int i = 0; i < a->n; i++) for (int j = 0; j < a->some; j++) a->y[i] += a->x[j] * a->x[i];
}
void d_late(struct A *a, struct A *da) { __enzyme_autodiff((void *)late, enzyme_dup, a, da); }
"""


def test_no_member_is_read_that_the_function_does_not_read(tmp_path: Path) -> None:
    """A struct that ends where memory ends, behind the members that are read: reading on would end this process."""
    made = compiled(LATE, tmp_path)
    page, x, dx, y, dy = mmap.PAGESIZE, *(np.full(5, v) for v in (0.5, 0.0, 0.25, 1.0))
    held = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(held))
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert mprotect(address + page, page, 0) == 0
    for n, some, size in ((2, 5, 4), (0, 5, 4), (3, 0, 8), (5, 5, 24)):
        whole = np.zeros(3, np.int64), np.zeros(3, np.int64)
        for row, (one, two) in zip(whole, ((x, y), (dx, dy)), strict=True):
            row[:1].view(np.int32)[:] = n, some
            row[1:] = one.ctypes.data, two.ctypes.data
        for which in range(2):
            at = address + page - size
            ctypes.memmove(at, whole[which].ctypes.data, size)
            given = [ctypes.c_void_p(row.ctypes.data) for row in whole]
            given[which] = ctypes.c_void_p(at)
            if which == 0 or n > 2:
                made.d_late(*given)
    assert mprotect(address + page, page, 3) == 0
    assert dx.sum() > 0


@pytest.mark.parametrize("first", range(0, min(int(os.environ.get("IRGRAD_FUZZ", "10")), 60), 10))
def test_random_nests(first: int, tmp_path: Path) -> None:
    spelling = list(SPELLINGS)[first // 10 % len(SPELLINGS)]
    kernels = {f"f{seed}": random_kernel(np.random.default_rng(seed)) for seed in range(first, first + 10)}
    made = compiled(source(kernels, spelling), tmp_path)
    for name in kernels:
        rng = np.random.default_rng([first, int(name[1:])])
        for distance in (0, -70, 70, *rng.integers(-40, 40, 6)):
            check(made, name, 100, 100 + int(distance), N, size=280)
