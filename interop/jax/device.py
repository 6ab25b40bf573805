"""Calls on NVIDIA's GPUs: each call of `foreign_call` becomes one kernel, given to XLA as PTX.

XLA loads the kernel when it compiles the program, and passes the addresses of operands and results. So everything that
depends on shapes is a constant of the kernel; one thread runs a sample at a time, and the tape of all threads is one
more result, which nobody uses. The call target and its attributes are XLA's (`__gpu$xla.gpu.ptx`).

A sample that fails (a kernel with a status) has NaN in place of its results: a kernel of a device cannot raise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.core
import numpy as np
from jax.interpreters import mlir

from irgrad.engine.grids.occupancy import block_of, resident_threads
from irgrad.interop.jax.for_device import with_tape, without_tape
from irgrad.interop.programs.algebra import Key, Spec, program_of, result_numbers, sizes_of, used_operands
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.grids.grid import Grid
    from irgrad.engine.grids.grid_text import GridSlot
    from irgrad.engine.kernel.programs import Program

__all__ = [
    "ARCHITECTURE", "BLOCK", "TARGET", "Call", "Launch", "call_of", "device_grid", "launch_of", "lower_on_device",
    "rows_of",
]  # fmt: skip

ARCHITECTURE = "sm_80"
"""What PTX is written for: the driver makes machine code of it for this architecture and all later ones."""
TARGET = "__gpu$xla.gpu.ptx"
"""XLA's own call target for a kernel as PTX."""
BLOCK, _BLOCKS = 128, 1056  # threads of a block, most blocks of a launch where registers are not known
_MULTIPROCESSORS = 132  # of the devices that are filled; smaller ones run the blocks one after the other
_TAPE = 1 << 31  # bytes of the tapes of all threads
_ROWS = 8  # how much dearer a byte of a row of sums is than one of the tape: the rows are added up afterwards


class Launch(NamedTuple):
    """Blocks, and threads of each."""

    blocks: int
    threads: int


