"""A program over a batch as one kernel: its module, ready for code generation, and what a thread of it keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.grids.arena import ARENA, CARVE, TAPE
from irgrad.engine.grids.grid_text import GridParameter, GridSlot, kernel_text, sample_text
from irgrad.engine.grids.heap import adopt_memory
from irgrad.engine.grids.static_tape import place_tape
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.kernel.host import refuse_hosted
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.ir.model import Module
    from irgrad.engine.kernel.programs import Program

__all__ = ["Grid", "grid_of", "open_grid", "sample_module"]


@dataclass(frozen=True, slots=True)
class Grid:
    """The kernel `name` of a module. tape_bytes: of one thread."""

    name: str
    text: str
    tape_bytes: int


def grid_of(
    program: Program, name: str, parameters: Sequence[GridParameter], slots: Sequence[GridSlot], batch: Sequence[int],
    *, slab: int = 0, device: bool = True, groups: int = 1,
) -> Grid:  # fmt: skip
    """The kernel of a program for a batch whose sizes, and those of all arrays, are known: `NAME(parameters, tape)`.

    The tape is a last parameter, `tape_bytes` for each thread of the launch, interleaved (see `static_tape`).
    slab:   bytes for a thread where what a sample needs has no bound beforehand: the kernel traps where they are few
    device: False for a function of the host, which runs one thread
    groups: see `kernel_text`

    Raises Unsupported for what a device cannot run, with the source line.
    """
    from irgrad.engine.ir.printer import to_text

    module = sample_module(program, name, parameters, slots, [str(size) for size in batch])
    try:
        kept, own = place_tape(module, f"{name}.sample"), 0
    except Unsupported:
        if not slab:
            raise
        kept = own = -(-slab // 16) * 16
    rows = [slot for slot in slots if slot.per_thread]
    kernel = kernel_text(name, parameters, str(math.prod(batch)), device=device, slab=own, rows=rows,
                         groups=groups)
    return Grid(name, joined(_with_arena(module) if own else to_text(module), kernel), kept)


def open_grid(
    program: Program, name: str, parameters: Sequence[GridParameter], slots: Sequence[GridSlot], *, device: bool = True
) -> str:
    """The module of a kernel for any number of samples, `NAME(parameters, i64 samples, ptr tape, i64 tape_bytes)`: each
    thread has a slab of `tape_bytes`, and the kernel traps where one is too small. See `grid_of`."""
    module = sample_module(program, name, parameters, slots, [""])
    return joined(_with_arena(module), kernel_text(name, parameters, "", device=device, slab=None))


def _with_arena(module: Module) -> str:
    from irgrad.engine.ir.printer import to_text

    for word in TAPE:
        module.functions.pop(word, None)
    return joined(to_text(module), ARENA)


def sample_module(
    program: Program, name: str, parameters: Sequence[GridParameter], slots: Sequence[GridSlot], batch: Sequence[str]
) -> Module:
    """`NAME.sample` with all that it calls inside, memory from its arena, and nothing that a device cannot run."""
    from irgrad.engine.codegen.jit import LLVM_LOCK
    from irgrad.engine.codegen.nvptx import SAMPLE, refuse_host_code
    from irgrad.engine.codegen.passes import Code, Settings, run_passes
    from irgrad.engine.codegen.target import HOST
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.pipeline.derivatives import link_runtime

    inner = f"{name}.sample"
    body = sample_text(program.stage.name, name, parameters, slots, batch, program.status_slot)
    refuse_hosted(program.stage.text, repr(program), "device code")
    rows = link_runtime(program.stage.text, arena=False).splitlines()
    rows = [row for row in rows if not (row.startswith("declare ") and "@irgrad.tape.carve(" in row)]
    text = joined("\n".join([*rows, CARVE]), body)
    with LLVM_LOCK:
        code = run_passes(SAMPLE, Code(text, roots=[inner]), Settings((inner,), level=2, machine=HOST.machine()))
        text = code.text
        code.close()
    module = read(text, roots=[inner])
    adopt_memory(module, inner)
    refuse_host_code(module, TAPE)
    return module
