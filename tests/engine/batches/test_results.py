"""Arrays for results: new ones are placed as arguments are, those of the caller are checked."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.batches.axes import operands_of
from irgrad.engine.batches.results import PLACED, arrays_for_results

X = np.ones((4, 3))


def test_large_results_begin_in_a_cache_line_as_arguments_do() -> None:
    kernel = sample("cubes")
    samples = np.ones((PLACED // 8, 3))
    given = operands_of(kernel, (samples, 2.0), None, "aos")
    program = kernel.primal
    (slot,) = [n for n, s in enumerate(program.slots) if s.role != "in"]
    made = arrays_for_results(program.slots, program.shapes(given.bound.sizes), given, {slot: "each"}, "aos", None)
    assert made[slot].shape == (len(samples),)
    assert made[slot].ctypes.data % 64 == samples.ctypes.data % 64


@pytest.mark.parametrize(
    ("out", "error", "match"),
    [
        (np.empty(4, np.float32), irgrad.DTypeError, "has dtype float32, wanted float64"),
        ([[1.0] * 4], irgrad.DTypeError, "has dtype list"),
        (np.empty(5), irgrad.ShapeError, r"has shape \(5,\), wanted \(4,\)"),
        (np.empty(8)[::2], irgrad.ShapeError, "is not a writeable C-ordered array"),
        (X[:, 0].base.reshape(-1)[:4], irgrad.ShapeError, "overlaps an argument"),
        ((np.empty(4), np.empty(4)), irgrad.SignatureError, "out has 2 arrays, wanted 1"),
    ],
)
def test_arrays_that_do_not_fit(out: object, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        engine.batch(sample("cubes"))(X, 2.0, out=out)
