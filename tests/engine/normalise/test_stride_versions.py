"""Nests with rows of a few numbers at a stride of run time: which have a version, derivatives for any stride."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import module_of

import irgrad
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.normalise.loop_versions import version_loops

HEAD = "#include <math.h>\n"
PAIRS = """
double f(const double *restrict p, long n, {kind} s) {{
    double e = 0;
    for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) {{
        double dx = p[i * s] - p[j * s], dy = p[i * s + 1] - p[j * s + 1], dz = p[i * s + 2] - p[j * s + 2];
        e += 1 / sqrt(dx * dx + dy * dy + dz * dz + 0.1);
    }}
    return e;
}}"""
WALKED = """
double f(const double *restrict p, long n, {kind} s) {{
    double e = 0;
    if (s < 1) return e;
    const double *end = p + n * s;
    for (const double *a = p; a != end; a += s) for (const double *b = p; b != a; b += s)
        e += 1 / (0.1 + (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]));
    return e;
}}"""
MOVED = """
double f(const double *restrict p, long n, {kind} s) {{
    double q[400], e = 0;
    for (int t = 0; t < 3; t++)
        for (long i = 0; i < n; i++) {{
            q[i * s] = p[i * s + 1] * p[i * s], q[i * s + 1] = sin(p[i * s] + t);
            e += q[i * s] * q[i * s + 1];
        }}
    return e;
}}"""


@pytest.mark.parametrize("kind", ["long", "int", "unsigned"])
@pytest.mark.parametrize("source", [PAIRS, MOVED, WALKED], ids=["pairs", "moved", "walked"])
def test_derivatives_for_any_stride(source: str, kind: str) -> None:
    code = HEAD + source.format(kind=kind)
    words = {"long": "i64", "int": "i32", "unsigned": "u32"}
    kernel = irgrad.load(code).kernel("f", f"f64(f64[m] p, i64 n, {words[kind]} s)")
    rng = np.random.default_rng(1)
    for n, s in [(9, 3), (9, 2), (9, 5), (6, 1), (6, 0), (1, 3), (0, 3)]:
        p, v = rng.uniform(0.5, 2.0, 60), rng.normal(size=60)
        value, gradient = irgrad.value_and_grad(kernel, wrt="p")(p, n, s)
        assert value == kernel(p, n, s)
        step = 1e-6
        slope = (kernel(p + step * v, n, s) - kernel(p - step * v, n, s)) / (2 * step)
        assert np.isclose(gradient @ v, slope, rtol=1e-6, atol=1e-7), (n, s)
        assert np.isclose(irgrad.jvp(kernel, (p, n, s), (v, None, None))[1], slope, rtol=1e-6, atol=1e-7), (n, s)


def _loops(source: str) -> tuple[int, int]:
    fn = module_of(source, "f").functions["f"]
    return version_loops(fn), len(get(Loops, fn).top)


@pytest.mark.parametrize("kind", ["long", "int"])
def test_nests_with_a_version(kind: str) -> None:
    assert _loops(PAIRS.format(kind=kind)) == (1, 2)
    assert _loops(WALKED.format(kind=kind)) == (1, 2)


OTHERS = {
    "a constant stride": "for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) e += p[3 * i] * p[3 * j + 1];",
    "one number a row": "for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) e += p[i * s] * p[j * s];",
    "two strides": "for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) e += p[i * s] * p[j * n + 1];",
    "rows that a loop runs through": "for (long i = 0; i < n; i++) for (long j = 1; j < s; j++) "
                                     "e += p[i * s + j] * p[i * s + j - 1];",
    "no nest": "for (long i = 0; i < n; i++) e += p[i * s] * p[i * s + 1];",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=list(OTHERS))
def test_nests_without(body: str) -> None:
    assert _loops(f"double f(const double *p, long n, long s) {{ double e = 0; {body} return e; }}")[0] == 0
