"""The generated library: another one for each seed, all reached from the kernel, with a right gradient."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.large_library import measure
from benchmarks.library_modules import library


def test_a_seed_gives_one_library_of_about_the_lines_that_are_asked_for() -> None:
    assert library(1_000, 3) == library(1_000, 3) != library(1_000, 4)
    for lines in (1_000, 10_000):
        assert 0.9 * lines < library(lines).count("\n") < 1.2 * lines


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_its_gradient_is_right(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "library.c"
    path.write_text(library(1_000, seed))
    measure(path)
    assert "MB" in capsys.readouterr().out
