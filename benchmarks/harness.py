"""One case measured: correctness first, then times. A wrong derivative has no time.

Times are minima over repeated runs of one process on one thread (the peers' figures are minima too); medians go to the
JSON. A run repeats the call until it takes at least two milliseconds, so that the clock does not matter.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks import native, ours, peer_jax
from benchmarks.cases import Case
from benchmarks.native import HERE

SHORTEST = 2e-3
TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call: the least and the median of `runs`."""

    least: float
    median: float
    runs: int


@dataclass(slots=True)
class Row:
    """What is known of one case; None where it was not measured."""

    name: str
    number: int
    operation: str
    to_beat: float
    best_by: str
    primal: Timing | None = None
    primal_irgrad: Timing | None = None
    gradient: Timing | None = None
    gradient_native: Timing | None = None
    manual: Timing | None = None
    jax: Timing | None = None
    jax_note: str = ""
    tape_bytes: int | None = None
    compile_s: float | None = None
    error: float | None = None
    verdict: str = "not run"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our derivative over the primal at -O3, without NumPy's allocation where the native entry was timed."""
        timing = self.gradient_native or self.gradient
        return None if timing is None or self.primal is None else timing.least / self.primal.least

    def as_json(self) -> dict[str, Any]:
        """All fields and the ratio, as plain values."""
        return {**asdict(self), "ratio": self.ratio}


_CLOCK: list[Callable[[], float]] = [time.perf_counter]


def use_cpu_time() -> None:
    """Measure CPU time of all threads from now on, which other work on the machine changes less."""
    _CLOCK[0] = time.process_time


def measure(call: Callable[[], Any], *, quick: bool = False) -> Timing:
    """Time a call: warm up, choose a repeat count, then at least 11 runs (3 when quick) within about a second."""
    clock = _CLOCK[0]
    call()
    start = clock()
    call()
    once = max(clock() - start, 1e-7)
    repeats = max(1, round(SHORTEST / once))
    wanted, budget = (3, 0.1) if quick else (11, 0.5)
    times: list[float] = []
    begun = clock()
    while len(times) < wanted or (clock() - begun < budget and len(times) < 200):
        start = clock()
        for _ in range(repeats):
            call()
        times.append((clock() - start) / repeats)
        if clock() - begun > 20.0:
            break
    return Timing(min(times), statistics.median(times), len(times))


def distance(got: list[Any], wanted: list[Any]) -> float:
    """Largest error of all parts, relative to the largest entry of that part; infinite for other shapes or NaN."""
    if len(got) != len(wanted):
        return float("inf")
    worst = 0.0
    for g, w in zip(got, wanted, strict=True):
        g = np.asarray(g)  # noqa: PLW2901
        if g.shape != w.shape or not np.all(np.isfinite(g)):
            return float("inf")
        worst = max(worst, float(np.max(np.abs(g - w)) / max(float(np.max(np.abs(w))), 1e-300)))
    return worst


def run_case(case: Case, *, quick: bool = False, with_jax: bool = True) -> Row:
    """Measure one case. Failures of irgrad or JAX are reported in the row, never raised."""
    data = case.inputs(quick)
    row = Row(case.name, case.number, case.operation, case.to_beat, case.best_by)
    primal = native.bind(HERE / "kernels" / case.source, case.function, case.signature, data)
    manual_source = HERE / "manual" / case.source.replace(".cpp", ".c")
    manual = native.bind(manual_source, *case.manual, data)
    wanted = [np.array(out) for out in manual()[1]]
    row.primal = measure(primal, quick=quick)
    row.manual = measure(manual, quick=quick)
    if with_jax and case.jax is not None:
        _peer(case, data, wanted, row, quick)
    _ours(case, data, wanted, row, quick)
    return row


def _peer(case: Case, data: dict[str, Any], wanted: list[Any], row: Row, quick: bool) -> None:
    try:
        call = peer_jax.derivative(case, data)
        error = distance(call(), wanted)
    except Exception as caught:
        row.jax_note = f"{type(caught).__name__}: {caught}".splitlines()[0]
        return
    if error > TOLERANCE:
        row.jax_note = f"differs by {error:.1e}"
        return
    row.jax = measure(call, quick=quick)


def _ours(case: Case, data: dict[str, Any], wanted: list[Any], row: Row, quick: bool) -> None:
    try:
        start = time.perf_counter()
        function = ours.kernel(case)
        made, call = ours.derivative(case, function, data)
        got = call()
        row.compile_s = time.perf_counter() - start
        row.error = distance(got, wanted)
        row.verdict = "right" if row.error <= TOLERANCE else "WRONG"
        if row.verdict == "WRONG":
            return
        row.gradient = measure(call, quick=quick)
        entries = ours.Entries(call)
        row.gradient_native = measure(entries, quick=quick)
        row.tape_bytes = entries.tape_bytes() if ours.tape_bytes(made) is None else ours.tape_bytes(made)
        inputs = native.inputs_of(case.signature, data)
        row.primal_irgrad = measure(lambda: function(*inputs), quick=quick)
    except Exception as caught:
        row.verdict = "error" if row.verdict == "not run" else row.verdict
        row.note = f"{type(caught).__name__}: {caught}"
