"""Unsigned subscripts: derivatives where they wrap and where they do not; which loops have a version."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import module_of

import irgrad
from irgrad.engine.ir.printer import to_text
from irgrad.engine.normalise.loop_versions import version_loops

M = 1 << 32

BODIES = {
    # what the subscripts are, and values of (n, a, s) for which they stay within 64 numbers, some of them by wrapping
    "a stride": ("for (U i = 0; i < n; i++) e += X(a + i * s) * X(a + i * s);",
                 [(7, 1, 3), (7, 40, M - 1), (7, 40, M - 5), (1, 60, 17), (0, 3, M - 1), (9, 2, 0)]),
    "pairs": ("for (U i = 0; i < n; i++) for (U j = 0; j < i; j++) "
              "e += X(i * s + a) * X(j * s + a + 1) - X(i * s + a + 2) * X(j * s + a);",
              [(7, 0, 3), (9, 50, M - 3), (9, 5, 1), (3, 1, 7), (1, 3, 3), (0, M - 1, 3), (4, 10, M - 1)]),
    "stencil": ("for (U i = 1; i < n - 1; i++) for (U j = 1; j < s - 1; j++) "
                "e += X((i - 1) * s + j) * X((i + 1) * s + j - 1) + X(i * s + j) * X(i * s + j + 1);",
                [(5, 0, 6), (3, 0, 3), (2, 0, 9), (8, 0, 2), (1, 0, 1)]),
    "from the end": ("for (U i = 0; i < n; i++) e += X(n - 1 - i) * X(n - i - a) * X(i << 1);",
                     [(9, 1, 0), (30, 1, 0), (1, 1, 0), (0, 0, 0)]),
    "by two": ("for (U i = a; i < n; i += 2) e += X(i - 1) * X(2 * i - s) * X(i + s);",
               [(9, 1, 2), (30, 3, 6), (8, 2, 4), (3, 1, 2), (1, 1, 0)]),
    "triangles": ("for (U i = 0; i < n; i++) for (U j = i; j < n; j++) "
                  "e += X(i * s + j) * X(j - i) + X(i * (i + 1) / 2 + a);",
                  [(6, 0, 6), (6, 3, 9), (1, 0, 1), (6, M - 0, 2)]),
    "tested before the step": ("U i = a; if (n) do { e += X(i * s) * X(i * s + 1); } while (i++ < n);",
                               [(9, 0, 3), (9, 5, 2), (20, 3, 2), (3, 7, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("word", ["u32", "u16"])
@pytest.mark.parametrize("name", BODIES)
def test_derivatives_whether_they_wrap_or_not(name: str, word: str) -> None:
    body, numbers = BODIES[name]
    kind, most = {"u32": ("unsigned", M), "u16": ("unsigned short", 1 << 16)}[word]
    head = f"#define X(i) p[(U)(i)]\ntypedef {kind} U;\ndouble f(const double *restrict p, U n, U a, U s)"
    library = irgrad.load(f"{head} {{ double e = 0; {body} return e; }}")
    kernel = library.kernel("f", f"f64(f64[m] p, {word} n, {word} a, {word} s)")
    rng = np.random.default_rng(2)
    for row in numbers:
        n, a, s = (x % most for x in row)
        p, v = rng.uniform(0.5, 2.0, 64), rng.normal(size=64)
        value, gradient = irgrad.value_and_grad(kernel, wrt="p")(p, n, a, s)
        assert value == kernel(p, n, a, s)
        slope = (kernel(p + 1e-6 * v, n, a, s) - kernel(p - 1e-6 * v, n, a, s)) / 2e-6
        assert np.isclose(gradient @ v, slope, rtol=1e-6, atol=1e-7), row
        assert np.isclose(irgrad.jvp(kernel, (p, n, a, s), (v, None, None, None))[1], slope, rtol=1e-6, atol=1e-7), row


def _versions(body: str) -> int:
    source = f"double f(const double *p, unsigned n, unsigned s) {{ double e = 0; {body} return e; }}"
    module = module_of(source, "f")
    found = version_loops(module.functions["f"])
    assert found == 0 or " nuw nsw i64 " in to_text(module)
    return found


OTHERS = {
    "no subscript wraps": "for (unsigned i = 0; i < n; i++) e += p[i];",
    "a number that the loop computes": "unsigned k = s; "
                                       " for (unsigned i = 0; i < n; i++) { k = k * k + 1; e += p[k * s]; }",
    "a counter without an end that is known": "for (unsigned i = 0; e < 3; i++) e += p[i * s];",
    "a choice": "for (unsigned i = 0; i < n; i++) e += p[(e > 1 ? i : s) * s];",
    "no numbers": "unsigned *q = (unsigned *)p; for (unsigned i = 0; i < n; i++) q[i * s] = i;",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=list(OTHERS))
def test_loops_without(body: str) -> None:
    assert _versions(body) == 0


def test_loops_with() -> None:
    assert _versions("for (unsigned i = 0; i < n; i++) e += p[i * s];") == 1
    assert _versions("for (unsigned i = 1; i < n; i++) e += p[i * s - 1] * p[(i - 1) * n + s];") == 1
