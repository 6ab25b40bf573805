"""Buffers that change places: the steps run on the rows of the tape, and everything around them sees no difference."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from irgrad.engine.transforms import levels, storage

from .made import make

PROGRAM = """
void f(double *x, long *n, long *steps, double *o) {
    long m = *n, last = *steps;
    double *u = malloc(m * 8), *v = malloc(m * 8);
    for (long i = 0; i < m; i++) { u[i] = x[i]; v[i] = 1 - x[i] * x[i]; }
    %s
    for (long t = 0; t < last; t++) {
        %s
        double *old = u; u = v; v = old;
    }
    double s = 0;
    for (long i = 0; i < m; i++) s += u[i] * u[i] * (i + 1) + v[i] * v[i] * v[i] / (i + 2);
    *o = s;
    free(u); free(v);
}"""
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
        asked = storage.find_levels
        self.found: list[bool] = []

        def noting(*given: Any) -> Any:
            found = asked(*given)
            self.found.append(found is not None)
            return found

        before = "double *first = u;" if "first" in step else ""
        kinds = ["dup", "const", "const", "dup"]
        self.made = []
        for finder in (noting, lambda *_: None):
            monkeypatch.setattr(storage, "find_levels", finder)
            self.made.append(make(PROGRAM % (before, step), "f", "reverse", kinds))

    def __call__(self, n: int, steps: int) -> list[Any]:
        """Value and gradient of both, one array each."""
        results = []
        for made in self.made:
            dx, o = np.zeros(n), np.zeros(1)
            made(_start(n), dx, np.array([n]), np.array([steps]), o, np.ones(1))
            results.append(np.append(dx, o))
        return results


def _start(n: int) -> Any:
    return np.random.default_rng(n).uniform(0.3, 0.9, n)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("case", STEPS)
def test_levels(case: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """few: every fourth row is kept."""
    step, model = STEPS[case]
    monkeypatch.setattr(levels, "LARGE", 0 if few else 1 << 20)
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
        x = _start(n)
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


def test_what_a_single_step_reads_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer that the only step reads is an argument; its memory may be read-only."""
    source = """
    void f(double *restrict x, double *restrict y, long *n, long *steps) {
        double *u = x, *v = y;
        for (long t = 0; t < *steps; t++) {
            for (long i = 1; i < *n - 1; i++) v[i] = u[i] * (u[i + 1] - u[i - 1]);
            double *old = u; u = v; v = old;
        }
    }"""
    asked = storage.find_levels
    found: list[Any] = []
    monkeypatch.setattr(storage, "find_levels", lambda *given: found.append(asked(*given)) or found[-1])
    made = make(source, "f", "reverse", ["dup", "dup", "const", "const"])
    assert all(found)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ)
    x, y, dx, dy = np.frombuffer(page, np.float64)[:9], np.ones(9), np.zeros(9), np.ones(9)
    made(x, dx, y, dy, np.array([9]), np.array([1]))
    assert found
    np.testing.assert_array_equal(y, [1, *np.zeros(7), 1])
    np.testing.assert_array_equal(dx, np.zeros(9))
    np.testing.assert_array_equal(dy, [1, *np.zeros(7), 1])


@pytest.mark.parametrize(("term", "fewer"), [("u[i + 1] * u[i]", True), ("sin(u[i + 1])", False), ("w[i]", False)])
def test_a_tape_that_leaves_the_cache_keeps_fewer_rows(term: str, fewer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a step is cheap: the tape of 40 steps on 4,000 cells is 1.3 MB, a fourth of it else."""
    step = f"for (long i = 1; i < m - 1; i++) v[i] = u[i] * u[i - 1] + u[i + 1] * 0.1 + {term};"
    source = (PROGRAM % ("", step)).replace("double *x,", "double *restrict x, double *restrict w,")
    made = make(source, "f", "reverse", ["dup", "const", "const", "const", "dup"])
    n = 4000
    x, w, dx, o = _start(n), np.full(n, 0.2), np.zeros(n), np.zeros(1)
    made(x, dx, w, np.array([n]), np.array([40]), o, np.ones(1))
    assert (made.tape_bytes() < 1_000_000) == fewer
