"""Random programs of heap layouts at every level of optimisation: gradients and tangents against differences.

A fortieth of IRGRAD_FUZZ programs a level. Refused are, today: floats and pointers copied byte by byte, where the
compiler's own passes unrolled it, and structs with pointers to fresh memory in a variable that outlives the call.
"""

from __future__ import annotations

import os

import pytest
from shares import fast

from .layouts import LEVELS, source, verdict

COUNT = int(os.environ.get("IRGRAD_FUZZ", "40"))
FIRST = int(os.environ.get("IRGRAD_FUZZ_SEED", "0"))
REFUSED = ("copied byte by byte", "copied in pieces", "travels as a float", "is kept in a variable",
           "is overwritten with", "makes a float again")  # fmt: skip
"""Words of the refusals that are known of."""


@pytest.mark.parametrize("level", fast(2, LEVELS))
def test_programs(level: str | None) -> None:
    first, count = FIRST + 10_000 * LEVELS.index(level), max(2, COUNT // 40)
    found = {seed: verdict(source(seed), level) for seed in range(first, first + count)}
    wrong = {seed: why for seed, (kind, why) in found.items() if kind == "wrong"}
    assert not wrong, f"level {level}: {wrong}"
    refused = {seed: why for seed, (kind, why) in found.items() if kind == "refused"}
    strange = {seed: why for seed, why in refused.items() if not any(words in why for words in REFUSED)}
    assert not strange, f"level {level}: {strange}"
    assert len(refused) <= 1 + count // 5, f"level {level}: {refused}"
