"""The table of languages: a row, and what is said of a language whose compiler is missing."""

from __future__ import annotations

import pytest

from benchmarks.languages import __main__ as table


@pytest.mark.long
def test_a_row_is_slower_cold_than_cached(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.languages.FUNCTIONS", ("rk4",))
    assert table.main(["C"]) == 0
    language, function, *times = capsys.readouterr().out.splitlines()[2].replace("(", "").replace(")", "").split()
    cold, _, cached, _ = map(float, times)
    assert (language, function) == ("C", "rk4") and cold > cached > 0


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_RUSTC", "/nowhere/rustc")
    assert table.main(["Rust"]) == 0
    assert "missing: the compiler `/nowhere/rustc` was not found" in capsys.readouterr().out
