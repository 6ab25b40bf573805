"""Trip counts as formulas, and whether loops are entered."""

from __future__ import annotations

import pytest

from irgrad.engine import explain, grad
from irgrad.interop.loaders import load

LOOPS = [  # what stands between the parentheses of `for`, the iterations, arguments, how many there are
    ("long i = 0; i < n; i++", "n", 7, 7),
    ("long i = 2; i <= n; i++", "n - 1", 7, 6),
    ("long i = n - 1; i >= 0; i--", "n", 7, 7),
    ("long i = 0; i < n; i += 4", "ceil(n / 4)", 9, 3),
    ("long i = 0; i < 500; i++", "500", 9, 500),
    ("long i = 0; i < 2 * n + 1; i++", "max(2*n, 0) + 1", 9, 19),
    ("long i = 0; i < n / 2; i++", "(n // 2)", 9, 4),
    ("int i = 0; i < (int)n; i++", "n", 7, 7),
    ("unsigned i = 0; i < (unsigned)n; i++", "n", 7, 7),
]
INEXACT = ("long i = 0; i < n / 2; i++", "long i = 0; i < 2 * n + 1; i++")  # of whose guards nothing shows it


@pytest.mark.parametrize(("head", "text", "n", "iterations"), LOOPS)
def test_iterations(head: str, text: str, n: int, iterations: int) -> None:
    source = f"double sin(double);\ndouble f(double x, long n) {{ for ({head}) x = sin(x); return x; }}"
    found = explain(load(source).kernel("f", "f64(f64 x, i64 n)"), "grad", lanes=False)
    (loop,) = found.loops
    assert loop.iterations is not None
    assert loop.iterations.evaluate({"n": n}) == iterations
    assert loop.trips == text
    assert found.total.startswith("at most") == (head in INEXACT)


def test_a_number_in_memory_is_no_argument() -> None:
    source = """double sin(double);
    double f(double x, const long *n) { for (long i = 0; i < n[1]; i++) x = sin(x); return x; }"""
    found = explain(load(source).kernel("f", "f64(f64 x, i64[2] n)"), "grad", lanes=False)
    assert found.loops[0].trips == "not known before it runs"


@pytest.mark.parametrize("n", [5, 12])
def test_a_loop_behind_another_condition(n: int) -> None:
    source = """double sin(double);
    double f(double x, long n, long k) {
        for (long j = 0; j < k; j++) if (n > 9) for (long i = 0; i < n; i++) x = sin(x);
        return x;
    }"""
    kernel = load(source).kernel("f", "f64(f64 x, i64 n, i64 k)")
    gradient = grad(kernel)
    gradient(0.5, n, 3)
    found = explain(kernel, "grad", lanes=False)
    assert found.loops[-1].trips == "n"
    predicted = found.tape_bytes(n=n, k=3)
    assert predicted is not None
    assert gradient.tape_bytes == predicted or (found.total.startswith("at most") and gradient.tape_bytes < predicted)
