"""The plan of a batched call: what the driver does with each slot, as the words of `meta` (see `batch_driver`).

Chunks follow from the number of samples and the shapes alone, never from the number of threads: so do all results.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irgrad.engine.batches.axes import Data
from irgrad.engine.batches.threads import run_chunks, thread_limit
from irgrad.engine.batches.unit import Unit, work
from irgrad.engine.kernel.binding import address_of
from irgrad.engine.kernel.messages import of_record
from irgrad.engine.runtime.batch_driver import CONTROL, FIELDS, KIND_CODES
from irgrad.engine.signature.slots import Slot

__all__ = [
    "CHUNKS", "LINE", "LONG", "STAGE_BYTES", "Job", "Plan", "front_bytes", "lead_of", "make_plan", "placed",
    "scratch_bytes",
]  # fmt: skip

Array = np.ndarray[Any, Any]
CHUNKS = 128
"""Chunks of a large batch: enough to balance tens of threads."""
LINE = 64
"""Bytes of a cache line: vectors that cross one cost up to a fifth of the time (measured on the prices of options)."""
_ALIGNED = 8192
"""Samples from which blocks begin at cache lines: a first chunk that is shorter costs another block."""
_SUM_BYTES = 1 << 26
"""Most bytes of accumulators of one slot: fewer chunks when they are large."""
_NO_MORE = 1 << 62  # a number behind all chunks
_TABLES = 64  # plans that a unit remembers
LONG = 1024
"""Most samples of a block of scalars."""
STAGE_BYTES = 1 << 15
"""Bytes of a block in which slots are cleared or copied: it stays in the first-level cache."""


@dataclass(slots=True)
class Job:
    """What happens to one slot.

    start:  "zero", "each" (a value per sample, in `source`) or "one" (the same for all)
    wanted: "" (dropped, or only read), "each" (to `target`) or "sum" (added over the samples)
    """

    start: str
    source: Data | None = None
    wanted: str = ""
    target: Data | None = None

    @property
    def kind(self) -> tuple[object, ...]:
        """All but the addresses."""
        source, target = self.source, self.target
        return (self.start, self.wanted, source and (source.sample, source.element),
                target and (target.sample, target.element))  # fmt: skip

    def use(self, slot: Slot) -> str:
        """How the block function uses the slot (see `blocks`)."""
        if slot.role == "in":
            return f"in {self.start}"
        return f"{self.start} out" if self.wanted else self.start


@dataclass(slots=True)
class Plan:
    """A batched call that is ready to run; `sums` are the accumulators by slot, one row per chunk."""

    unit: Unit
    meta: Array
    bases: Array
    chunks: int
    scratch: int
    sums: dict[int, Array]
    keep: list[Any]

    def run(self, threads: int | None) -> None:
        """Run all chunks. Raises TapeMemoryError where there is no memory for the tape of a sample."""
        workers = min(thread_limit(threads), max(self.chunks, 1))
        memory = np.empty(workers * self.scratch + 64, np.uint8)
        start = -(-address_of(memory) // 64) * 64
        control = (ctypes.c_int64 * len(CONTROL))(0, start, self.unit.address, 0, 0)
        native, at = work(), ctypes.addressof(control)
        meta, bases = address_of(self.meta), address_of(self.bases)

        def call(worker: int, limit: int, _used: object = (memory, control, self)) -> None:
            native(at, meta, bases, worker, limit)  # a helper may run when its caller was interrupted

        def stop() -> None:
            control[CONTROL.index("next")] = _NO_MORE

        run_chunks(call, self.chunks, threads, stop)
        if control[CONTROL.index("failure")]:
            raise of_record(self.unit.program.source.name, control[CONTROL.index("failure")], self.unit.limit)

    def summed(self, slot: int) -> Array:
        """The sum over all samples: the chunks' sums added pairwise, always in the same order."""
        rows = self.sums[slot]
        while len(rows) > 1:
            half = len(rows) // 2
            pairs = rows[0 : 2 * half : 2] + rows[1 : 2 * half : 2]
            rows = np.concatenate([pairs, rows[2 * half :]]) if len(rows) % 2 else pairs
        total: Array = rows[0]
        return total


@dataclass(frozen=True, slots=True)
class Table:
    """What is the same for all calls with arguments of the same shapes; sums: shapes of accumulators by slot."""

    meta: Array
    chunks: int
    scratch: int
    sums: dict[int, tuple[int, int]]


def make_plan(unit: Unit, shapes: Sequence[tuple[int, ...]], samples: int, jobs: Sequence[Job]) -> Plan:
    """The plan for `samples` > 0 samples; shapes: of one sample, by slot."""
    lead = lead_of(unit, samples, jobs)
    key = (samples, lead, tuple(shapes), tuple([job.kind for job in jobs]))
    table = unit.tables.get(key)
    if table is None:
        table = _Planner(unit, shapes, samples, jobs).table(lead)
        if len(unit.tables) < _TABLES:
            unit.tables[key] = table
    slots = unit.program.slots
    sums = {number: np.zeros(shape, slots[number].dtype.numpy) for number, shape in table.sums.items()}
    bases = []
    keep: list[Any] = [jobs, sums]
    for number, job in enumerate(jobs):
        target = sums.get(number) if number in sums else job.target.array if job.target else None
        bases += [_address(job.source.array if job.source else None), _address(target)]
    return Plan(unit, table.meta, np.array(bases, np.int64), table.chunks, table.scratch, sums, keep)


def _address(array: Array | None) -> int:
    return 0 if array is None else address_of(array)


