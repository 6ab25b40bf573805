"""One program as launches: what is refused, and what the launches need."""

from __future__ import annotations

from typing import Any

import pytest

import irgrad
from irgrad.engine.grids.grid_text import GridParameter, GridSlot
from irgrad.engine.grids.parts import Parts, parts_of
from irgrad.engine.signature.dtypes import DTYPES
from irgrad.engine.signature.extents import ConstExtent
from irgrad.rules.errors import Unsupported

EACH = '_Pragma("clang loop vectorize(assume_safety)")'


def _parts(body: str, n: int = 50, **options: Any) -> Parts:
    source = f"#include <math.h>\nvoid f(const double *x, double *y, long n) {{ {body.replace('EACH', EACH)} }}\n"
    kernel = irgrad.load(source).kernel("f", "void(f64[n] x, out f64[n] y, i64 n)").with_options(device=True)
    f64, shape = DTYPES["f64"], (ConstExtent(n),)
    slots = [GridSlot("x", f64, "in place", shape, "x", (False,)), GridSlot("y", f64, "keep", shape, target="y"),
             GridSlot("n", DTYPES["i64"], "bits", bits=n)]  # fmt: skip
    parameters = [GridParameter("x", f64), GridParameter("y", f64)]
    seen: list[float] = []

    def threads(most: float) -> int:
        seen.append(most)
        return 32

    made = parts_of(kernel.primal, "k", parameters, slots, ["y"], {"x": 8 * n, "y": 8 * n}, threads, device=False)
    assert seen == [options.get("most", n)]
    return made


def test_steps_are_counted() -> None:
    one = _parts("EACH for (long i = 0; i < n; i++) y[i] = 2 * x[i];")
    assert (one.steps, one.folded, one.threads) == (1, 0, 32) and one.kernels[0] == "k_first"
    many = _parts("for (int t = 0; t < 7; t++) { EACH for (long i = 1; i < n; i++) y[i] = .5 * y[i] + x[i]; }", most=49)
    assert many.steps == 7
    sums = _parts("double s = 0; EACH for (long i = 0; i < n; i++) s += x[i] * x[i]; y[0] = s;")
    assert sums.folded == 8 and sums.room >= 32 * 8


def test_a_loop_that_does_not_run_leaves_nothing() -> None:
    with pytest.raises(Unsupported, match="no loop is left for many threads"):
        _parts("EACH for (long i = n; i < n; i++) y[i] = 2 * x[i];")


def test_how_often_has_to_be_known() -> None:
    body = "while (y[0] < 1) { EACH for (long i = 0; i < n; i++) y[i] += x[i] * x[i]; }"
    with pytest.raises(Unsupported, match="loops cannot run on many threads: how often is not known beforehand"):
        _parts(body)
