"""The one interface of loop schedules: with another one, derivatives are the same numbers by another way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from handwritten.made import OUT, gradient
from handwritten.planned import facts_of, planned
from handwritten.time_steps import PROGRAM, start

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.model import Instruction
from irgrad.engine.schedule.loop_schedule import Cells, LoopSchedule, StencilSchedule

STEPS = PROGRAM % ("", "for (long i = 1; i < m - 1; i++) v[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i];")
SUM = """
void f(double *restrict x, double *restrict w, long *restrict n, double *restrict o) {
    double s = 0;
    for (long i = 1; i < *n - 1; i++) s += w[0] * x[i - 1] * sin(x[i + 1]);
    *o = s;
}"""
RECURRENCE = """
void f(double *restrict x, double *restrict w, long *restrict n, double *restrict o) {
    double s = w[0];
    for (long i = 0; i < *n; i++) s = sin(s) * x[i] + s * s;
    *o = s;
}"""
BUFFERS = {
    "steps": (STEPS, "dccd", start(40), np.array([40]), np.array([7]), OUT),
    "sum": (SUM, "ddcd", start(30), np.array([0.3]), np.array([30]), OUT),
    "recurrence": (RECURRENCE, "ddcd", start(12), np.array([0.3]), np.array([12]), OUT),
}


class Together(LoopSchedule):
    """A schedule made elsewhere: values of recurrences share arrays, and nothing else is special."""

    asked = 0

    def handed_on(self, saved: Iterable[Instruction]) -> Mapping[Instruction, Cells]:
        type(self).asked += 1
        return StencilSchedule(self.facts).handed_on(saved)


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.parametrize("schedule", [LoopSchedule, Together])
def test_gradients_are_the_same(name: str, schedule: type[LoopSchedule]) -> None:
    source, active, *buffers = BUFFERS[name]
    expected, _ = gradient(source, "f", active, *[b.copy() for b in buffers])
    before = Together.asked
    found, _ = gradient(source, "f", active, *[b.copy() for b in buffers], schedule=schedule)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert (Together.asked > before) == (schedule is Together)


def test_the_plan_follows_the_schedule() -> None:
    def kept(schedule: type[LoopSchedule]) -> int:
        return len([key for key in planned(STEPS, "dccd", schedule=schedule).saved if isinstance(key, Instruction)])

    assert kept(StencilSchedule) < kept(LoopSchedule)  # three loads share one array, the rows of the tape
    facts = facts_of(SUM, "ddcd")
    (loop,) = facts.loops.all
    plain, stencil = LoopSchedule(facts), StencilSchedule(facts)
    assert stencil.counts_up(loop) and not plain.counts_up(loop)
    (group,) = stencil.windows(loop)
    assert all(stencil.window(load) is group for load in group.shifts) and not plain.windows(loop)
    assert isinstance(loop, Loop) and plain.window(next(iter(group.shifts))) is None
