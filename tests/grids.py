"""Kernels of devices on the host: the same text, its threads one after the other or several at once, in place of the
CPU's lowering."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.interpreters import mlir

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.grid import Grid
from irgrad.interop.jax import device_parts, primitive
from irgrad.interop.jax.device import Call, call_of, device_grid, rows_of
from irgrad.interop.jax.device_parts import Plan
from irgrad.interop.jax.for_device import with_tape, without_tape
from irgrad.interop.jax.sums import _lower as rows_and_sum
from irgrad.interop.jax.sums import foreign_sums

Order = Callable[[Iterable[int]], Iterable[int]]

__all__ = ["on_grid", "on_parts", "poison", "run_grid"]


def run_grid(grid: Grid, arrays: list[Any], threads: int, order: Order = list, workers: int = 1) -> None:
    """Run a kernel that was made for the host, with a tape of NaNs: its threads in some order, or several at once.

    One after the other, each finds the tape as it was before the first, and may not write what another one has written.
    """
    compiled = compile_module(grid.text, [grid.name], strict_fp=True)
    kinds = [*[ctypes.c_void_p] * (len(arrays) + 1), *[ctypes.c_int64] * 2]
    function = compiled.function(grid.name, None, *kinds)
    addresses, size = [a.ctypes.data for a in arrays], threads * grid.tape_bytes
    tape = poison(size + 16)
    fresh, owned = tape.copy(), np.zeros(size + 16, bool)
    owned[size:] = True  # nobody may write behind it

    def alone(thread: int) -> None:
        tape[:] = fresh
        function(*addresses, tape.ctypes.data, thread, threads)
        written = tape != fresh
        assert not (written & owned).any(), f"thread {thread} writes to the tape of another thread, or behind all"
        owned[:] |= written

    if workers == 1:
        for thread in order(range(threads)):
            alone(thread)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda thread: function(*addresses, tape.ctypes.data, thread, threads), order(range(threads))))
    assert np.array_equal(tape[size:], fresh[size:]), "a thread writes behind the tape"


def poison(size: int) -> Any:
    """Bytes of NaNs that are all different, as what a kernel has not written: any number that it writes is another."""
    words = np.random.default_rng(size).integers(1, 1 << 51, -(-size // 8) + 1, np.int64) | 0x7FF8 << 48
    return words.view(np.uint8)[:size]


def _run(grid: Grid, call: Call, threads: int, order: Order, workers: int, kinds: Any, *rows: Any) -> list[Any]:
    given = [np.array(row, order="C") for row in rows]
    results: list[Any] = [np.full(aval.shape, 85, aval.dtype) for aval in kinds]  # devices zero nothing
    for operand, result in call.aliases.items():
        results[result] = given[operand]
    run_grid(grid, [*given, *results], threads, order, workers)
    return results


@contextmanager
def on_grid(threads: int, order: Order = list, workers: int = 1) -> Iterator[list[Grid]]:
    """Inside of it calls on the CPU run as kernels of a device would (see `run_grid`). Gives those that were made."""
    made: list[Grid] = []

    def lower(
        ctx: Any, *operands: Any, spec: Any, sizes: Any, constants: Any, batch: Any, summed: tuple[bool, ...] = (),
        groups: int = 0,
    ) -> Any:
        ctx, operands, spec = primitive._without_tape(ctx, operands, spec)
        full, given = ctx, spec
        ctx, operands, spec = without_tape(ctx, operands, spec)
        call = call_of(ctx.avals_in, spec, sizes, constants, batch)
        sums = [n for n, total in enumerate(summed) if total]
        grid = device_grid(spec, call.items, batch, call.axes, tuple(call.aliases), sums,
                           math.prod(batch[:groups]), device=False)
        made.append(grid)
        count = threads if math.prod(batch) > 1 else 1
        kinds = [jax.ShapeDtypeStruct(rows_of(a.shape, count, groups) if n in sums else a.shape, a.dtype)
                 for n, a in enumerate(ctx.avals_out)]  # fmt: skip

        def run(*rows: Any) -> Any:
            made = jax.pure_callback(lambda *arrays: _run(grid, call, count, order, workers, kinds, *arrays),
                                     kinds, *rows)
            totals = [row.sum(axis=groups) if n in sums else row for n, row in enumerate(made)]
            return with_tape(given, full.avals_out, totals)

        full = full.replace(avals_in=tuple(ctx.avals_in[n] for n in call.kept))
        return mlir.lower_fun(run, multiple_results=True)(full, *(operands[n] for n in call.kept))

    with _instead(lower):
        mlir.register_lowering(foreign_sums, lower, cacheable=False)
        try:
            yield made
        finally:
            mlir.register_lowering(foreign_sums, rows_and_sum, cacheable=False)


@contextmanager
def _instead(lower: Callable[..., Any]) -> Iterator[None]:
    """Another lowering of calls on the CPU."""
    usual = primitive.LOWERINGS["cpu"]
    jax.clear_caches()
    primitive.LOWERINGS["cpu"] = lower
    try:
        yield
    finally:
        primitive.LOWERINGS["cpu"] = usual
        jax.clear_caches()


# -- one program in parts ---------------------------------------------------------------------------------------------


def _launches(plan: Plan, order: Order, workers: int) -> Callable[..., list[Any]]:
    """`launch` of `run_parts` on the host: the threads of a launch in some order, or several at once."""
    compiled = compile_module(plan.parts.text, plan.parts.kernels, strict_fp=True)

    def launch(word: str, threads: int, given: list[Any], kinds: Any, aliases: dict[int, int]) -> list[Any]:
        # What starts from an operand is changed, the operand is not; others XLA may have elsewhere at each launch.
        given = [row if n in aliases and word != "first" else np.array(row) for n, row in enumerate(given)]
        places = {result: operand for operand, result in aliases.items()}
        results = [given[places[n]] if n in places else np.full(kind.shape, 85, kind.dtype)
                   for n, kind in enumerate(kinds)]  # fmt: skip
        arrays = [*given, *results]
        kind = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int64] * 2
        function = compiled.function(f"{plan.parts.name}_{word}", None, *kind)
        addresses = [array.ctypes.data for array in arrays]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda thread: function(*addresses, thread, threads), order(range(threads))))
        return results

    return launch


def _repeat(count: int, step: Any, now: Any) -> Any:
    for _ in range(count):
        now = step(now)
    return now


@contextmanager
def on_parts(threads: int, order: Order = list, workers: int = 1) -> Iterator[list[Plan]]:
    """Inside of it calls without a batch run on the CPU as a device's many threads would. Gives the
    plans that were made; raises Unsupported where a device would use one thread."""
    made: list[Plan] = []
    usual = primitive.LOWERINGS["cpu"]

    def lower(ctx: Any, *operands: Any, spec: Any, sizes: Any, constants: Any, batch: Any) -> Any:
        inner, rows, own = without_tape(ctx, operands, spec)
        if any(n != 1 for n in batch):  # a tape that a call on threads has given is none
            ctx, operands, spec = (inner, rows, own) if spec.reads_tape else (ctx, operands, spec)
            return usual(ctx, *operands, spec=spec, sizes=sizes, constants=constants, batch=batch)
        call = call_of(inner.avals_in, own, sizes, constants, batch)
        shapes = [tuple(aval.shape) for aval in inner.avals_out]
        plan = device_parts.plan_of(own, call.items, shapes, lambda most: threads, device=False)
        made.append(plan)
        launch = _launches(plan, order, workers)
        kinds = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in inner.avals_out]

        def native(*given: Any) -> list[Any]:
            arrays = [np.ascontiguousarray(row) for row in given]
            return device_parts.run_parts(plan, arrays, launch, np.zeros, _repeat)

        def run(*given: Any) -> Any:
            results = jax.pure_callback(native, kinds, *given)
            return with_tape(spec, ctx.avals_out, results)

        full = ctx.replace(avals_in=tuple(inner.avals_in[n] for n in call.kept))
        return mlir.lower_fun(run, multiple_results=True)(full, *(rows[n] for n in call.kept))

    with _instead(lower):
        yield made
