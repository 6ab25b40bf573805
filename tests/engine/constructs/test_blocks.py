"""Folds, scans and histograms in blocks: what they are in order, with the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import irgrad as ig
from irgrad.rules.errors import IRGradError

SOURCE = r"""
#include <math.h>
double add(double a, double b) { return a + b; }
double largest(double a, double b) { return a > b ? a : b; }
double logsum(double a, double b) { double m = a > b ? a : b; return m + log(exp(a - m) + exp(b - m)); }
void linear(double a, double b, double c, double d, double *e, double *f) { *e = a * c; *f = b * c + d; }
void matrices(const double *a, const double *b, double *c) {
  for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) c[2*i+j] = a[2*i] * b[j] + a[2*i+1] * b[2+j];
}
"""
SIGNATURES = {
    "linear": "void(f64 a, f64 b, f64 c, f64 d, out f64 e, out f64 f)",
    "matrices": "void(f64[2,2] a, f64[2,2] b, out f64[2,2] c)",
}
NEUTRAL: dict[str, Any] = {
    "add": 0.0, "largest": -np.inf, "logsum": -np.inf, "linear": (1.0, 0.0), "matrices": np.eye(2)
}  # fmt: skip
FORMS: dict[str, Callable[..., Any]] = {
    "reduce": lambda op, neutral, **how: ig.parallel.reduce(op, neutral, **how),
    "scan": lambda op, neutral, **how: ig.parallel.scan(op, **how),
    "scan from the end": lambda op, neutral, **how: ig.parallel.scan(op, reverse=True, **how),
    "histogram": lambda op, neutral, **how: ig.parallel.histogram(op, neutral, 37, **how),
}
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def lib() -> Any:
    return ig.load(SOURCE)


def _data(name: str, n: int) -> list[np.ndarray]:
    if name == "linear":
        return [RNG.uniform(0.9, 1.05, n), RNG.normal(size=n)]
    return [np.eye(2) + 0.02 * RNG.normal(size=(n, 2, 2))] if name == "matrices" else [RNG.normal(size=n)]


def _rows(value: Any) -> list[np.ndarray]:
    return [np.asarray(row) for row in (value if isinstance(value, tuple | list) else [value])]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["logsum", "linear", *(
    pytest.param(n, marks=pytest.mark.long) for n in ("add", "largest", "matrices"))])  # fmt: skip
def test_blocks_give_what_one_fold_gives(lib: Any, name: str, form: str) -> None:
    op = lib.kernel(name, SIGNATURES.get(name))
    whole, *shared = (FORMS[form](op, NEUTRAL[name], **how) for how in ({}, {"threads": 1}, {"threads": 2}))
    for n in (0, 1, 1025, 70001):
        x = _data(name, n)
        at = (RNG.integers(-1, 39, n),) if form == "histogram" else ()
        values = [_rows(f(*at, *x)) for f in (whole, *shared)]
        tangents = [RNG.normal(size=row.shape) for row in values[0]]
        single = not isinstance(whole(*at, *x), tuple | list)
        cotangent = tangents[0] if single else tuple(tangents)
        gradients = [_rows(ig.vjp(f, *at, *x)[1](cotangent)) for f in (whole, *shared)]
        for want, one, two in (*zip(*values, strict=True), *zip(*gradients, strict=True)):
            finite = np.abs(want[np.isfinite(want)])
            np.testing.assert_allclose(one, want, rtol=1e-9, atol=1e-9 * max(1.0, finite.max(initial=0.0)))
            np.testing.assert_array_equal(one, two)
        if not at:
            direction = [RNG.normal(size=row.shape) for row in x]
            moved = [_rows(ig.engine.jvp(f, tuple(x), tuple(direction))[1]) for f in shared]
            pushed = sum(np.sum(a * b) for a, b in zip(moved[0], tangents, strict=True))
            pulled = sum(np.sum(a * b) for a, b in zip(gradients[1], direction, strict=True))
            np.testing.assert_allclose(pushed, pulled, rtol=1e-8, atol=1e-8)
            assert all(np.array_equal(a, b) for a, b in zip(*moved, strict=True))


def test_a_team_shares_the_blocks(lib: Any) -> None:
    for form in FORMS.values():
        assert "threads: shared by a team" in str(ig.explain(form(lib.kernel("logsum"), -np.inf, threads=2)))


def test_under_jax(lib: Any) -> None:
    total = ig.parallel.reduce(lib.kernel("logsum"), -np.inf, threads=2)
    x = RNG.normal(size=5000)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(jax.grad(total))(x), np.exp(x - total(x)), rtol=1e-12)


def test_what_is_no_number_of_threads(lib: Any) -> None:
    with pytest.raises(IRGradError, match="threads=0 is no number of threads"):
        ig.parallel.scan(lib.kernel("add"), threads=0)