def lead_of(unit: Unit, samples: int, jobs: Sequence[Job]) -> int:
    """By how many samples chunks begin earlier so that vectors lie in one cache line each: what most buffers want.

    Only where each sample is computed by itself: what is summed goes in the order that follows from the shapes.
    """
    if unit.strategy.name != "scalars" or samples < _ALIGNED or any(job.wanted == "sum" for job in jobs):
        return 0
    votes: dict[int, int] = {}
    for slot, job in zip(unit.program.slots, jobs, strict=True):
        size = slot.dtype.size
        for data, weight in ((job.source, 1), (job.target, 2)):  # a store that crosses a line costs more than a load
            if data is not None and data.sample == size:
                lead, beside = divmod(_address(data.array) % LINE, size)
                votes[lead] = votes.get(lead, 0) + (0 if beside else weight)
    return max(votes, key=lambda lead: (votes[lead], -lead), default=0)


def placed(form: str, slot: Slot, start: str, wanted: str, fits: tuple[bool, bool]) -> tuple[int, int, int]:
    """Place, start and finish of a slot (see `FIELDS`). fits: whether the block function can use the memory of the
    source, and of the destination."""
    first, last = {"zero": 1, "each": 2, "one": 3}[start], {"": 0, "each": 1, "sum": 2}[wanted]
    if slot.role == "in":
        return (3, 0, 0) if start == "one" else (1, 0, 0) if fits[0] else (0, 2, 0)
    if form == "scalars" and not wanted and start != "zero":
        return (3 if start == "one" else 1), 0, 0  # the block function keeps a copy of its own
    if form == "scalars" and start == "zero":
        return (2 if last == 1 else 0), 0, last  # the block function starts it from zero
    if form == "loop" and last == 2 and start == "zero" and slot.role == "inout" and slot.steps:
        return 4, 0, 0  # a shadow of an input: the program adds to it
    return (2 if last == 1 and fits[1] else 0), first, last


def front_bytes(slots: int) -> int:
    """Bytes of a worker's scratch memory that are the driver's own."""
    return -(-16 * slots // 64) * 64


def scratch_bytes(place: int, block: int, lanes: int, width: int) -> int:
    """Scratch memory of a slot with `width` bytes a sample; what is used in place needs some for short blocks only."""
    samples = block if place == 0 else lanes if place in (1, 2) else 0
    return -(-samples * width // 64) * 64


class _Planner:
    def __init__(self, unit: Unit, shapes: Sequence[tuple[int, ...]], samples: int, jobs: Sequence[Job]) -> None:
        self.unit = unit
        self.slots = unit.program.slots
        self.counts = [math.prod(shape) for shape in shapes]
        self.samples = samples
        self.jobs = jobs
        self.lanes = unit.strategy.lanes
        self.form = unit.strategy.name
        self.records = [self._record(n) for n in range(len(self.slots))]
        self.block = {"scalars": LONG, "lanes": self.lanes}.get(self.form) or self._stage()

    def _stage(self) -> int:
        """Samples of a block where the number is free: as many as fit the cache when something is staged."""
        staged = sum(r["count"] * r["size"] for r in self.records if r["place"] == 0 or r["start"])
        return max(1, min(64, STAGE_BYTES // staged)) if staged else self.samples

    def _chunk(self) -> int:
        chunk = -(-self.samples // CHUNKS)
        large = max((r["count"] * r["size"] for r in self.records if r["place"] == 4 or r["finish"] == 2), default=0)
        if large:
            chunk = max(chunk, -(-self.samples // max(1, _SUM_BYTES // large)))
        step = self.lanes or 1
        return -(-chunk // step) * step

    def _record(self, number: int) -> dict[str, int]:
        job, slot, count = self.jobs[number], self.slots[number], self.counts[number]
        size = slot.dtype.size
        row = dict.fromkeys(FIELDS, 0)
        row.update(count=count, size=size, kind=KIND_CODES.get(slot.dtype.memory, 0))
        if job.source is not None:
            row.update(source_sample=job.source.sample, source_element=job.source.element)
        if job.target is not None:
            row.update(target_sample=job.target.sample, target_element=job.target.element)
        fits = self._fits(job.source, count, size), self._fits(job.target, count, size)
        row["place"], row["start"], row["finish"] = placed(self.form, slot, job.start, job.wanted, fits)
        return row

    def _fits(self, data: Data | None, count: int, size: int) -> bool:
        """Whether the block function can use the memory of the data itself."""
        return data is not None and (count == 1 or (self.form == "loop" and data.element == size))

    def table(self, lead: int) -> Table:
        """The words of `meta`, and what a call needs besides."""
        slots, records = self.slots, self.records
        offset = front_bytes(len(slots))
        chunk = self._chunk()
        chunks = -(-(self.samples + lead) // chunk)
        block = min(self.block, chunk)
        sums: dict[int, tuple[int, int]] = {}
        for number, row in enumerate(records):
            width = row["count"] * row["size"]
            row.update(offset=offset, source=2 * number, target=2 * number + 1)
            offset += scratch_bytes(row["place"], block, self.lanes, width)
            if self.lanes:
                row.update(block_sample=row["size"], block_element=block * row["size"])
            else:
                row.update(block_sample=width, block_element=row["size"])
            if row["place"] == 4 or row["finish"] == 2:
                sums[number] = (chunks, row["count"])
                row["target_sample"] = width
        head = (self.samples, 1, chunk, chunks, block, offset, 0, len(slots), self.lanes, lead)
        words = [*head, *(row[name] for row in records for name in FIELDS)]
        return Table(np.array(words, np.int64), chunks, offset, sums)
