"""Steps on the rows of the tape: which memory they read and write, and how many rows are kept."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from handwritten.made import make
from handwritten.time_steps import PROGRAM, start

from irgrad.engine.schedule import loop_schedule


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
    asked = loop_schedule.find_levels
    found: list[Any] = []
    monkeypatch.setattr(loop_schedule, "find_levels", lambda *given: found.append(asked(*given)) or found[-1])
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
    x, w, dx, o = start(n), np.full(n, 0.2), np.zeros(n), np.zeros(1)
    made(x, dx, w, np.array([n]), np.array([40]), o, np.ones(1))
    assert (made.tape_bytes() < 1_000_000) == fewer
