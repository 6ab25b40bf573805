"""The benchmark of batches: every result of reduced sizes is right, in C, on one thread and on two."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import batch_samples

pytestmark = pytest.mark.long


def test_all_lines_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert batch_samples.main(["--quick", "--no-jax"]) == 0
    text = capsys.readouterr().out
    assert text.count("gradient") == text.count("value ") == len(batch_samples.LINES) and "WRONG" not in text


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", ["option", "rk4"])
def test_jax_computes_the_same(name: str, gradient: bool) -> None:
    line = next(row for row in batch_samples.LINES if row.name == name)
    data = batch_samples.inputs(line, 9)
    if name == "rk4":
        data["steps"] = 20
    import irgrad

    source = batch_samples.HERE / "kernels" / line.source
    kernel = irgrad.load(source).kernel(line.function, line.signature)
    ours = batch_samples.batched(line, kernel, data, gradient, 1)()
    theirs = batch_samples.jax_call(line, data, gradient)()
    for a, b in zip(ours, theirs, strict=True):
        b = np.asarray(b)  # noqa: PLW2901
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    original = batch_samples.batched

    def wrong(*args: object) -> object:
        call = original(*args)  # type: ignore[arg-type]
        return lambda: [1.001 * part for part in call()]

    monkeypatch.setattr(batch_samples, "batched", wrong)
    assert batch_samples.main(["option", "--quick", "--no-jax"]) == 1
    assert capsys.readouterr().out.count("WRONG") == 2
