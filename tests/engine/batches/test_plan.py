"""Chunks and blocks follow from shapes and samples; sums are added in one order."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

from irgrad.engine.batches.axes import Data
from irgrad.engine.batches.blocks import LANES
from irgrad.engine.batches.plan import CHUNKS, Job, Plan, lead_of, make_plan
from irgrad.engine.batches.unit import strategy_of, unit_of
from irgrad.engine.runtime.batch_driver import HEAD


def _plan(name: str, n: int, sums: bool) -> Plan:
    program = sample(name).primal
    shapes = program.shapes({"n": 5})
    jobs = []
    for slot, shape in zip(program.slots, shapes, strict=True):
        array = np.ones((n, *shape), slot.dtype.numpy)
        data = Data(array, array.strides[0], array.itemsize)
        wanted = "" if slot.role == "in" else "sum" if sums else "each"
        jobs.append(Job("each" if slot.role == "in" else "zero", data, wanted, data))
    uses = tuple(job.use(slot) for job, slot in zip(jobs, program.slots, strict=True))
    strategy = strategy_of(program, uses, "auto" if name == "product" else 1)
    return make_plan(unit_of(program, strategy, uses, {}), shapes, n, jobs)


@pytest.mark.parametrize(("n", "chunk"), [(1, 64), (64, 64), (65, 64), (100_000, 832)])
def test_chunks_of_scalars_are_whole_blocks(n: int, chunk: int) -> None:
    head = dict(zip(HEAD, _plan("product", n, False).meta, strict=False))
    assert head["chunk"] == chunk and head["block"] % LANES == 0 and head["lanes"] == LANES
    assert head["chunks"] == -(-n // chunk) <= CHUNKS


@pytest.mark.parametrize(("n", "chunks"), [(1, 1), (7, 7), (1000, 125)])
def test_few_samples_are_chunks_of_their_own(n: int, chunks: int) -> None:
    plan = _plan("cubes", n, True)
    assert plan.chunks == chunks and plan.sums[3].shape == (chunks, 1)


def test_sums_are_added_pairwise() -> None:
    plan = _plan("cubes", 7, True)
    rows = np.array([1.0, 1e16, -1e16, 3.0, 5.0, 7.0, 11.0])[:, None]
    plan.sums[3] = rows
    assert plan.summed(3)[0] == ((1.0 + 1e16) + (-1e16 + 3.0)) + ((5.0 + 7.0) + 11.0)


@pytest.mark.parametrize(("inputs", "outputs", "lead"), [(16, 16, 2), (0, 0, 0), (40, 16, 2), (56, 4, 7), (4, 4, 0)])
def test_blocks_begin_at_cache_lines(inputs: int, outputs: int, lead: int) -> None:
    """What most buffers want, a result as much as two arguments; an address within an element has no say."""
    program = sample("product").primal
    jobs = [Job("each", _at(inputs), "", None) if slot.role == "in" else Job("zero", None, "each", _at(outputs))
            for slot in program.slots]  # fmt: skip
    uses = tuple(job.use(slot) for job, slot in zip(jobs, program.slots, strict=True))
    unit = unit_of(program, strategy_of(program, uses), uses, {})
    assert lead_of(unit, 10_000, jobs) == lead and lead_of(unit, 100, jobs) == 0
    plan = make_plan(unit, program.shapes({}), 10_000, jobs)
    head = dict(zip(HEAD, plan.meta, strict=False))
    assert head["lead"] == lead and plan.chunks == -(-(10_000 + lead) // head["chunk"])
    jobs[-1] = Job("zero", None, "sum")
    assert lead_of(unit, 10_000, jobs) == 0


def _at(offset: int) -> Data:
    """Memory that begins so many bytes behind a cache line (its elements are never touched)."""
    memory = np.zeros(10_000 * 8 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return Data(memory[start : start + 80_000], 8, 8)
