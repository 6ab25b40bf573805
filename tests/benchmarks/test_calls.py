"""The cost of calls: every row and column is there."""

from __future__ import annotations

import pytest

from benchmarks import calls


def test_the_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(calls, "microseconds", lambda _, rounds, number: asked.append(rounds) or 1.5)
    calls.main(["2"])
    told = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in told] == ["elements", *map(str, calls.SIZES)]
    assert told[1].split()[1:] == ["1.50"] * 4
    assert asked == [2] * 4 * len(calls.SIZES)


def test_a_time() -> None:
    assert calls.microseconds(lambda: sum(range(2000)), 1, 5) > calls.microseconds(lambda: None, 1, 5) >= 0
