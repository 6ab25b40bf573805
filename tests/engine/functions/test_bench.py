"""Times of a kernel and its derivative."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import irgrad as ig

SOURCE = """double total(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}"""


def test_both_are_measured_and_drawn(tmp_path: Path) -> None:
    matplotlib.use("Agg")
    kernel = ig.load(SOURCE).kernel("total", "f64(f64[n] x, i64 n)")
    calls = []

    def slow(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return np.sum([ig.grad(kernel)(x) for _ in range(3)], axis=0)

    found = ig.bench(kernel, np.ones(4000), derivative=slow, seconds=0.02)
    assert len(found.values) == len(found.derivatives) >= 5 and len(calls) > 5
    assert found.value == min(found.values) and found.ratio == found.derivative / found.value > 1
    assert f"derivative / value  {found.ratio:.2f}" in str(found)
    ax = found.plot()
    assert [len(line.get_xdata()) for line in ax.lines] == [len(found.values)] * 2
    ax.figure.savefig(tmp_path / "bench.png")
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")
