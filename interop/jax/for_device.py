"""Calls of kernels as devices have them: independent loops stay apart, and no tape goes from call to call.

A kernel has a second form for devices (see `engine/grids/threads_of_loops.py`). Its tape is not that of the first form,
which JAX has sized when it traced the call. So each sweep makes its own, interleaved by thread; its size does not grow
with the number of samples. `tape="store"` keeps the first form, but for kernels whose source promises something of
their loops.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.tape.long_tapes import WholeTape
from irgrad.engine.grids.threads_of_loops import for_device
from irgrad.engine.normalise.iterations import promises
from irgrad.engine.signature.slots import TAPE
from irgrad.interop.programs.algebra import Spec

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["gpu_in_reach", "keeps_tape", "with_tape", "without_tape"]


def gpu_in_reach() -> bool:
    """Whether this process has a GPU, be it the default or not. A sweep there gives zeros in place of a tape, which one
    on the CPU must not read, wherever residuals are moved."""
    import jax

    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:
        return False


def keeps_tape(kernel: Kernel) -> bool:
    """Whether a tape goes from call to call on a device."""
    return kernel.options.tape == "store" and not promises(kernel.source.text)


def without_tape(ctx: Any, operands: Sequence[Any], spec: Spec) -> tuple[Any, list[Any], Spec]:
    """The call of the kernel `for_device`, which neither gets nor gives a tape. The call as it is where its tape has to
    be stored."""
    taped = spec.tape is not None or spec.reads_tape
    if taped and keeps_tape(spec.kernel):
        return ctx, list(operands), spec
    if spec.kernel.options.checkpoint and spec.cotangents is not None:
        warnings.warn(f"`{spec.kernel.name}` keeps a tape of all iterations on the GPU: `checkpoint` and `tape_memory` "
                      'are for the CPU. lib.kernel(..., device="cpu") keeps it there', WholeTape, stacklevel=2)
    kernel = for_device(spec.kernel)
    last, avals, rows = len(spec.inputs) - 1, list(ctx.avals_in), list(operands)
    if spec.reads_tape:
        del avals[last], rows[last]
    wanted = [aval for aval, index in zip(ctx.avals_out, spec.results, strict=True) if index != TAPE]
    ctx = ctx.replace(avals_in=tuple(avals), avals_out=tuple(wanted))
    return ctx, rows, replace(spec.plain if spec.tape is not None else spec, kernel=kernel)


def with_tape(spec: Spec, avals: Sequence[Any], results: Sequence[Any], zeros: Any = None) -> list[Any]:
    """The results with an array of zeros, `zeros(aval)`, in place of a tape that was not made."""
    import jax.numpy as jnp

    if len(results) == len(avals):
        return list(results)
    made = zeros or (lambda aval: jnp.zeros(aval.shape, aval.dtype))
    rest = iter(results)
    return [made(aval) if index == TAPE else next(rest) for aval, index in zip(avals, spec.results, strict=True)]
