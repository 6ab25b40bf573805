"""The table of long loops, at small sizes: every gradient is right."""

from __future__ import annotations

import sys

import pytest

from benchmarks import long_loops


@pytest.mark.long
def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["long_loops", "--quick"])
    assert long_loops.main() == 0
    assert capsys.readouterr().out.count("error") == 3 * len(long_loops.CHOICES)
