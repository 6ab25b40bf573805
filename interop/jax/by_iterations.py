"""Calls of kernels as devices have them: independent loops stay apart, and no tape goes from call to call.

A kernel whose source promises something of its loops has a second form, in which independent loops call a function for
each iteration and nothing is vectorised before it is differentiated. Its tape is not that of the first form, which JAX
has sized when it traced the call; each sweep makes its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irgrad.engine.grids.threads_of_loops import by_iterations
from irgrad.engine.signature.slots import TAPE
from irgrad.interop.jax.algebra import Spec

__all__ = ["with_tape", "without_tape"]


def without_tape(ctx: Any, operands: Sequence[Any], spec: Spec) -> tuple[Any, list[Any], Spec]:
    """The call of the kernel `by_iterations`, which neither gets nor gives a tape: each iteration has its own. The call
    as it is where that is the same kernel."""
    kernel = by_iterations(spec.kernel)
    if kernel is spec.kernel:
        return ctx, list(operands), spec
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
