"""The primal sweep of reverse mode: the primal's results, shadows of pointers, nothing else."""

from __future__ import annotations

import numpy as np
from handwritten.made import OUT, gradient, make

SWAPPED = """
void f(double *x, double *w, long *n, double *o) {
    double *a = x, *b = w;
    for (long i = 0; i < *n; i++) {
        for (int j = 1; j < 7; j++) b[j] = a[j] + 0.1 * a[j - 1] * a[j + 1];
        b[0] = a[0]; b[7] = a[7];
        double *t = a; a = b; b = t;
    }
    double s = 0;
    for (int j = 0; j < 8; j++) s += a[j] * a[j];
    *o = s;
}"""


def test_the_values_are_those_of_the_primal() -> None:
    made = make(SWAPPED, "f", "reverse", ["dup", "dup", "const", "dup"])
    x, w, o = np.linspace(-1, 1, 8), np.zeros(8), np.zeros(1)
    buffers = [x.copy(), np.zeros(8), w.copy(), np.zeros(8), np.array([5]), o, np.ones(1)]
    made(*buffers)
    a, b = x.copy(), w.copy()
    for _ in range(5):
        b[1:7] = a[1:7] + 0.1 * a[0:6] * a[2:8]
        b[0], b[7] = a[0], a[7]
        a, b = b, a
    np.testing.assert_allclose(o[0], a @ a, rtol=1e-15)
    np.testing.assert_allclose(buffers[2], a, rtol=1e-15)  # after five swaps the last state lies in w


def test_pointers_that_are_swapped_swap_their_shadows() -> None:
    x = np.linspace(-1, 1, 8)

    def f(z: np.ndarray) -> complex:
        a = z.copy()
        for _ in range(4):
            b = a.copy()
            b[1:7] = a[1:7] + 0.1 * a[0:6] * a[2:8]
            a = b
        return complex((a * a).sum())

    (dx, dw, _), _made = gradient(SWAPPED, "f", "ddcd", x, np.zeros(8), np.array([4]), OUT)
    np.testing.assert_allclose(dx, [f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(8)], rtol=1e-13, atol=1e-15)
    assert not dw.any()


def test_memory_freed_by_the_primal_lives_until_the_reverse_sweep() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) {
            double *t = malloc((i + 1) * sizeof(double));
            for (long j = 0; j <= i; j++) t[j] = x[j] * x[i];
            for (long j = 0; j <= i; j++) s += t[j] * t[i - j];
            free(t);
        }
        *o = s;
    }"""
    x = np.linspace(0.5, 1.5, 9)

    def f(z: np.ndarray) -> complex:
        s = 0j
        for i in range(9):
            t = z[: i + 1] * z[i]
            s += (t * t[::-1]).sum()
        return complex(s)

    (dx, _), _made = gradient(source, "f", "dcd", x, np.array([9]), OUT)
    np.testing.assert_allclose(dx, [f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(9)], rtol=1e-13)


def test_a_list_on_the_heap_has_a_list_of_shadows() -> None:
    source = """
    struct Node { double v; struct Node *next; };
    void f(double *x, long *n, double *o) {
        struct Node *head = 0;
        for (long i = 0; i < *n; i++) {
            struct Node *new = malloc(sizeof *new);
            new->v = x[i] * x[i]; new->next = head; head = new;
        }
        double s = 0, k = 1;
        for (struct Node *p = head; p; p = p->next) { s += k * p->v; k = k + 1; }
        while (head) { struct Node *p = head; head = p->next; free(p); }
        *o = s;
    }"""
    x = np.linspace(0.5, 1.5, 7)
    (dx, _), _made = gradient(source, "f", "dcd", x, np.array([7]), OUT)
    np.testing.assert_allclose(dx, 2 * x * np.arange(7, 0, -1), rtol=1e-15)


def test_calls_that_only_print_stay() -> None:
    source = """
    int puts(const char *);
    void f(double *x, double *o) { if (x[0] < 0) puts("negative"); *o = x[0] * x[0]; }"""
    (dx, _), made = gradient(source, "f", "dd", np.array([3.0]), OUT)
    assert dx.tolist() == [6.0]
    assert len([c for c in made.calls("puts") if c.block is not None and c.block.function is made.function]) == 1
