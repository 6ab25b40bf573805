"""Runs of derivatives between canary words: entries, prefilled shadows, broken promises."""

from __future__ import annotations

import numpy as np
import pytest

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.rulecheck.runs import ENTRIES, Runs, _guarded, entries

TEXT = """
define double @area(double %a, double %b) {
  %r = fmul double %a, %b
  ret double %r
}
"""


def _runs(mode: str, width: int, truth: float = 6.0) -> Runs:
    kernel = Kernel(TEXT, "area", "f64(f64 a, f64 b)")
    bound = kernel.bind((2.0, 3.0), {})
    program = kernel.primal.jvp((0, 1, 2), width) if mode == "forward" else kernel.primal.vjp((0, 1, 2), width)
    return Runs(program, mode, bound, (0, 1), (2,), width, {2: np.array(truth)}, np.random.default_rng(1))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobians_are_measured_in_strips(mode: str, width: int) -> None:
    runs = _runs(mode, width)
    found = runs.jacobian()
    np.testing.assert_allclose([found[2, 0][0, 0], found[2, 1][0, 0]], [3, 2], rtol=1e-14)
    assert runs.broken == []


def test_other_primal_results_are_noted() -> None:
    runs = _runs("forward", 1, truth=7.0)
    runs.run({})
    assert runs.broken == ["the primal result `return` differs from that of the function"]


def test_a_damaged_canary_and_a_changed_input_are_noted() -> None:
    runs = _runs("reverse", 1)
    runs._fill()
    runs._raw[0][:8] = 0
    runs.buffers[0][...] = 9
    runs._look()
    assert runs.broken[:2] == ["something wrote outside of `a`", "`a` is an input and was changed"]


def test_two_runs_are_compared_bit_by_bit() -> None:
    runs = _runs("reverse", 1)
    state = {"calls": 0}
    plain = runs.program

    class Drifting:
        """A program whose second run differs."""

        def __getattr__(self, name: str) -> object:
            return getattr(plain, name)

        def invoke(self, buffers: list[np.ndarray]) -> None:
            plain.invoke(buffers)
            state["calls"] += 1
            if state["calls"] == 2:
                buffers[1][...] += 1e-9

    runs.program = Drifting()  # type: ignore[assignment]
    runs.twice({2: np.ones((1, 1))})
    assert runs.broken == ["a second run gives other bits"]


def test_large_arguments_are_measured_at_some_entries() -> None:
    assert list(entries(3)) == [0, 1, 2]
    chosen = entries(1000)
    assert len(chosen) == ENTRIES
    assert chosen[0] == 0
    assert chosen[-1] == 999


def test_buffers_lie_at_cache_lines() -> None:
    raw, value = _guarded((3,), np.dtype(np.float64))
    assert raw.nbytes == value.nbytes + 128
    assert value.ctypes.data % 64 == 0
