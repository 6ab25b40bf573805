"""What is said of the loops that threads share, also when machine code comes from the disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine.kernel.options import team_size
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.rules.errors import IRGradError, OneThread

SOURCE = """
double f(const double *x, double *y, long n) {
    double s = 1;
    for (long i = 0; i < n; i++) y[i] = x[i] * x[i];
    for (long i = 0; i < n; i++) s = s * x[i] + 1;
    return s;
}
double g(const double *x, long n) { double s = 1; for (long i = 0; i < n; i++) s = s * x[i] + 1; return s; }
"""


def test_loops_and_reasons() -> None:
    f = irgrad.load(SOURCE).kernel("f", "f64(f64[n] x, out f64[n] y, i64 n)", threads=2)
    found = shared_loops(f.primal)
    assert len(found.shared) == len(found.others) == 1
    assert found.others[0].startswith("<string>:5:") and "goes on with what the one before it left" in found.others[0]


def test_the_warning_comes_with_cached_code_too() -> None:
    for _ in range(2):
        g = irgrad.load(SOURCE).kernel("g", "f64(f64[n] x, i64 n)", threads="auto")
        with pytest.warns(OneThread):
            g(np.ones(2))


@pytest.mark.parametrize("threads", [0, -1, 65, True, "all", 1.5])
def test_what_is_no_number_of_threads(threads: Any) -> None:
    with pytest.raises(IRGradError, match="is no number of threads of a call"):
        irgrad.load(SOURCE).kernel("g", "f64(f64[n] x, i64 n)", threads=threads)


def test_numbers_of_threads() -> None:
    assert [team_size(t) for t in (None, "auto", 1, 64)] == [0, -1, 1, 64]
