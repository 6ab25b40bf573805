"""Random kernels: forward and reverse derivatives against the interpreter, against each other, and derivatives of
several widths against as many separate ones, batches against single calls.

IRGRAD_FUZZ is the number of kernels (10 by default, 600 in `.ci/run`), IRGRAD_FUZZ_SEED the first seed. Each test is
a batch of one C file, so that workers share the kernels.
"""

from __future__ import annotations

import os

import pytest
from oracle.generator import SHAPED
from shares import fast

from .driver import hint, run, summary

COUNT = int(os.environ.get("IRGRAD_FUZZ", "10"))
FIRST = int(os.environ.get("IRGRAD_FUZZ_SEED", "0"))
BATCH = 50


@pytest.mark.parametrize("start", range(FIRST, FIRST + COUNT, BATCH))
def test_derivatives_of_random_kernels(start: int) -> None:
    """No wrong gradient, no refusal, no death, in a batch of kernels."""
    results = run(range(start, min(start + BATCH, FIRST + COUNT)))
    bad = [(k, v) for k, v in results if v.bad]
    rejected = [k for k, v in results if v.kind == "rejected"]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0])
    assert len(rejected) <= max(1, len(results) // 10), summary(results)


@pytest.mark.parametrize("width", fast(1, (3, 2, 8)))
def test_widths_of_random_kernels(width: int) -> None:
    """W tangents or cotangents at once are W separate derivatives, to 1e-12."""
    first = FIRST + 1000 * width
    results = run(range(first, first + max(1, COUNT // 20)), widths=(width,))
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], smaller=False)


def test_batches_of_random_kernels() -> None:
    """Values, tangents and gradients of a batch are those of single calls."""
    first = FIRST + 20_000
    results = run(range(first, first + max(1, COUNT // 40)), batches=True)
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], smaller=False)


@pytest.mark.parametrize("width", fast(2, (0, 3, 2, 8)))
def test_kernels_that_wide_derivatives_rearrange(width: int) -> None:
    """Nests, gathers, long loops, odd counters, arguments in one memory: against the interpreter, and at widths."""
    first = SHAPED + FIRST + 1000 * width
    results = run(range(first, first + max(1, COUNT // (80 if width else 20))), widths=(width,) if width else ())
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], smaller=not width)


@pytest.mark.long
def test_batches_of_such_kernels() -> None:
    first = SHAPED + FIRST + 20_000
    results = run(range(first, first + max(1, COUNT // 80)), batches=True)
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], smaller=False)
