"""Buffers that change places: the steps run on the rows of the tape, and everything around them sees no difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handwritten.made import make
from handwritten.time_steps import PROGRAM, start
from shares import fast

from irgrad.engine.differentiate.tape import level_rows
from irgrad.engine.schedule import loop_schedule

# what a step does, and the same in NumPy on copies
STEPS = {
    "three points": (
        "for (long i = 1; i < m - 1; i++) v[i] = u[i] * (1 - 0.3 * (u[i + 1] - u[i - 1]));",
        lambda u, v: [v[:1], u[1:-1] * (1 - 0.3 * (u[2:] - u[:-2])), v[-1:]],
    ),
    "one side": (
        "for (long i = 0; i < m - 2; i++) v[i] = u[i] * (0.5 + 0.3 * u[i + 2]);",
        lambda u, v: [u[:-2] * (0.5 + 0.3 * u[2:]), v[-2:]],
    ),
    "far from the start": (
        "for (long i = 5; i < m - 2; i++) v[i] = u[i] * u[i - 2] + 0.3 * u[i + 2];",
        lambda u, v: [v[:5], u[5:-2] * u[3:-4] + 0.3 * u[7:], v[-2:]],
    ),
    "stored ahead": (
        "for (long i = 0; i < m - 3; i++) v[i + 3] = u[i] * u[i + 3] * u[i + 3];",
        lambda u, v: [v[:3], u[:-3] * u[3:] ** 2],
    ),
}
OTHERS = {
    "edges are stored": "for (long i = 1; i < m - 1; i++) v[i] = u[i] * (u[i + 1] - u[i - 1]);\nv[0] = u[1];",
    "the older level is read": "for (long i = 1; i < m - 1; i++) v[i] = u[i] * u[i + 1] * u[i - 1] + 0.5 * v[i];",
    "some steps do nothing": "if (t % 2 == 0) for (long i = 1; i < m - 1; i++) v[i] = u[i] * u[i + 1] * u[i - 1];",
    "some cells are left": "for (long i = 1; i < m - 1; i++) if (x[i] > 0.6) v[i] = u[i] * u[i + 1] * u[i - 1];",
    "another name": "for (long i = 1; i < m - 1; i++) v[i] = u[i] * (u[i + 1] - u[i - 1]) + first[2];",
}


class Pair:
    """The derivative of one program with levels and without."""

    def __init__(self, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = loop_schedule.find_levels
        self.found: list[bool] = []

        def noting(*given: Any) -> Any:
            found = asked(*given)
            self.found.append(found is not None)
            return found

        before = "double *first = u;" if "first" in step else ""
        kinds = ["dup", "const", "const", "dup"]
        self.made = []
        for finder in (noting, lambda *_: None):
            monkeypatch.setattr(loop_schedule, "find_levels", finder)
            self.made.append(make(PROGRAM % (before, step), "f", "reverse", kinds))

    def __call__(self, n: int, steps: int) -> list[Any]:
        """Value and gradient of both, one array each."""
        results = []
        for made in self.made:
            dx, o = np.zeros(n), np.zeros(1)
            made(start(n), dx, np.array([n]), np.array([steps]), o, np.ones(1))
            results.append(np.append(dx, o))
        return results


@pytest.mark.parametrize("few", fast(1, [False, True]))
@pytest.mark.parametrize("case", STEPS)
def test_levels(case: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """few: every fourth row is kept."""
    step, model = STEPS[case]
    monkeypatch.setattr(level_rows, "LARGE", 0 if few else 1 << 20)
    pair = Pair(step, monkeypatch)
    assert pair.found
    assert all(pair.found)

    def energy(x: Any, steps: int) -> Any:
        u, v = x, 1 - x * x
        for _ in range(steps):
            u, v = np.concatenate(model(u, v)), u
        i = np.arange(len(x))
        return (u * u * (i + 1) + v**3 / (i + 2)).sum()

    for n, steps in ((23, 5), (24, 2), (9, 1), (8, 0), (8, 3), (9, 4), (10, 8), (11, 11)):
        x = start(n)
        want = [energy(x + 1e-30j * one, steps).imag / 1e-30 for one in np.eye(n)]
        rows, plain = pair(n, steps)
        np.testing.assert_allclose(rows, [*want, energy(x, steps)], rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(rows, plain, rtol=1e-14)


def test_steps_that_have_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(STEPS["three points"][0], monkeypatch)
    for n in (0, 1, 2):
        rows, plain = pair(n, 3)
        np.testing.assert_array_equal(rows, plain)


@pytest.mark.parametrize("case", OTHERS)
def test_loops_that_keep_their_buffers(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(OTHERS[case], monkeypatch)
    assert not any(pair.found)
    rows, plain = pair(12, 4)
    np.testing.assert_array_equal(rows, plain)
    assert np.count_nonzero(rows) > 6
