"""The examples run, learn something, and draw their picture. With fewer steps than a user would take."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

# name: (steps or cells, last loss over first loss at most)
TRAINED = {"heat_control": (60, 0.6), "fit_ode": (25, 0.1), "residual": (120, 0.1)}


def _main(repository: Path, name: str) -> Any:
    return runpy.run_path(str(repository / "examples" / f"{name}.py"))["main"]


@pytest.mark.parametrize("name", TRAINED)
def test_training_lowers_the_loss(
    name: str, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps, ratio = TRAINED[name]
    first, last = _main(repository, name)(steps, str(tmp_path / "picture.png"))
    assert last < ratio * first
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("\n") > 3  # progress is shown


def test_flow_map(repository: Path, tmp_path: Path) -> None:
    lowest, highest = _main(repository, "flow_map")(12, str(tmp_path / "picture.png"))
    assert 0 <= lowest < 0.1 and 0.9 < highest < 1.2  # at the saddle points on the wall about 0.1 pi^2
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_nbody(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _main(repository, "nbody")()
    assert "the derivatives agree" in capsys.readouterr().out
