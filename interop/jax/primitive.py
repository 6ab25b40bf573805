"""The primitive `foreign_call`: evaluation, shapes, lowering.

Parameters: spec (see `algebra`), sizes (names in extents and their values), constants (scalar arguments that are not
operands, as bits), batch (sizes of the batch axes, which stand in front of every operand and result; an operand that is
not batched along one has size 1 there). All are hashable, and equal for equal programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax.core
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from irgrad.engine.kernel.programs import Program
from irgrad.engine.signature.slots import RETURN, TAPE
from irgrad.interop.jax.batched import batch_strategy, batched_layout, register_batched, uses_of
from irgrad.interop.jax.handler import register
from irgrad.interop.jax.host_transfer import register_transfer
from irgrad.interop.jax.sharding import alike, call_target, cut, several, varying
from irgrad.interop.jax.status import on_own_thread
from irgrad.interop.jax.tape_limit import is_bounded
from irgrad.interop.programs.algebra import (
    Spec,
    in_place,
    layout,
    program_of,
    result_numbers,
    sizes_of,
    used_operands,
)
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["BINDER", "LOWERINGS", "bind", "foreign_call", "platforms_of", "result_avals"]

Shape = tuple[int, ...]

foreign_call = Primitive("foreign_call")
foreign_call.multiple_results = True

Binder = Callable[[Spec, Sequence[Any], Any, Any, Shape], list[Any]]
BINDER: ContextVar[Binder | None] = ContextVar("irgrad_binder", default=None)
"""What is bound in the place of `foreign_call`: another adapter (see `hiprims`), or None."""


def bind(spec: Spec, operands: Any, sizes: Any, constants: Any, batch: Shape) -> list[Any]:
    """Bind the primitive. Under `shard_map` the operands are made to vary along the same mesh axes first."""
    if not spec.results:
        return []
    rows = alike(operands)
    binder = BINDER.get()
    if binder is not None:
        return binder(spec, rows, sizes, constants, batch)
    out: list[Any] = foreign_call.bind(*rows, spec=spec, sizes=sizes, constants=constants, batch=batch)
    return out


def result_avals(spec: Spec, sizes: Any, batch: Shape) -> list[jax.core.ShapedArray]:
    """Shapes and dtypes of the results."""
    names = dict(sizes)
    lanes = [()] * len(spec.values) + [spec.lanes] * len(spec.wanted)
    return [
        jax.core.ShapedArray((*batch, *spec.shape(i, names), *last), spec.dtype(i))
        for i, last in zip(spec.results, lanes, strict=True)
    ]


def _abstract(*operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Shape) -> list[jax.core.ShapedArray]:
    names = dict(sizes)
    widths = [(spec.width(n),) if spec.width(n) > 1 else () for n, (_, _, mask) in enumerate(spec.groups) for _ in mask]
    for operand, index, lane in zip(operands, spec.members, [*[()] * len(spec.inputs), *widths], strict=True):
        core = (*spec.shape(index, names), *lane)
        front = operand.shape[: len(batch)]
        fits = len(front) == len(batch) and all(n in (1, size) for n, size in zip(front, batch, strict=True))
        if not fits or operand.shape[len(batch) :] != core or operand.dtype != spec.dtype(index):
            name = "the tape" if index == TAPE else f"`{spec.kernel.primal.slots[index].name}`"
            raise IRGradError("an operand of foreign_call does not fit", which=f"{operand} for {name}",
                              because=f"wanted {spec.dtype(index)}{list(core)} behind the batch axes {batch}")
    return [varying(aval, operands, len(batch)) for aval in result_avals(spec, sizes, batch)]


@cache
def _jitted(spec: Spec, sizes: Any, constants: Any, batch: Shape) -> Any:
    count = len(spec.members)

    def call(*operands: Any) -> Any:
        if not isinstance(operands[0], jax.core.Tracer):  # JAX runs again, bit by bit, what has given a NaN
            what = f", of its derivative {spec}" if spec.groups else ""
            raise FloatingPointError(f"invalid value (nan or inf) in a result of `{spec.kernel.name}`{what}")
        return foreign_call.bind(*operands[:count], spec=spec, sizes=sizes, constants=constants, batch=batch)

    call.__name__ = call.__qualname__ = spec.kernel.name  # what JAX says of it
    return jax.jit(call)


def _evaluate(*operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Shape) -> Any:
    compiled = _jitted(spec, sizes, constants, batch)
    operands = operands or (0,)
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        with jax.disable_jit(False):  # that is about functions; a primitive is compiled in any case
            return compiled(*operands)
    return compiled(*operands)


def _lower_on_device(ctx: Any, *operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Shape) -> Any:
    from irgrad.interop.jax.device import lower_on_device
    from irgrad.interop.jax.device_parts import lower_in_parts

    if spec.kernel.options.keep_on == "cpu":
        return _lower(ctx, *operands, spec=spec, sizes=sizes, constants=constants, batch=batch, transfer=True)
    if all(n == 1 for n in batch):
        rows = lower_in_parts(ctx, operands, spec, sizes, constants, batch)
        if rows is not None:
            return rows
    ctx, operands, spec = _without_tape(ctx, operands, spec)
    return lower_on_device(ctx, operands, spec, sizes, constants, batch)


def _without_tape(ctx: Any, operands: Any, spec: Spec) -> tuple[Any, Any, Spec]:
    """The call without its tape, where nothing but the tape is made for it."""
    last = len(spec.inputs) - 1
    if spec.reads_tape and spec.cotangents is not None and _made_alone(operands[last]):
        operands = (*operands[:last], *operands[last + 1 :])
        ctx = ctx.replace(avals_in=(*ctx.avals_in[:last], *ctx.avals_in[last + 1 :]))
        spec = spec.plain
    return ctx, operands, spec


def _lower(
    ctx: Any, *operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Shape, transfer: bool = False
) -> Any:
    """A call on the host. transfer: in a program of a GPU, which the arrays have to be copied from and to."""
    ctx, operands, spec = _without_tape(ctx, operands, spec)
    program = program_of(spec)
    names, numbers = sizes_of(spec, sizes, constants)
    where = used_operands(spec, program)
    if len(where) < len(operands):  # XLA need not keep what the program has no slot for
        kept = sorted(where.values())
        ctx = ctx.replace(avals_in=tuple(ctx.avals_in[n] for n in kept))
        operands = tuple(operands[n] for n in kept)
        where = {key: kept.index(n) for key, n in where.items()}
    status = program.status_slot
    if status is not None and not several(ctx) and not transfer:
        ctx, operands = on_own_thread(ctx, operands)
    if batch:
        if status is not None:  # one more result, which stays here
            kind = program.slots[status].dtype.numpy
            ctx = ctx.replace(avals_out=(*ctx.avals_out, jax.core.ShapedArray(batch, kind)))
        call = cut(ctx, operands, batch)
        avals = call.ctx.avals_in
        target, words, places = _batched(spec, program, names, numbers, call.batch, avals, where)
        meta = np.array(words, np.int64)
        target = register_transfer(target) if transfer else target
        places = {} if is_bounded(program) else places
        rows = call.back(call_target(call.ctx, target, call.operands, meta, call.common, places))
        return rows if status is None else rows[:-1]
    target, words = register(program), layout(spec, program, names, numbers, where)
    target = register_transfer(target) if transfer else target
    places = {} if is_bounded(program) else in_place(words)
    return call_target(ctx, target, operands, np.array(words, np.int64), 0, places)


def _made_alone(tape: Any) -> bool:
    """Whether a call right here gives a tape and no values: both sweeps in one call are better then."""
    maker = tape.owner
    return getattr(maker, "name", "") == "stablehlo.custom_call" and len(maker.results) == 1


def _batched(
    spec: Spec, program: Program, sizes: dict[str, int], constants: dict[int, int], batch: Shape, avals: Any,
    operands: dict[Any, int],
) -> tuple[str, tuple[int, ...], dict[int, int]]:  # fmt: skip
    """Target and `meta` of a call with batch axes, and the operands that may share memory with a result."""
    last = len(batch) - 1
    results = result_numbers(spec)
    status: tuple[int, ...] = ()
    slot = program.status_slot
    if slot is not None:
        status = (len(results), _sampled(spec, batch, avals))
        results[program.slots[slot].index, ()] = len(results)
    shared = [isinstance(aval.shape[last], int) and aval.shape[last] == 1 for aval in avals[: len(operands)]]
    uses = uses_of(program, operands, results, tuple(constants), shared)
    strategy = batch_strategy(program, uses, sizes, batch[last] if isinstance(batch[last], int) else None)
    words = batched_layout(program, strategy, uses, sizes, operands, results, constants, len(batch), status)
    places = {operands[key]: result for key, result in results.items() if key in operands}
    return register_batched(program, strategy, uses), words, places


def _sampled(spec: Spec, batch: Shape, avals: Any) -> int:
    """The batch axes along which an input differs, as a bit mask: those that say which sample has failed."""
    inputs = avals[: len(spec.inputs)]
    sizes = [[aval.shape[k] for aval in inputs] for k in range(len(batch))]
    return sum(1 << k for k, row in enumerate(sizes) if any(not isinstance(n, int) or n != 1 for n in row))


LOWERINGS: dict[str, Callable[..., Any]] = {"cpu": _lower, "cuda": _lower_on_device}
"""How a call is lowered, by platform."""


def platforms_of(ctx: Any) -> tuple[str, ...]:
    """The platforms that an equation is lowered for: several in an export for several."""
    where = getattr(ctx, "jaxpr_eqn_ctx", None)
    if getattr(where, "compute_type", None) == "device_host":
        return ("cpu",)
    return tuple(getattr(ctx, "platforms", None) or ctx.module_context.platforms)


def _lower_anywhere(ctx: Any, *operands: Any, spec: Spec, **params: Any) -> Any:
    """One rule for all platforms: JAX makes no choice between rules that it may not cache, and this one looks at what
    made an operand."""
    platforms = platforms_of(ctx)
    if not set(platforms) <= set(LOWERINGS):
        _refuse(spec)
    if len(platforms) == 1:
        return LOWERINGS[platforms[0]](ctx, *operands, spec=spec, **params)

    def chosen(*given: Any) -> Any:
        def on(platform: str) -> Callable[..., Any]:
            return lambda *rows: _on_platform.bind(*rows, platform=platform, spec=spec, **params)

        return jax.lax.platform_dependent(*given, **{name: on(name) for name in platforms})

    return mlir.lower_fun(chosen, multiple_results=True)(ctx, *operands)


_on_platform = Primitive("foreign_call_on_platform")
_on_platform.multiple_results = True


def _lower_on_platform(ctx: Any, *operands: Any, platform: str, **params: Any) -> Any:
    return LOWERINGS[platform](ctx, *operands, **params)


def _refuse(spec: Spec) -> None:
    names = ", ".join(p.name for p in spec.kernel.signature.parameters) or RETURN
    raise Unsupported(f"`{spec.kernel.name}` cannot run on this platform", which=f"arguments {names}",
                      because="kernels are compiled for CPUs and for NVIDIA's GPUs",
                      fix='jax.config.update("jax_platforms", "cpu")   or   device_put the arguments to a CPU device')


foreign_call.def_abstract_eval(_abstract)
foreign_call.def_impl(_evaluate)
_on_platform.def_abstract_eval(lambda *operands, platform, **params: _abstract(*operands, **params))
mlir.register_lowering(_on_platform, _lower_on_platform, cacheable=False)
mlir.register_lowering(foreign_call, _lower_anywhere, cacheable=False)