def launch_of(samples: int, tape_bytes: int, registers: int = 0, block: int = 0) -> Launch:
    """How many threads run: one for each sample, up to what the largest devices hold at once and what their tapes take
    of memory.

    registers: of a thread, 0 where they are not known; block: threads of a block, 0 for what registers allow
    """
    held = _MULTIPROCESSORS * resident_threads(registers) if registers else _BLOCKS * BLOCK
    most = min(held, _TAPE // max(tape_bytes, 1))
    size = block or (block_of(registers) if registers else BLOCK)
    threads = min(size, max(32, -(-min(samples, most) // 32) * 32))
    return Launch(max(1, min(-(-samples // threads), most // threads)), threads)


class Call(NamedTuple):
    """A call of a program as a kernel.

    kept:    which operands of the primitive the program has a slot for
    items:   those by slot, the sizes and the constants, each as sorted pairs
    axes:    for each of them along which axes of the batch it has a row for each sample
    aliases: those that may have the memory of a result, {operand: result}
    """

    kept: list[int]
    items: Any
    axes: tuple[tuple[bool, ...], ...]
    aliases: dict[int, int]


def call_of(avals: Sequence[Any], spec: Spec, sizes: Any, constants: Any, batch: tuple[Any, ...]) -> Call:
    """How a call is run as a kernel. avals: those of its operands. Raises Unsupported for sizes that are not known."""
    program = program_of(spec)
    names, numbers = sizes_of(spec, sizes, constants)
    where = used_operands(spec, program)
    if not all(isinstance(n, int) for n in (*batch, *names.values(), *(n for aval in avals for n in aval.shape))):
        raise Unsupported(f"`{spec.kernel.name}` gets arrays of open sizes on a GPU",
                          because="a kernel of a device is made for sizes that are known",
                          fix='export with shapes that are numbers, or for platforms=["cpu"]')  # fmt: skip
    kept = sorted(where.values())
    where = {key: kept.index(n) for key, n in where.items()}
    axes = tuple(tuple(n == size for n, size in zip(avals[n].shape, batch, strict=False)) for n in kept)
    results = result_numbers(spec)
    aliases = {n: results[key] for key, n in where.items() if key in results and all(axes[n])}
    items = tuple(sorted(where.items())), tuple(sorted(names.items())), tuple(sorted(numbers.items()))
    return Call(kept, items, axes, aliases)


def lower_on_device(
    ctx: Any, operands: Sequence[Any], spec: Spec, sizes: Any, constants: Any, batch: tuple[Any, ...],
    summed: tuple[bool, ...] = (), groups: int = 0,
) -> Any:  # fmt: skip
    """The results of a call, lowered for a GPU; summed: results that are summed over the batch but for so many leading
    axes. Raises Unsupported for what that cannot run."""
    whole, full = tuple(ctx.avals_out), spec
    ctx, operands, spec = without_tape(ctx, operands, spec)
    call = call_of(ctx.avals_in, spec, sizes, constants, batch)
    sums = tuple(n for n, total in enumerate(summed) if total)
    count = math.prod(batch[:groups])
    rows = [ctx.avals_out[n].size * ctx.avals_out[n].dtype.itemsize // count for n in sums]
    grid = _compiled(spec, call.items, batch, call.axes, tuple(call.aliases), sums, count)
    block = spec.kernel.options.device_block
    launch = launch_of(math.prod(batch), grid.tape_bytes + sum(rows) * _ROWS, grid.registers, block)
    threads = launch.blocks * launch.threads
    tape = jax.core.ShapedArray((max(1, grid.tape_bytes * threads),), np.dtype(np.uint8))
    given = tuple(ctx.avals_in[n] for n in call.kept)
    made = [aval.update(shape=rows_of(aval.shape, threads, groups)) if n in sums else aval
            for n, aval in enumerate(ctx.avals_out)]  # fmt: skip
    inner = ctx.replace(avals_in=given, avals_out=(*made, tape))
    found = jax.ffi.ffi_lowering(TARGET, operand_output_aliases=call.aliases)(
        inner, *(operands[n] for n in call.kept), name=grid.name, kernel_type="ptx", kernel_data=grid.code,
        grid_x=np.int32(launch.blocks), grid_y=np.int32(1), grid_z=np.int32(1),
        block_x=np.int32(launch.threads), block_y=np.int32(1), block_z=np.int32(1), shared_mem_bytes=np.int32(0),
    )  # fmt: skip
    results = [_total(ctx, row, made[n], ctx.avals_out[n], groups) if n in sums else row
               for n, row in enumerate(found[:-1])]  # fmt: skip
    return with_tape(full, whole, results, lambda aval: _zeros(ctx, aval))


def rows_of(shape: Sequence[int], threads: int, groups: int) -> tuple[int, ...]:
    """The shape of the rows that threads have of a sum: as many for each group of samples."""
    each = max(1, threads // math.prod(shape[:groups]))
    return (*shape[:groups], each, *shape[groups:])


def _total(ctx: Any, rows: Any, given: Any, aval: Any, groups: int) -> Any:
    """The sum over the rows of threads."""
    (total,) = mlir.lower_fun(lambda x: [jax.numpy.sum(x, axis=groups)], multiple_results=True)(
        ctx.replace(avals_in=(given,), avals_out=(aval,)), rows)  # fmt: skip
    return total


def _zeros(ctx: Any, aval: Any) -> Any:
    rows = mlir.lower_fun(lambda: [jax.numpy.zeros(aval.shape, aval.dtype)], multiple_results=True)(
        ctx.replace(avals_in=(), avals_out=(aval,)))  # fmt: skip
    return rows[0]


class _Compiled(NamedTuple):
    """A kernel's name, its PTX, the bytes of one thread's tape, its registers (0: not known)."""

    name: str
    code: str
    tape_bytes: int
    registers: int


@lru_cache(maxsize=256)
def _compiled(
    spec: Spec, items: Any, batch: Any, axes: Any, shared: tuple[int, ...], sums: tuple[int, ...], groups: int
) -> _Compiled:
    from irgrad.engine.codegen.cache import default_cache, fingerprint
    from irgrad.engine.codegen.nvptx import identity, ptx, ptxas, resources

    room = spec.kernel.primal.source.options.device_tape
    what = (items, batch, axes, shared, sums, groups, result_numbers(spec), room)
    key = fingerprint("ptx-4", program_of(spec).key, ARCHITECTURE, repr(what), identity())
    store = default_cache()
    data = store.get("ptx", key)
    if data is None:
        grid = device_grid(spec, items, batch, axes, shared, sums, groups)
        made = ptx(grid.text, [grid.name], ARCHITECTURE)
        used = resources(made, ARCHITECTURE)["registers"] if ptxas() is not None else 0
        data = f"{grid.name}\n{grid.tape_bytes}\n{used}\n{made}".encode()
        store.put("ptx", key, data)
    name, kept, registers, code = data.decode().split("\n", 3)
    return _Compiled(name, code, int(kept), int(registers))


def device_grid(
    spec: Spec, items: Any, batch: Sequence[int], axes: Sequence[tuple[bool, ...]], shared: Sequence[int] = (),
    sums: Sequence[int] = (), groups: int = 1, *, device: bool = True,
) -> Grid:  # fmt: skip
    """The kernel of a call.

    items, axes: see `Call`; shared: operands that have the memory of a result; sums: results of which each thread has
    a row, to which it adds what its samples give; groups: of samples, with sums of their own (see `kernel_text`);
    device: False for a function of the host (see `grid_of`)
    """
    from irgrad.engine.grids.grid import grid_of
    from irgrad.engine.grids.grid_text import GridParameter
    from irgrad.engine.signature.dtypes import DTYPES

    program = program_of(spec)
    operands, sizes, constants = map(dict, items)
    results = result_numbers(spec)
    order = [f"operand{n}" for n in range(len(axes))] + [f"result{n}" for n in range(len(results))]
    held = {word: GridParameter(word, DTYPES["f64"]) for word in order}  # as it stays for what no slot uses
    slots = [_slot(program, n, operands, results, sizes, constants, axes) for n in range(len(program.slots))]
    slots = [replace(slot, per_thread=True, start="keep") if slot.target in {f"result{n}" for n in sums} else slot
             for slot in slots]  # fmt: skip
    for slot, own in zip(slots, program.slots, strict=True):
        number = operands.get((own.index, own.steps))
        if slot.source:
            held[slot.source] = GridParameter(slot.source, slot.dtype, alone=number not in shared)
        if slot.target:
            held[slot.target] = GridParameter(slot.target, slot.dtype, alone=number is None or number not in shared)
    family = f"{'G' if spec.cotangents is not None else 'D'}{len(spec.directions)}"
    name = re.sub(r"\W", "_", f"irgrad_{spec.kernel.name}_{family}")  # what profilers show
    room = spec.kernel.primal.source.options.device_tape
    return grid_of(program, name, [held[word] for word in order], slots, batch, slab=room, device=device,
                   groups=groups)


def _slot(
    program: Program, number: int, operands: Mapping[Key, int], results: Mapping[Key, int], sizes: Mapping[str, int],
    constants: Mapping[int, int], axes: Sequence[tuple[bool, ...]],
) -> GridSlot:  # fmt: skip
    from irgrad.engine.grids.grid_text import GridSlot
    from irgrad.engine.signature.extents import ConstExtent
    from irgrad.engine.signature.slots import TAPE

    slot, key = program.slots[number], (program.slots[number].index, program.slots[number].steps)
    shape = tuple(ConstExtent(n) for n in program.shapes(sizes)[number])
    if not slot.steps and slot.index in constants:
        return GridSlot(slot.name, slot.dtype, "bits", shape, bits=constants[slot.index])
    inner = slot.role == "scratch"
    source, result = None if inner else operands.get(key), None if inner else results.get(key)
    target = "" if result is None else f"result{result}"
    start = "zero" if source is None else "copy"
    if slot.role == "in" and source is not None and result is None:
        start = "in place"
    if slot.index == TAPE and result is not None:
        start = "keep"
    if source is None:
        return GridSlot(slot.name, slot.dtype, start, shape, target=target)
    return GridSlot(slot.name, slot.dtype, start, shape, f"operand{source}", axes[source], target)
