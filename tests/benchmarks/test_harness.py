"""The harness's own parts: a wrong result has an infinite or large distance, and the table says so."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import harness, native, run
from benchmarks.cases import select


def test_distance_is_relative_to_the_largest_entry_of_each_part() -> None:
    wanted = [np.array([1.0, -4.0]), np.array(2.0)]
    assert harness.distance([np.array([1.0, -4.0]), 2.0], wanted) == 0.0
    assert harness.distance([np.array([1.0, -4.4]), 2.0], wanted) == pytest.approx(0.1)


@pytest.mark.parametrize("got", [[], [np.zeros(3)], [np.array([1.0, np.nan])]], ids=["missing", "shape", "nan"])
def test_a_result_of_another_form_is_infinitely_wrong(got: list[np.ndarray]) -> None:
    assert harness.distance(got, [np.array([1.0, 2.0])]) == float("inf")


def test_measure_times_a_known_pause() -> None:
    import time

    timing = harness.measure(lambda: time.sleep(0.003), quick=True)
    assert 0.003 <= timing.least <= timing.median < 0.1
    assert timing.runs >= 3


def test_a_wrong_derivative_prints_no_time() -> None:
    row = harness.Row("x", 1, "grad", 2.0, "nobody", verdict="WRONG", error=0.5).as_json()
    row["primal"] = {"least": 1e-3}
    text = run.render(row)
    assert "WRONG" in text
    assert "largest error 5.0e-01" in text
    assert text.splitlines()[0].split()[:5] == ["x", "1", "ms", "-", "-"]


def test_summary_counts_what_is_right_and_near() -> None:
    rows = [
        {"verdict": "right", "ratio": 3.0, "to_beat": 2.0, "number": 1},
        {"verdict": "right", "ratio": 1.0, "to_beat": 2.0, "number": 2},
        {"verdict": "WRONG", "ratio": None, "to_beat": 2.0, "number": 2},
    ]
    text = run.summary(rows)
    assert text.startswith("2 of 3 right, 1 within 1x")
    assert "2 within 2x" in text
    assert text.endswith("1 of 2 kernels within 2x in every variant")


def test_a_user_passes_no_size_that_a_shape_gives() -> None:
    case = select(["histogram"])[0]
    data = case.inputs(True)
    inputs = native.inputs_of(case.signature, data)
    assert [np.ndim(value) for value in inputs] == [1, 1, 0]
    assert inputs[2] == data["bins"]


def test_extents_are_expressions_over_sizes() -> None:
    returned, arguments = native.parse("void(f64[n] x, i64 n, out f32[2*n+1,3] y)")
    assert returned == "void"
    assert [a.flow for a in arguments] == ["in", "in", "out"]
    made = arguments[2].zeros({"n": 2})
    assert made.shape == (5, 3)
    assert made.dtype == np.float32


@pytest.mark.parametrize("name", ["product", "hand", "ba", "brusselator-jvp", "brusselator-vjp", "kmeans-hvp"])
def test_what_is_timed_is_the_native_entry(name: str) -> None:
    """Whatever the operation: a table that shows whole calls where it says native would mislead."""
    from benchmarks import ours

    case = next(case for case in select([name]) if case.name == name)
    data = case.inputs(True)
    _, call = ours.derivative(case, ours.kernel(case), data)
    call()
    entries = ours.Entries(call)
    assert entries.programs and entries.tape_bytes() is not None
    entries()
