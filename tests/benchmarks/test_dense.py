"""The table of dense kernels at small sizes: every gradient is right, a wrong one is told, arrays are set back."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import dense


@pytest.mark.long
def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert dense.main(["--quick"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(dense.CASES) + 2
    assert "WRONG" not in "".join(rows)


def test_a_wrong_gradient_has_no_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(dense.Case, "error", lambda _: 1e-3)
    assert dense.main(["trisolv", "--quick"]) == 1
    assert "trisolv        WRONG by 1.0e-03" in capsys.readouterr().out


def test_arrays_are_set_back_before_each_call() -> None:
    array, seen = np.zeros(3), set()

    def call() -> None:
        seen.add(float(array[0]))
        array[:] += 1

    clock = dense._timed(call, [array])
    clock()
    assert seen == {0.0}


def test_unknown_names_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        dense.main(["choleski"])
    assert "no kernel named choleski" in capsys.readouterr().err
