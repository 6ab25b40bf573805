"""Every kernel of the benchmarks, at reduced sizes: derivatives of several widths against as many separate ones,
forward and reverse, and batches in both layouts against single calls."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import irgrad
from benchmarks import batch, batch_samples
from benchmarks.cases import CASES
from benchmarks.native import HERE

from . import batches, widths

pytestmark = pytest.mark.long

Subject = tuple[Any, dict[str, Any], tuple[str, ...]]
ROWS = {
    **{f"{c.source}:{c.function}": (c.source, c.function, c.signature, c.wrt, lambda c=c: c.inputs(True))
       for c in (*CASES, *batch.MANY)},
    **{f"{s.source}:{s.function}": (s.source, s.function, s.signature, s.wrt, lambda s=s: _sample(s))
       for s in batch_samples.LINES},
}  # fmt: skip
LONG = ("gmm.c:gmm", "hand.cpp:hand", "lstm.c:lstm", "linear.c:mlp", "ba.c:ba")  # to compile


def _sample(line: batch_samples.Samples) -> dict[str, Any]:
    """The arguments of the first sample."""
    data = batch_samples.inputs(line, 1)
    return {k: v if k in line.shared else v[0] for k, v in data.items()}


@cache
def _subject(name: str) -> Subject:
    source, function, signature, wrt, inputs = ROWS[name]
    kernel = irgrad.load(HERE / "kernels" / source).kernel(function, signature)
    data = inputs()
    return kernel, {p.name: data[p.name] for p in kernel.signature.arguments}, wrt


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in ROWS])
def test_width_three(name: str) -> None:
    for mode in widths.MODES:
        assert not widths.compare(*_subject(name), 3, mode)


@pytest.mark.slow
@pytest.mark.parametrize("width", [w for w in widths.WIDTHS if w != 3])
@pytest.mark.parametrize("name", ROWS)
def test_other_widths(name: str, width: int) -> None:
    for mode in widths.MODES:
        assert not widths.compare(*_subject(name), width, mode)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_batches(name: str) -> None:
    """Once with all arguments that are differentiated batched, once with one of them shared."""
    for seed in (0, 1):
        found, _ = batches.compare(*_subject(name), 1e-12, seed)
        assert not found, "\n".join(found[:4])
