"""Kernels of devices on the host: the same text, its threads one after the other, in place of the CPU's lowering."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.interpreters import mlir

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.grid import Grid
from irgrad.interop.jax import primitive
from irgrad.interop.jax.device import Call, call_of, device_grid
from irgrad.interop.jax.primitive import foreign_call

__all__ = ["on_grid", "run_grid"]


def run_grid(grid: Grid, arrays: list[Any], threads: int) -> None:
    """Run a kernel that was made for the host: all threads, with a tape that holds NaNs."""
    compiled = compile_module(grid.text, [grid.name], strict_fp=True)
    function = compiled.function(grid.name, None, *[ctypes.c_void_p] * (len(arrays) + 1), ctypes.c_int64)
    tape = np.full(threads * grid.tape_bytes // 8 + 2, np.nan)
    guard = tape[-1:].copy()
    function(*(a.ctypes.data for a in arrays), tape.ctypes.data, threads)
    assert np.array_equal(tape[-1:].view(np.int64), guard.view(np.int64)), "a thread wrote behind the tape"


def _run(grid: Grid, call: Call, threads: int, kinds: Any, *rows: Any) -> list[Any]:
    given = [np.array(row, order="C") for row in rows]
    results: list[Any] = [np.full(aval.shape, 85, aval.dtype) for aval in kinds]  # devices zero nothing
    for operand, result in call.aliases.items():
        results[result] = given[operand]
    run_grid(grid, [*given, *results], threads)
    return results


@contextmanager
def on_grid(threads: int) -> Iterator[list[Grid]]:
    """Inside of it calls of `foreign_call` on the CPU run as kernels of a device would. Gives those that were made."""
    made: list[Grid] = []

    def lower(ctx: Any, *operands: Any, spec: Any, sizes: Any, constants: Any, batch: Any) -> Any:
        ctx, operands, spec = primitive._without_tape(ctx, operands, spec)
        call = call_of(ctx.avals_in, spec, sizes, constants, batch)
        grid = device_grid(spec, call.items, batch, call.axes, tuple(call.aliases), device=False)
        made.append(grid)
        kinds = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in ctx.avals_out]
        count = threads if math.prod(batch) > 1 else 1

        def run(*rows: Any) -> Any:
            return jax.pure_callback(lambda *given: _run(grid, call, count, kinds, *given), kinds, *rows)

        ctx = ctx.replace(avals_in=tuple(ctx.avals_in[n] for n in call.kept))
        return mlir.lower_fun(run, multiple_results=True)(ctx, *(operands[n] for n in call.kept))

    usual = primitive._lower
    jax.clear_caches()
    mlir.register_lowering(foreign_call, lower, platform="cpu", cacheable=False)
    try:
        yield made
    finally:
        mlir.register_lowering(foreign_call, usual, platform="cpu", cacheable=False)
        jax.clear_caches()
