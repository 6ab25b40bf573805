"""Subscripts that may wrap, and remainders: derivatives where they wrap and where they do not; which loops have a
version."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

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
    "a remainder of what has nothing to do with it": "for (unsigned long i = 0; i < n; i++) e += p[(i + 7) % s];",
    "a remainder by a constant of what is not": "for (unsigned long i = 0; i < n; i++) e += p[(i * 5 + s) % 3];",
    "no numbers": "unsigned *q = (unsigned *)p; for (unsigned i = 0; i < n; i++) q[i * s] = i;",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=list(OTHERS))
def test_loops_without(body: str) -> None:
    assert _versions(body) == 0


def test_loops_with() -> None:
    assert _versions("for (int i = 0; i < (int)n; i++) e += p[(i + (int)n - 1) % (int)n];") == 1
    assert _versions("for (unsigned long i = 0; i < n; i++) e += p[(i + n - 1) % n] * p[(i + 1) % n];") == 1
    assert _versions("for (unsigned i = 0; i < n; i++) e += p[i * s];") == 1
    assert _versions("for (unsigned i = 1; i < n; i++) e += p[i * s - 1] * p[(i - 1) * n + s];") == 1


KINDS = {"int": "i32", "long": "i64", "unsigned": "u32", "unsigned long": "u64"}
SIZES = [(9, 4, 30), (1, 1, 2), (2, 9, 7), (12, 3, 3), (5, 5, 61), (0, 4, 3)]


class Remainders:
    """Sums of products at subscripts with remainders, at random: as C, and as Python over the integers."""

    def __init__(self, seed: int) -> None:
        self.r = r = random.Random(seed)
        self.kind = r.choice(list(KINDS))
        self.heads = [r.choice([("0", "n"), ("0", "n"), ("1", "n"), ("0", "m"), ("1", "n - 1")]) for _ in range(2)]
        self.nest = r.random() < 0.5
        self.rows = [(self._subscript(), self._subscript()) for _ in range(r.randint(1, 3))]
        loops = [f"for ({self.kind} {c} = {a}; {c} < {b}; {c}++)" for c, (a, b) in self._loops()]
        sums = " ".join(f"e += p[{a}] * p[{b}];" for a, b in self.rows)
        self.c = (f"double f{seed}(const double *p, {self.kind} n, {self.kind} m, {self.kind} k)"
                  f"{{ double e = 0; if (n > 0) {' '.join(loops)} {{ {sums} }} return e; }}")  # fmt: skip

    def _loops(self) -> list[tuple[str, tuple[str, str]]]:
        return list(zip("ij", self.heads, strict=True)) if self.nest else [("i", self.heads[0])]

    def _remainder(self) -> str:
        r, counter = self.r, self.r.choice("ij") if self.nest else "i"
        by = r.choice(["n", "n", "n", "m", "(n + 1)", "5"])
        over = r.choice([f"{counter} + {by} - 1", f"{counter} + 1", f"{counter} + k", f"k - 1 + {counter}",
                         f"2 * {counter}", f"{counter} + {by} + m", counter, f"{by} - 1 + {counter}", "k"])  # fmt: skip
        return f"(({over}) % {by})"

    def _subscript(self) -> str:
        plain = self.r.choice("ij") if self.nest else "i"
        return self.r.choice([self._remainder(), self._remainder(), f"{plain} * n + {self._remainder()}", plain,
                              f"{self._remainder()} * n + {self._remainder()}"])  # fmt: skip

    def told(self, p: Any, n: int, m: int, k: int) -> tuple[float, Any]:
        value, gradient = 0.0, np.zeros_like(p)
        (a, b), (c, d) = (tuple(eval(end, {"n": n, "m": m}) for end in head) for head in self.heads)
        for i in range(a, b) if n > 0 else ():
            for j in range(c, d) if self.nest else (0,):
                for one, other in self.rows:
                    s, t = (eval(text, {"n": n, "m": m, "k": k, "i": i, "j": j}) for text in (one, other))
                    value += p[s] * p[t]
                    gradient[s] += p[t]
                    gradient[t] += p[s]
        return value, gradient


def wrong(seeds: range) -> list[str]:
    """What is wrong with the kernels of some seeds, a line each."""
    kernels = {seed: Remainders(seed) for seed in seeds}
    library, rng = irgrad.load("\n".join(one.c for one in kernels.values()), language="c"), np.random.default_rng(3)
    found = []
    for seed, one in kernels.items():
        kind = KINDS[one.kind]
        kernel = library.kernel(f"f{seed}", f"f64(f64[l] p, {kind} n, {kind} m, {kind} k)")
        run: Callable[..., Any] = irgrad.value_and_grad(kernel, wrt="p")
        for sizes in SIZES:
            p = rng.uniform(0.5, 2.0, 400)
            for name, got, right in zip(("value", "gradient"), run(p, *sizes), one.told(p, *sizes), strict=True):
                if not np.allclose(got, right, rtol=1e-10):
                    found.append(f"{seed} {sizes} {name}: {one.c}")
    return found


@pytest.mark.parametrize("first", range(0, min(int(os.environ.get("IRGRAD_FUZZ", "20")), 100), 10))
def test_random_remainders(first: int) -> None:
    assert not wrong(range(first, first + 10))


def test_remainders_near_the_largest_numbers() -> None:
    """Where n + n - 1 is no `int`, unsigned numbers wrap as C says; where it is one, the version holds."""
    source = """double f(const double *p, unsigned low, unsigned n, unsigned a) {
        double e = 0;
        for (unsigned i = low; i < n; i++) e += p[(i + n - 1) % n % a] * p[(i + 1) % n % a];
        return e; }"""
    kernel = irgrad.load(source).kernel("f", "f64(f64[l] p, u32 low, u32 n, u32 a)")
    p = np.random.default_rng(0).uniform(0.5, 2.0, 64)
    for n in (2**30, 2**30 + 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1):
        want, value = np.zeros(64), 0.0
        for i in range(n - 3, n):
            s, t = (i + n - 1) % 2**32 % n % 64, (i + 1) % 2**32 % n % 64
            value += p[s] * p[t]
            want[s] += p[t]
            want[t] += p[s]
        got, gradient = irgrad.value_and_grad(kernel, wrt="p")(p, n - 3, n, 64)
        assert np.isclose(got, value) and np.allclose(gradient, want), n
