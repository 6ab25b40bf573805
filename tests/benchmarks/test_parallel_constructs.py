"""The table of parallel constructs, at a small size: every gradient is jnp's."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.long
def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import parallel_constructs

    monkeypatch.setattr(sys, "argv", ["parallel_constructs", "-n", "100", "--rounds", "1", "scan *", "histogram 2x2"])
    with pytest.raises(SystemExit) as ended:
        parallel_constructs.main()
    assert not ended.value.code
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("| scan *", "| histogram 2x2"))]
    assert len(rows) == 2
