"""A new function's derivative is one row in one file: nothing else names the function."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from demonstrations import new_function

import irgrad
from irgrad.engine import grad, hessian, jacfwd
from irgrad.engine.codegen.objects import write
from irgrad.rules import effects, lookup, table
from irgrad.rules.table import special

LIBRARY = """
#include <math.h>
double spence_of_test(double x) {
  double s = 0, h = x / 256;
  for (int i = 0; i < 256; i++) { double t = (i + 0.5) * h; s += log1p(t) / t; }
  return s * h;
}
"""
KERNEL = """
double spence_of_test(double);
double f(const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += x[i] * spence_of_test(x[i] * x[i]);
  return s;
}
"""
X = np.array([0.3, -1.2, 0.8])


def _forget() -> None:
    """The tables are made once per process: make them again."""
    for module in (table, lookup, effects):
        for name in vars(module):
            clear = getattr(getattr(module, name), "cache_clear", None)
            if clear is not None:
                clear()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own: what was derived with the row must not serve the test without it."""
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one row, in one of the files of the table."""
    monkeypatch.setattr(special.family, "rows", [*special.family.rows, *new_function.family.rows])
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _kernel(folder: Path) -> irgrad.Kernel:
    library = write(folder / "spence.so", irgrad.load(LIBRARY).text, ["spence_of_test"])
    return irgrad.load(KERNEL, link=[library]).kernel("f", "f64(f64[n] x, i64 n)")


def _slope(x: float) -> float:
    return math.log1p(x) / x


def test_without_the_row_the_call_is_refused(tmp_path: Path) -> None:
    with pytest.raises(irgrad.MissingRuleError, match="spence_of_test"):
        grad(_kernel(tmp_path))(X)


@pytest.mark.usefixtures("row")
def test_with_the_row_every_derivative_is_there(tmp_path: Path) -> None:
    kernel = _kernel(tmp_path)
    spence = [kernel(np.array([abs(x)])) / abs(x) for x in X]
    first = [value + 2 * x * x * _slope(x * x) for x, value in zip(X, spence, strict=True)]
    np.testing.assert_allclose(grad(kernel)(X), first, rtol=1e-12)
    np.testing.assert_allclose(jacfwd(kernel)(X), first, rtol=1e-12)
    # d/dx of 2 x^2 log(1 + x^2) / x^2 = 2 log(1 + x^2), and of the value's 2 x log(1 + x^2) / x^2
    second = [4 * x / (1 + x * x) + 2 * x * _slope(x * x) for x in X]
    np.testing.assert_allclose(hessian(kernel)(X), np.diag(second), rtol=1e-12)


@pytest.mark.usefixtures("row")
def test_what_else_is_asked_of_a_function_follows_from_the_row() -> None:
    assert effects.cost("spence_of_test") == effects.cost("sin")
    known = effects.facts("spence_of_testf")
    assert known is not None and known.kind == "pure" and not known.inactive
    assert lookup.find("spence_of_testl") is not None
