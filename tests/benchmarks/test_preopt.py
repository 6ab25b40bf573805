"""The benchmark of optimising first: both gradients are right, and the option does leave the optimiser out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import preopt

pytestmark = pytest.mark.long


def test_both_gradients_are_equal_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert preopt.main(["--quick", "expsin", "rk4"]) == 0
    text = capsys.readouterr().out
    assert "WRONG" not in text
    assert "not run" not in text
    assert "geometric mean of 2" in text


def test_every_kernel_is_known() -> None:
    assert set(preopt.NAMES) <= {case.name for case in preopt.CASES}
    assert len(preopt.NAMES) >= 7
