"""Every adjoint in memory grows in one function: another way of adding is a change of that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, gradient

from irgrad.engine.differentiate.reverse import adjoints, neighbours
from irgrad.engine.differentiate.shadow.accumulate import accumulate
from irgrad.engine.differentiate.tape import state

SOURCE = """
void f(double *x, double *w, long *n, double *o) {
    double s = 0;
    for (long i = 1; i + 1 < *n; i++) {
        double mid = w[i];
        if (mid > 0) s += mid * x[i] * x[i];
        s += x[i - 1] * x[i] - 0.5 * x[i + 1] * x[i];
    }
    *o = s;
}"""
STENCIL = """
void f(double *x, double *w, long *n, double *o) {
    double s = 0;
    for (long i = 1; i < *n - 1; i++) s += w[0] * x[i - 1] * x[i - 1] + w[1] * x[i + 1] * x[i + 1];
    *o = s;
}"""
X, W, N = np.linspace(0.5, 1.5, 9), np.cos(np.arange(9.0)), np.array([9])


def _gradient(source: str = SOURCE) -> list[np.ndarray[Any, Any]]:
    (dx, dw, *_), _ = gradient(source, "f", "ddcd", X, W, N, OUT)
    return [dx, dw]


def _wanted() -> list[np.ndarray[Any, Any]]:
    def value(x: Any, w: Any) -> complex:
        s = 0j
        for i in range(1, 8):
            s += w[i] * x[i] * x[i] if w[i].real > 0 else 0
            s += x[i - 1] * x[i] - 0.5 * x[i + 1] * x[i]
        return s

    found = []
    for which in (0, 1):
        rows = []
        for i in range(9):
            point = [X.astype(complex), W.astype(complex)]
            point[which][i] += 1e-30j
            rows.append(value(*point).imag / 1e-30)
        found.append(np.array(rows))
    return found


def test_the_gradient_is_right() -> None:
    for got, want in zip(_gradient(), _wanted(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("module", "source"), [(adjoints, SOURCE), (neighbours, STENCIL)])
def test_shadow_memory_and_windows_come_through_it(
    monkeypatch: pytest.MonkeyPatch, module: Any, source: str
) -> None:
    """Twice what is to be added there changes the gradient."""

    def twice(unit: Any, b: Any, value: Any, amount: Any, load: Callable[..., Any], store: Callable[..., Any]) -> None:
        accumulate(unit, b, value, amount, load, store)
        accumulate(unit, b, value, amount, load, store)

    once = _gradient(source)
    monkeypatch.setattr(module, "accumulate", twice)
    assert not np.allclose(_gradient(source)[0], once[0])


def test_accumulators_come_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []

    def counted(*args: Any) -> None:
        called.append(args)
        accumulate(*args)

    monkeypatch.setattr(state, "accumulate", counted)
    _gradient()
    assert called
