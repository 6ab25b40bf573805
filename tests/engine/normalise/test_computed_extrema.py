"""Running extrema of what loops compute: which loops have one, values to the bit, derivatives of the chosen item."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import make, module_of

import irgrad
from irgrad.engine.normalise.computed_extrema import repeat_extrema

STEPS = {
    "if": "if (v < m) m = v;",
    "if, the last of ties": "if (v <= m) m = v;",
    "the other way": "m = m > v ? v : m;",
    "fmin": "m = fmin(m, v);",
    "fmin, the other way": "m = fmin(v, m);",
}
KERNEL = """
void f(double *restrict x, double *restrict y, double *restrict n, double *restrict o) {{
    double m = {start};
    for (long i = {first}; i < (long)*n; i++) {{ double v = x[i] * x[i] + y[0] * x[i]; {step} }}
    *o = m * m;
}}"""
DATA = {
    "distinct": [3.0, -1.0, 7.0, 2.0, 5.0],
    "ties": [1.0, -2.0, -0.5, -0.5, 4.0],
    "the first": [-1.25, 1.0, 2.0, 3.0, 4.0],
    "the last": [9.0, 1.0, 2.0, 3.0, -1.0],
    "nan": [1.0, np.nan, -1.0, np.nan, 2.0],
    "all nan": [np.nan] * 5,
    "infinite": [-np.inf, 2.0, np.inf, 1.0, np.inf],
}


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
@pytest.mark.parametrize(("start", "first"), [("INFINITY", 0), ("y[0]", 1), ("-1e9", 0)])
def test_derivatives(step: str, start: str, first: int) -> None:
    """Against a walk through the chain in Python, which tells the item that each choice takes."""
    source = KERNEL.format(step=step, start=start, first=first)
    module = module_of(source, "f")
    assert repeat_extrema(module.functions["f"]) == 1
    reverse = make(source, "f", "reverse", ["dup", "dup", "const", "dup"])
    forward = make(source, "f", "forward", ["dup", "dup", "const", "dup"])
    for name, data in DATA.items():
        x, y, n = np.array(data), np.array([2.5]), np.array([5.0])
        with np.errstate(invalid="ignore"):
            items = x * x + y[0] * x
        m, chosen = _walk(step, items, {"INFINITY": np.inf, "y[0]": y[0], "-1e9": -1e9}[start], first)
        dx, dy = np.zeros(5), np.zeros(1)
        if chosen >= 0:
            dx[chosen], dy[0] = 2 * m * (2 * x[chosen] + y[0]), 2 * m * x[chosen]
        elif start == "y[0]":
            dy[0] = 2 * m
        o, got_x, got_y = np.zeros(1), np.zeros(5), np.zeros(1)
        reverse(x, got_x, y, got_y, n, o, np.ones(1))
        assert np.array_equal(o, [m * m], equal_nan=True), name
        if np.isfinite(x).all():
            assert np.allclose(got_x, dx) and np.allclose(got_y, dy), name
            tx, ty = np.arange(1.0, 6.0), np.array([0.5])
            tangent = np.zeros(1)
            forward(x, tx, y, ty, n, np.zeros(1), tangent)
            assert np.allclose(tangent, np.dot(dx, tx) + dy[0] * ty[0]), name


def _walk(step: str, items: np.ndarray, start: float, first: int) -> tuple[float, int]:
    """The value that the chain ends with, and the number of its item, -1 for the start."""
    m, chosen = start, -1
    for i in range(first, len(items)):
        v = items[i]
        smaller = np.fmin(m, v)
        ways = {"fmin(m": smaller != m, "fmin(v": smaller == v, "<=": v <= m}
        take = next((way for word, way in ways.items() if word in step), v < m)
        if take:
            m, chosen = v, i
    return m, chosen


APPLIES = {
    "a maximum": "double m = -1; for (long i = 0; i < *n; i++) { double v = x[i] * x[i]; if (v > m) m = v; } "
                 "*o = m;",
    "two of them": "double m = 9, k = 0; for (long i = 0; i < *n; i++) { double v = x[i] * y[i], w = x[i] + y[2 * i]; "
                   "if (v < m) m = v; if (w > k) k = w; } *o = m * k;",
    "with its number": "double m = 9; long k = 0; for (long i = 0; i < *n; i++) { double v = x[i] * x[i]; "
                       "if (v < m) { m = v; k = i; } } *o = m; x[k] = 3;",
    "a pointer that walks": "double m = 9; for (double *p = x; p != x + (long)*n; p++) m = fmin(m, *p * *p); *o = m;",
    "rows": "for (long j = 0; j < *n; j++) { double m = 1e9; for (long i = 0; i < *n; i++) "
            "m = fmin(m, x[9 * j + i] * x[9 * i + j]); x[9 * j + 8] = m; }",
}  # fmt: skip
DOES_NOT = {
    "loaded": "double m = -1; for (long i = 0; i < *n; i++) if (x[i] > m) m = x[i]; *o = m;",
    "written": "double m = 9; for (long i = 0; i < *n; i++) { m = fmin(m, x[i] * x[i]); x[i] = 2; } *o = m;",
    "a sum beside": "double m = 9, s = 0; for (long i = 0; i < *n; i++) { double v = x[i] * x[i]; m = fmin(m, v); "
                    "s += v; } *o = m * s;",
    "of a recurrence": "double m = 9, h = 1; for (long i = 0; i < *n; i++) { h = 0.5 * h + x[i]; m = fmin(m, h); } "
                       "*o = m;",
    "other bits": "double m = 9; for (long i = 0; i < *n; i++) { m = fmin(m, exp(x[i])); } *o = m;",
    "on a condition": "double m = 9; for (long i = 0; i < *n; i++) { if (y[i] > 0) { double v = x[(long)y[i]] * 2; "
                      "if (v < m) m = v; } } *o = m;",
}  # fmt: skip


def _count(body: str) -> int:
    parameters = ", ".join(f"double *restrict {name}" for name in "xyno")
    return repeat_extrema(module_of(f"void f({parameters}) {{ {body} }}", "f").functions["f"])


@pytest.mark.parametrize(("name", "body"), APPLIES.items(), ids=list(APPLIES))
def test_loops_with_a_computed_extremum(name: str, body: str) -> None:
    assert _count(body) == (2 if "two" in name else 1)


@pytest.mark.parametrize("body", DOES_NOT.values(), ids=list(DOES_NOT))
def test_loops_without(body: str) -> None:
    assert _count(body) == 0


def test_no_choice_is_taped() -> None:
    source = "void f(double *restrict x, double *restrict n, double *restrict o) {{ {} *o = m * m; }}"
    chain = "double m = 1e9; for (long i = 0; i < (long)*n; i++) m = fmin(m, x[i] * (x[i] - 0.5));"
    made = make(source.format(chain), "f", "reverse", ["dup", "const", "dup"])
    x = np.random.default_rng(1).normal(size=1000)
    dx, o = np.zeros(1000), np.zeros(1)
    made(x, dx, np.array([1000.0]), o, np.ones(1))
    items = x * (x - 0.5)
    i = np.argmin(items)
    assert np.count_nonzero(dx) == 1 and np.allclose(dx[i], 2 * items[i] * (2 * x[i] - 0.5))
    assert made.tape_bytes() == 0


NEAREST = """#include <math.h>
double f(const double *c, const double *x, long n, long k, long d) {{
    double cost = 0;
    for (long p = 0; p < n; p++) {{
        double m = {start};
        for (long j = 0; j < k; j++) {{
            double v = 0;
            {item}
            {step}
        }}
        cost += {behind};
    }}
    return cost;
}}"""
ITEMS = {
    "a sum": "for (long i = 0; i < d; i++) v += (x[p * d + i] - c[j * d + i]) * (x[p * d + i] - c[j * d + i]);",
    "down": "for (long i = d; i-- > 0;) v += fabs(x[p * d + i] - c[j * d + i]) * c[j * d];",
    "a root": "for (long i = 0; i < d; i++) v += x[p * d + i] * c[j * d + i] * c[j * d + i]; v = sqrt(v * v + 0.1);",
    "two loops": "double w = 1; for (long i = 0; i < d; i++) v += x[p * d + i] * c[j * d + i]; "
                 "for (long i = 0; i < d; i++) w *= 1 + 0.1 * c[j * d + i] * v; v = w - v;",
    "a nest": "for (long i = 0; i < d; i++) for (long l = 0; l <= i; l++) "
              "v += x[p * d + i] * c[j * d + l] * c[j * d + i];",
    "a choice": "for (long i = 0; i < d; i++) "
                "{ if (c[j * d + i] > x[p * d + i]) v += c[j * d + i]; else v -= x[p * d]; }",
    "until": "for (long i = 0; i < d && v < 1.5; i++) v += c[j * d + i] * c[j * d + i] * x[p * d + i];",
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_items_with_loops(item: str, step: str) -> None:
    """Values to the bit, both modes against central differences."""
    starts = (("INFINITY", "isinf(m) ? 0 : m * m"), ("2.5", "m"), ("x[p]", "m * x[p]"))
    start, behind = starts[len(item + step) % 3]
    source = NEAREST.format(start=start, item=item, step=step, behind=behind)
    kernel = irgrad.load(source).kernel("f", "f64(f64[k,d] c, f64[n,d] x, i64 n, i64 k, i64 d)")
    for n, k, d in ((5, 4, 3), (3, 1, 2), (4, 3, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0)):
        if start == "x[p]" and not d:
            continue
        rng = np.random.default_rng(10 * n + k)
        c, x = rng.uniform(0.3, 1.5, (k, d)), rng.uniform(0.3, 1.5, (n, d))
        v = rng.normal(size=c.shape)
        value, gradient = irgrad.value_and_grad(kernel, wrt="c")(c, x)
        assert value == kernel(c, x)
        slope = (kernel(c + 1e-6 * v, x) - kernel(c - 1e-6 * v, x)) / 2e-6
        assert np.isclose(np.sum(gradient * v), slope, rtol=1e-6, atol=1e-7), (n, k, d)
        tangent = irgrad.jvp(kernel, (c, x), (v, None))[1]
        assert np.isclose(tangent, slope, rtol=1e-6, atol=1e-7), (n, k, d)


@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_loops_with_such_items(item: str) -> None:
    source = NEAREST.format(start="INFINITY", item=item, step="if (v < m) m = v;", behind="m")
    assert repeat_extrema(module_of(source, "f").functions["f"]) == 1


def test_an_item_that_hangs_on_the_extremum() -> None:
    item = "for (long i = 0; i < d && v < m; i++) v += c[j * d + i] * c[j * d + i];"
    source = NEAREST.format(start="INFINITY", item=item, step="if (v < m) m = v;", behind="m")
    assert repeat_extrema(module_of(source, "f").functions["f"]) == 0
