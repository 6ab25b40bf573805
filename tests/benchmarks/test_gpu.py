"""The table of a device: each case computes what jax.numpy computes, here on the CPU."""

from __future__ import annotations

import pytest

from benchmarks import gpu


@pytest.mark.parametrize("name", gpu.CASES)
@pytest.mark.filterwarnings("ignore")
def test_a_row(name: str) -> None:
    line, right = gpu.row(name, quick=True, rate=1.0)
    assert right and line.startswith(name), line


def test_what_is_wrong_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    case = gpu.launch(True)
    monkeypatch.setitem(gpu.CASES, "launch", lambda quick: case._replace(like=lambda x: 3 * x))
    assert gpu.row("launch", True, 1.0) == ("launch     WRONG by 3.3e-01", False)


def test_an_unknown_case_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main(["absent"])
    assert "no such case: absent; there are midpoint" in capsys.readouterr().err
