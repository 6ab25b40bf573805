"""The table of independent loops, at small sizes: gradients by all schedules are the same, and all loops are fused."""

from __future__ import annotations

import pytest

from benchmarks import independent_loops


@pytest.mark.long
def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert independent_loops.main(["--quick"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [case.name for case in independent_loops.CASES]
