"""Reverse loops that count up: which ones do, and that their gradients are those of loops that count down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handwritten.made import gradient

from irgrad.engine.schedule import windows

N = 11
LOOP = """
void f(double *restrict x, double *restrict y, double *restrict w, long *n, double *restrict o) {
    %s
    for (long i = 1; i < *n - 1; i++) { %s }
    *o = %s;
    for (long i = 0; i < *n; i++) *o += y[i] * w[i] + x[i] * w[i] * 0.25;
}"""
UP = {
    "a map": ("", "y[i] = sin(x[i]);", "0"),
    "a stencil": ("", "y[i] = x[i] * (x[i + 1] - x[i - 1]);", "0"),
    "a stencil of five": ("", "if (i > 2 && i < 8) y[i] = x[i - 2] * x[i + 2] * x[i];", "0"),
    "in place": ("", "x[i] = x[i] * y[i] * x[i];", "0"),
    "fields": ("", "if (i < 5) { y[2 * i] = y[2 * i] * x[2 * i + 1]; y[2 * i + 1] = cos(x[i]); }", "0"),
    "a sum": ("double s = 0;", "s += x[i] * y[i]; y[i] = x[i];", "s * s"),
    "a difference": ("double s = 1;", "s -= x[i] * w[i]; s = fma(x[i - 1], y[i], s);", "s * s"),
    "a branch": ("", "if (w[i] > 0.5) y[i] = x[i] * x[i + 1]; else y[i] = x[i - 1];", "0"),
    "one place that all add to": ("", "y[i] = x[0] * x[i] * x[0];", "0"),
}
DOWN = {
    "a recurrence in memory": ("", "x[i] = x[i] * x[i - 1];", "0"),
    "a recurrence": ("double s = 1;", "s = s * x[i] + y[i];", "s"),
    "sums that are read on the way": ("double s = 0;", "s += x[i]; y[i] = s;", "s"),
    "what the last iteration computed": ("double s = 0;", "s = x[i] * x[i]; y[i] = s;", "s"),
    "one place that all write": ("", "if (w[i] > 0.6) y[3] = x[i] * x[i];", "0"),
    "loads too far apart, one handed on": ("", "y[i] = x[i] * x[i + 1] * sin(x[i + 8]);", "0"),
    "halves of the iterations": ("", "y[i / 2] = x[i] * x[i];", "0"),
    "a store ahead": ("", "y[i + 1] = x[i]; y[i] = y[i] * x[i];", "0"),
    "a store beyond its stride": ("", "if (i < 5) { y[2 * i] = x[i]; y[2 * i + 2] = sin(x[i]); }", "0"),
}


def _run(parts: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any], list[bool]]:
    """Gradients as they are and with all loops counting down, and the answers about the first loop."""
    rng = np.random.default_rng(3)
    x, y, w = (rng.uniform(0.3, 1.4, N + 8) for _ in range(3))
    given = (LOOP % parts, "f", "ddccd", x, y, w, np.array([N]), np.array([np.nan]))
    asked = windows.counts_up
    answers: list[bool] = []

    def noting(owner: Any, loop: Any, held: Any) -> bool:
        if loop is owner.loops.all[0]:
            answers.append(asked(owner, loop, held))
            return answers[-1]
        return asked(owner, loop, held)

    monkeypatch.setattr(windows, "worth", lambda groups: True)
    monkeypatch.setattr(windows, "counts_up", noting)
    (dx, dy, _), _ = gradient(*given)
    monkeypatch.setattr(windows, "counts_up", lambda *_: False)
    (down_x, down_y, _), _ = gradient(*given)
    return [dx, dy], [down_x, down_y], answers


@pytest.mark.parametrize("case", [*UP, *DOWN])
def test_the_direction_and_the_gradient(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    up, down, answers = _run({**UP, **DOWN}[case], monkeypatch)
    assert answers
    assert set(answers) == {case in UP}
    for one, other in zip(up, down, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    assert np.count_nonzero(up[0]) > N // 2


SWAPPED = """
void f(double *x, long *n, long *steps, double *o) {
    double *u = malloc(*n * 8), *v = malloc(*n * 8);
    memcpy(u, x, *n * 8); memcpy(v, x, *n * 8);
    for (long t = 0; t < *steps; t++) {
        for (long i = 1; i < *n - 1; i++) v[i] = u[i] - 0.5 * u[i] * (u[i + 1] - u[i - 1]);
        double *old = u; u = v; v = old;
    }
    *o = 0;
    for (long i = 0; i < *n; i++) *o += u[i] * u[i] * (i + 1);
    free(u); free(v);
}"""


@pytest.mark.parametrize(("n", "steps"), [(2, 3), (3, 1), (4, 2), (23, 5)])
def test_buffers_that_change_places(n: int, steps: int) -> None:
    """Against a complex step of the same program in NumPy."""

    def energy(x: Any) -> Any:
        for _ in range(steps):
            x = np.concatenate([x[:1], x[1:-1] - 0.5 * x[1:-1] * (x[2:] - x[:-2]), x[-1:]])
        return (x * x * np.arange(1, n + 1)).sum()

    x = np.random.default_rng(1).uniform(0.2, 0.9, n)
    want = [energy(x + 1e-30j * one).imag / 1e-30 for one in np.eye(n)]
    (dx, _), _ = gradient(SWAPPED, "f", "dccd", x, np.array([n]), np.array([steps]), np.array([np.nan]))
    np.testing.assert_allclose(dx, want, rtol=1e-12, atol=1e-13)


def test_only_stencils_count_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for case, number in (("a map", 0), ("a stencil", 1)):
        upward: list[Any] = []
        asked = windows.counts_up
        with monkeypatch.context() as patch:
            patch.setattr(windows, "counts_up", lambda *a, f=asked, u=upward: f(*a) and (u.append(a[1]) or True))
            x = np.linspace(0.2, 1.0, N + 8)
            gradient(LOOP % UP[case], "f", "ddccd", x, x.copy(), x.copy(), np.array([N]), np.array([np.nan]))
        assert len(set(upward)) == number
