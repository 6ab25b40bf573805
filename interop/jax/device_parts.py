"""Calls without a batch on NVIDIA's GPUs: loops that the source promises independent run on many threads.

A call becomes a sequence of launches (see `engine/grids/parts.py`). Results, and copies of what the program changes,
are arrays that each launch gets and gives back in the same memory; two more have what stays from launch to launch.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.core
import numpy as np
from jax.interpreters import mlir

from irgrad.engine.grids.parts import Parts
from irgrad.engine.grids.threads_of_loops import shared_loops
from irgrad.interop.jax.device import ARCHITECTURE, BLOCK, TARGET, call_of, launch_of
from irgrad.interop.jax.for_device import with_tape, without_tape
from irgrad.interop.programs.algebra import Key, Spec, program_of, result_numbers
from irgrad.rules.errors import OneThread, Unsupported

if TYPE_CHECKING:
    from irgrad.engine.grids.grid_text import GridSlot
    from irgrad.engine.kernel.programs import Program

__all__ = ["Buffer", "Plan", "lower_in_parts", "plan_of", "run_parts"]

_UNROLLED = 4  # loops whose launches stand in the program one by one
_LOCAL = 256  # bytes of an array that is part of the state


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array that one launch hands to the next. operand: whose values it starts from, None for zeros; result: which
    it is, None for one that nobody else wants."""

    operand: int | None
    result: int | None
    shape: tuple[int, ...]
    dtype: Any


class Plan(NamedTuple):
    """A call in parts. kept: the operands that the kernels have as such; buffers: what they read and write."""

    parts: Parts
    kept: list[int]
    buffers: list[Buffer]


def plan_of(spec: Spec, items: Any, results: Sequence[Any], threads: Any, *, device: bool = True) -> Plan:
    """How a call without a batch runs on many threads.

    spec: of a kernel `for_device`; items: see `device.Call`; results: shapes of its results; threads: see `parts_of`

    Raises Unsupported where it cannot.
    """
    from irgrad.engine.grids.grid_text import GridParameter
    from irgrad.engine.grids.parts import parts_of

    program = program_of(spec)
    operands, sizes, constants = map(dict, items)
    slots, buffers, kept = _slots(program, operands, result_numbers(spec), sizes, constants, results)
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
    constants: Mapping[int, int], kinds: Sequence[Any],
) -> tuple[list[GridSlot], list[Buffer], list[int]]:  # fmt: skip
    from irgrad.engine.grids.grid_text import GridSlot
    from irgrad.engine.signature.extents import ConstExtent

    slots: list[GridSlot] = []
    buffers: list[Buffer] = []
    kept: dict[int, None] = {}
    for slot, shape in zip(program.slots, program.shapes(sizes), strict=True):
        key = (slot.index, slot.steps)
        extents = tuple(ConstExtent(n) for n in shape)
        inner, size = slot.role == "scratch", int(np.prod(shape)) * slot.dtype.size
        source, result = None if inner else operands.get(key), None if inner else results.get(key)
        if not slot.steps and slot.index in constants:
            slots.append(GridSlot(slot.name, slot.dtype, "bits", extents, bits=constants[slot.index]))
        elif result is None and size <= _LOCAL:
            start, given = ("zero", "") if source is None else ("copy", f"operand{source}")
            kept |= {} if source is None else {source: None}
            slots.append(GridSlot(slot.name, slot.dtype, start, extents, given, (False,) if given else ()))
        else:
            whole = tuple(shape) if result is None else kinds[result]
            slots.append(GridSlot(slot.name, slot.dtype, "keep", extents, target=f"buffer{len(buffers)}"))
            buffers.append(Buffer(source, result, whole, slot.dtype.numpy))
    return slots, buffers, list(kept)


def run_parts(plan: Plan, operands: Sequence[Any], launch: Any, zeros: Any, repeat: Any) -> list[Any]:
    """The results of a call, from its operands.

    launch(word, threads, given, kinds, aliases) runs the kernel `NAME_word`: given: its operands; kinds: of its
    results; aliases: operands that are results, {operand: result}
    zeros(shape, dtype) makes an array; repeat(count, step, arrays) runs a step on what the one before it gave

    Addresses are kept from launch to launch, while XLA may have an operand elsewhere at each of them, as it does with
    constants of its loops. So what the launches only read is in memory that one hands to the next as well: operands
    that are small are copied into the state, others are buffers.
    """
    parts, count = plan.parts, len(plan.kept)
    kinds = [jax.ShapeDtypeStruct(b.shape, b.dtype) for b in plan.buffers]
    kinds += [jax.ShapeDtypeStruct((n,), np.dtype(np.uint8)) for n in (parts.state, parts.room)]
    starts = [zeros(b.shape, b.dtype) if b.operand is None else operands[b.operand].reshape(b.shape)
              for b in plan.buffers]  # fmt: skip
    held = [operands[n] for n in plan.kept]
    places = {count + n: n for n in range(len(kinds))}
    first = {n: place for n, place in places.items() if place < len(kinds) - 1}
    now = launch("first", 1, [*held, *starts, zeros((parts.state,), np.uint8)], kinds, first)

    def step(now: Any) -> Any:
        for word, threads in (("share", parts.threads), ("fold", parts.folded), ("next", 1)):
            now = launch(word, threads, [*held, *now], kinds, places) if threads else now
        return now

    now = repeat(parts.steps, step, now)
    made = {b.result: array for b, array in zip(plan.buffers, now, strict=False) if b.result is not None}
    return [made[n] for n in range(len(made))]


