"""The table of many derivatives at once: every line is right at reduced sizes, and a wrong one has no time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import batch

pytestmark = pytest.mark.long


@pytest.mark.parametrize("many", batch.MANY, ids=lambda m: m.name)
def test_every_kernel_is_right(many: batch.Many) -> None:
    for mode in many.modes:
        text, good = batch.line(many, mode, [2, 5], quick=True)
        assert good and "WRONG" not in text, text


def test_sizes_of_code() -> None:
    text = batch.size_line(batch.MANY[2], "vjp", [1, 4])
    assert text.startswith("expsin") and text.count(" B ") == 2


def test_a_wrong_derivative_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(timed: Any, j: int) -> list[Any]:
        return [2 * k[..., j] for k in timed.kept]

    monkeypatch.setattr(batch.Timed, "lane", doubled)
    text, good = batch.line(batch.MANY[2], "jvp", [2], quick=True)
    assert not good and "WRONG" in text


def test_sizes_of_all_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    """`--size` knows the kernels of all cases, each function once, and prints no table of times."""
    from benchmarks.cases import CASES

    every = [(m.source, m.function) for m in batch.sized()]
    assert len(every) == len(set(every)) and {(c.source, c.function) for c in CASES} <= set(every)
    assert batch.main(["--size", "--widths", "2", "product"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [["product", "jvp", "W=1:"], ["product", "vjp", "W=1:"]]
