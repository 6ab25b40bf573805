"""Which runs share one: samples of a batch as vector lanes, directions of a Jacobian; and what refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.batches.unit import strategy_of
from irgrad.engine.report.facts import LaneFacts
from irgrad.rules.errors import IRGradError, OneAtATime

if TYPE_CHECKING:
    from irgrad.engine.report.derivation import Question

__all__ = ["direction_facts", "lane_facts", "sample_facts"]

_WIDTH = 16  # directions that are tried


def lane_facts(asked: Question) -> tuple[LaneFacts, ...]:
    """Both questions. The derivative is made (or comes from the disk cache), nothing runs."""
    return sample_facts(asked), direction_facts(asked)


def sample_facts(asked: Question) -> LaneFacts:
    """How the samples of a batch run where each has its own floats, and integers are the same for all."""
    program = asked.program
    uses = tuple(
        ("in each" if slot.dtype.is_float else "in one") if slot.role == "in" else "each out" for slot in program.slots
    )
    try:
        strategy = strategy_of(program, uses)
    except IRGradError as error:
        return LaneFacts("samples of a batch", 1, f"{error.what}: {error.because}", error.where)
    if strategy.name == "loop":
        return LaneFacts("samples of a batch", 1, strategy.why, strategy.at)
    return LaneFacts("samples of a batch", strategy.lanes if strategy.name == "lanes" else 0, strategy.why)


def direction_facts(asked: Question) -> LaneFacts:
    """Whether many tangents or cotangents share one run."""
    program = asked.program
    what = "directions"
    if program.lane_by_lane:
        wide = asked.of(asked.kernel.primal, _WIDTH)
        try:
            _ = wide.stage
        except OneAtATime as error:
            return LaneFacts(what, 1, f"{error.what}: {error.because}", error.where)
        return LaneFacts(what, _WIDTH, "one run for all, in which a rule that takes one at a time is called for each")
    return LaneFacts(what, _WIDTH, "up to so many share a run of the function")
