"""The benchmark of rules: what it times are equal derivatives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import rules

pytestmark = pytest.mark.long


def test_both_derivatives_are_equal_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert rules.main(["--quick"]) == 0
    assert "adjoint loop over 1,000 doubles" in capsys.readouterr().out