# -- the lowering -----------------------------------------------------------------------------------------------------


def lower_in_parts(ctx: Any, operands: Any, spec: Spec, sizes: Any, constants: Any, batch: tuple[Any, ...]) -> Any:
    """The results of a call without a batch, lowered for many threads of a GPU; None where one thread has to do, which
    a `OneThread` warning says. Raises Unsupported for open sizes."""
    loops = shared_loops(spec.kernel)
    reasons = loops.others
    if loops.shared:
        inner, rows, own = without_tape(ctx, operands, spec)
        call = call_of(inner.avals_in, own, sizes, constants, batch)
        try:
            made = _compiled(own, call.items, tuple(tuple(aval.shape) for aval in inner.avals_out))
        except Unsupported as error:
            reasons = (f"{error.where or spec.kernel.name}: {error.because or error.what}",)
        else:
            run = partial(_run, made, spec, tuple(ctx.avals_out))
            kept = [rows[n] for n in call.kept]
            ctx = ctx.replace(avals_in=tuple(inner.avals_in[n] for n in call.kept))
            return mlir.lower_fun(run, multiple_results=True)(ctx, *kept)
    if reasons:
        warnings.warn(_one_thread(spec.kernel.name, reasons), OneThread, stacklevel=2)
    return None


def _one_thread(name: str, reasons: Sequence[str]) -> str:
    return (f"`{name}` runs in one thread of the GPU: {'; '.join(reasons[:3])}{' ...' if reasons[3:] else ''}. "
            "Batch it with jax.vmap, or promise that a loop's iterations are independent: "
            "#pragma clang loop vectorize(assume_safety)")  # fmt: skip


class _Compiled(NamedTuple):
    plan: Plan
    code: str


@lru_cache(maxsize=256)
def _compiled(spec: Spec, items: Any, results: tuple[tuple[int, ...], ...]) -> _Compiled:
    from irgrad.engine.codegen.cache import default_cache, fingerprint
    from irgrad.engine.codegen.nvptx import identity, ptx

    key = fingerprint("parts-2", program_of(spec).key, ARCHITECTURE, repr((items, results)), identity())
    store = default_cache()
    data = store.get("ptx", key)
    if data is None:
        plan = plan_of(spec, items, results, _threads)
        code = ptx(plan.parts.text, plan.parts.kernels, ARCHITECTURE)
        numbers = [getattr(plan.parts, word) for word in _NUMBERS]
        buffers = [(b.operand, b.result, b.shape, np.dtype(b.dtype).name) for b in plan.buffers]
        data = (json.dumps([plan.parts.name, numbers, plan.kept, buffers]) + "\n" + code).encode()
        store.put("ptx", key, data)
    head, _, code = data.decode().partition("\n")
    name, numbers, kept, buffers = json.loads(head)
    made = [Buffer(operand, result, tuple(shape), np.dtype(kind)) for operand, result, shape, kind in buffers]
    return _Compiled(Plan(Parts(name, "", **dict(zip(_NUMBERS, numbers, strict=True))), kept, made), code)


_NUMBERS = ("state", "room", "threads", "folded", "steps")


def _threads(iterations: float) -> int:
    found = launch_of(int(min(iterations, 1 << 40)), 0)
    return found.blocks * found.threads


def _run(made: _Compiled, spec: Spec, avals: Sequence[Any], *operands: Any) -> list[Any]:
    import jax.numpy as jnp

    results = run_parts(made.plan, operands, partial(_launch, made), jnp.zeros, _repeat)
    return with_tape(spec, avals, results)


def _repeat(count: int, step: Any, arrays: Any) -> Any:
    if count > _UNROLLED:
        return jax.lax.fori_loop(0, count, lambda _, now: step(now), arrays)
    for _ in range(count):
        arrays = step(arrays)
    return arrays


def _launch(made: _Compiled, word: str, threads: int, given: Any, kinds: Any, aliases: Any) -> Any:
    block = min(threads, BLOCK)
    call = jax.ffi.ffi_call(TARGET, kinds, input_output_aliases=aliases, has_side_effect=False)
    return tuple(call(
        *given, name=f"{made.plan.parts.name}_{word}", kernel_type="ptx", kernel_data=made.code,
        grid_x=np.int32(threads // block), grid_y=np.int32(1), grid_z=np.int32(1), block_x=np.int32(block),
        block_y=np.int32(1), block_z=np.int32(1), shared_mem_bytes=np.int32(0),
    ))  # fmt: skip
