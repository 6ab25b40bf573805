"""Random kernels: forward and reverse derivatives against the interpreter, and against each other.

IRGRAD_FUZZ is the number of kernels (200 by default, 400 in `.ci/run`), IRGRAD_FUZZ_SEED the first seed.
"""

from __future__ import annotations

import os

import pytest

from .driver import hint, run, summary

COUNT = int(os.environ.get("IRGRAD_FUZZ", "200"))
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
