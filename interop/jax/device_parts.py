"""Calls without a batch on NVIDIA's GPUs: loops that the source promises independent run on many threads.

A call becomes a sequence of launches (see `engine/grids/parts.py`). Results, and copies of what the program changes,
are arrays that each launch gets and gives back in the same memory; two more have what stays from launch to launch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.core
import numpy as np

from irgrad.engine.signature.slots import TAPE
from irgrad.interop.jax.algebra import Key, Spec, program_of, result_numbers

if TYPE_CHECKING:
    from irgrad.engine.grids.grid_text import GridSlot
    from irgrad.engine.grids.parts import Parts
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.kernel.programs import Program

__all__ = ["Buffer", "Plan", "by_iterations", "plan_of", "run_parts", "with_tape", "without_tape"]

_LOCAL = 256  # bytes of an array that is part of the state


@lru_cache(maxsize=256)
def by_iterations(kernel: Kernel) -> Kernel:
    """The same kernel, of which independent loops call a function for each iteration."""
    return kernel.with_options(iterations=True)


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array that the launches write. operand: whose values it starts from, None for zeros; result: which it is, None
    for one that nobody else wants."""

    operand: int | None
    result: int | None
    shape: tuple[int, ...]
    dtype: Any


class Plan(NamedTuple):
    """A call in parts. kept: the operands that the kernels have as such; buffers: what they write."""

    parts: Parts
    kept: list[int]
    buffers: list[Buffer]


def plan_of(
    spec: Spec, items: Any, avals: Sequence[Any], results: Sequence[Any], threads: Any, *, device: bool = True
) -> Plan:
    """How a call without a batch runs on many threads.

    spec: of a kernel `by_iterations`; items: see `device.Call`; avals: of the call's operands; results: of its results;
    threads: see `parts_of`

    Raises Unsupported where it cannot.
    """
    from irgrad.engine.grids.grid_text import GridParameter
    from irgrad.engine.grids.parts import parts_of

    program = program_of(spec)
    operands, sizes, constants = map(dict, items)
    slots, buffers, kept = _slots(program, operands, result_numbers(spec), sizes, constants, avals, results)
    held: dict[str, GridParameter] = {}
    room: dict[str, int] = {}
    for slot, own in zip(slots, program.shapes(sizes), strict=True):
        for word in filter(None, (slot.source, slot.target)):
            held[word] = GridParameter(word, slot.dtype)
            room[word] = int(np.prod(own)) * slot.dtype.size
    names = [f"buffer{n}" for n in range(len(buffers))]
    order = [f"operand{n}" for n in kept] + names
    family = f"{'G' if spec.cotangents is not None else 'D'}{len(spec.directions)}"
    name = re.sub(r"\W", "_", f"irgrad_{spec.kernel.name}_{family}")
    parts = parts_of(program, name, [held[word] for word in order], slots, names, room, threads, device=device)
    return Plan(parts, kept, buffers)


def _slots(
    program: Program, operands: Mapping[Key, int], results: Mapping[Key, int], sizes: Mapping[str, int],
    constants: Mapping[int, int], avals: Sequence[Any], kinds: Sequence[Any],
) -> tuple[list[GridSlot], list[Buffer], list[int]]:  # fmt: skip
    from irgrad.engine.grids.grid_text import GridSlot
    from irgrad.engine.signature.extents import ConstExtent

    slots: list[GridSlot] = []
    buffers: list[Buffer] = []
    kept: dict[int, None] = {}
    for slot, shape in zip(program.slots, program.shapes(sizes), strict=True):
        key = (slot.index, slot.steps)
        extents = tuple(ConstExtent(n) for n in shape)
        inner = slot.role == "scratch"
        source, result = None if inner else operands.get(key), None if inner else results.get(key)
        if not slot.steps and slot.index in constants:
            slots.append(GridSlot(slot.name, slot.dtype, "bits", extents, bits=constants[slot.index]))
        elif slot.role == "in" and source is not None and result is None:
            kept[source] = None
            slots.append(GridSlot(slot.name, slot.dtype, "in place", extents, f"operand{source}", (False,)))
        elif result is None and int(np.prod(shape)) * slot.dtype.size <= _LOCAL:
            start, given = ("zero", "") if source is None else ("copy", f"operand{source}")
            kept |= {} if source is None else {source: None}
            slots.append(GridSlot(slot.name, slot.dtype, start, extents, given, (False,) if given else ()))
        else:
            kind = kinds[result] if result is not None else None
            whole = tuple(shape) if kind is None else kind.shape
            slots.append(GridSlot(slot.name, slot.dtype, "keep", extents, target=f"buffer{len(buffers)}"))
            buffers.append(Buffer(source, result, whole, slot.dtype.numpy))
    return slots, buffers, list(kept)


def run_parts(plan: Plan, operands: Sequence[Any], launch: Any) -> list[Any]:
    """The results of a call, from its operands, in JAX.

    launch(word, threads, given, kinds, aliases) runs the kernel `NAME.word`: given: its operands; kinds: of its
    results; aliases: operands that are results, {operand: result}
    """
    import jax.numpy as jnp

    parts, count = plan.parts, len(plan.kept)
    kinds = [jax.ShapeDtypeStruct(b.shape, b.dtype) for b in plan.buffers]
    kinds += [jax.ShapeDtypeStruct((n,), np.dtype(np.uint8)) for n in (parts.state, parts.room)]
    starts = [jnp.zeros(b.shape, b.dtype) if b.operand is None else jnp.reshape(operands[b.operand], b.shape)
              for b in plan.buffers]  # fmt: skip
    held = [operands[n] for n in plan.kept]
    state = jnp.zeros((parts.state,), np.uint8)
    places = {count + n: n for n in range(len(kinds))}
    first = {n: place for n, place in places.items() if place < len(kinds) - 1}
    now = launch("first", 1, [*held, *starts, state], kinds, first)

    def step(_: Any, now: Any) -> Any:
        for word, threads in (("share", parts.threads), ("fold", parts.folded), ("next", 1)):
            if threads:
                now = tuple(launch(word, threads, [*held, *now], kinds, places))
        return now

    now = tuple(now)
    if parts.steps <= _UNROLLED:
        for number in range(parts.steps):
            now = step(number, now)
    else:
        now = jax.lax.fori_loop(0, parts.steps, step, now)
    made = {b.result: array for b, array in zip(plan.buffers, now, strict=False) if b.result is not None}
    return [made[n] for n in range(len(made))]


_UNROLLED = 16  # loops whose launches stand in the program one by one


def without_tape(ctx: Any, operands: Sequence[Any], spec: Spec) -> tuple[Any, list[Any], Spec]:
    """The call of the kernel by iterations, which neither gets nor gives a tape: each iteration has its own."""
    last, avals, rows = len(spec.inputs) - 1, list(ctx.avals_in), list(operands)
    if spec.reads_tape:
        del avals[last], rows[last]
    wanted = [aval for aval, index in zip(ctx.avals_out, spec.results, strict=True) if index != TAPE]
    ctx = ctx.replace(avals_in=tuple(avals), avals_out=tuple(wanted))
    return ctx, rows, replace(spec.plain if spec.tape is not None else spec, kernel=by_iterations(spec.kernel))


def with_tape(spec: Spec, avals: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The results, with an array of zeros in place of the tape."""
    import jax.numpy as jnp

    rest = iter(results)
    return [jnp.zeros(aval.shape, aval.dtype) if index == TAPE else next(rest)
            for aval, index in zip(avals, spec.results, strict=True)]  # fmt: skip
