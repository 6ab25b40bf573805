"""The spellings of a kernel: each is right at a reduced size, and a wrong one is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cases import CASES
from benchmarks.spellings import __main__ as spellings

SIZES = {"gmm-64": "gmm"}  # the same sources at another size, which reduced is the same
SINGLE = [name for name in spellings.KERNELS if name not in SIZES]


@pytest.mark.long
@pytest.mark.parametrize("kernel", SINGLE)
def test_every_spelling_of_a_kernel_gives_the_same_gradient(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert spellings.main([kernel, "--quick", "--rounds", "1"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[2:] == ["(a)", "(b)", "(c)", "(d)", "(e)", "(f)", "worst", "mean"]
    assert row.split()[0] == kernel


def test_a_spelling_of_other_data_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in CASES if case.name == "nbody")
    data = case.inputs(True)
    true = spellings.Spelling.shadow
    monkeypatch.setattr(spellings.Spelling, "shadow", lambda self, name: 1.0001 * true(self, name))
    with pytest.raises(ValueError, match="nbody \\(b\\) is WRONG"):
        spellings.entries_of(case, data, "b", tmp_path)


def test_a_reference_that_differences_contradict_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = spellings.KERNELS["recurrence"]
    true = spellings.difference
    monkeypatch.setattr(spellings, "difference", lambda case, data, found: true(case, data, [1.01 * g for g in found]))
    with pytest.raises(ValueError, match=r"recurrence \(a\) is WRONG: .* from differences"):
        spellings.entries_of(case, case.inputs(True), "", tmp_path)


def test_all_sixteen_kernels_of_the_report_are_there() -> None:
    assert {case.number for case in spellings.KERNELS.values()} == {case.number for case in CASES}


def test_a_kernel_with_arrays_as_results_is_its_cost() -> None:
    case = spellings.KERNELS["brusselator"]
    assert (case.function, case.signature) == (
        "brusselator_cost",
        "f64(f64[n,n] u, f64[n,n] v, i64 n, f64 a, f64 b, f64 alpha)",
    )
    assert "out " not in spellings.KERNELS["hand"].signature


def test_a_spelling_with_a_slow_value_may_be_slower_by_as_much() -> None:
    worst, mean = spellings.Table([{"a": (2.0, 1.0), "b": (3.0, 1.1), "c": (8.0, 2.0)}]).spread()
    assert worst == pytest.approx(2.0)
    assert mean == pytest.approx(3.0 ** (1 / 3))


def test_a_slow_value_does_not_make_a_gradient_the_best() -> None:
    assert spellings.Table([{"a": (2.0, 1.0), "b": (2.0, 2.0)}]).spread() == pytest.approx((1.0, 1.0))


def test_ratios_are_taken_within_rounds_and_a_disturbed_round_counts_once() -> None:
    quiet = {"a": (2.0, 1.0), "b": (3.0, 1.2)}
    slow = {letter: (5 * gradient, 5 * value) for letter, (gradient, value) in quiet.items()}
    disturbed = {"a": (2.0, 1.0), "b": (9.0, 4.0)}
    table = spellings.Table([quiet, disturbed, slow])
    assert table.cell("b") == pytest.approx((3.0, 1.2))
    assert table.spread() == pytest.approx((1.5, 1.5**0.5))


def test_every_kernel_has_a_source_with_all_spellings() -> None:
    folder = Path(spellings.__file__).parent
    for name in SINGLE:
        text = (folder / f"{name}.cpp").read_text(encoding="utf-8")
        assert all(f"SPELLING == {word}" in text for word in ("PLAIN", "VECTORS", "STRUCTS", "ROWS", "CELLS"))
