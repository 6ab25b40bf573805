"""Several devices: values that vary along mesh axes (`shard_map`), and batches that XLA cuts over devices (`jit`).

Under `shard_map(check_vma=True)` a value's type says along which mesh axes it varies. Operands of one call are made to
vary along the same ones, and so do its results.

Under plain `jit` XLA may partition a custom call along leading axes that every operand and result has, if its target is
registered for that. An operand that is not batched has size 1 there, which cannot be cut: it is repeated along the
batch first where that costs less than what the call reads and writes anyway, and only where there are several devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir
from jax.sharding import PartitionSpec

__all__ = ["alike", "call_target", "several", "varying"]


def alike(operands: Sequence[Any]) -> list[Any]:
    """The operands, each varying along every mesh axis that one of them varies along."""
    axes = [_axes(jax.typeof(x)) for x in operands]
    union = frozenset[str]().union(*axes)
    if not union:
        return list(operands)
    return [_spread(x, tuple(sorted(union - own))) for x, own in zip(operands, axes, strict=True)]


def varying(aval: Any, operands: Sequence[Any]) -> Any:
    """The type of a result: it varies as the operands (which are alike) do."""
    operand = next((x for x in operands if _axes(x)), None)
    if operand is None:
        return aval
    whole = operand.sharding.update(spec=PartitionSpec(*(None,) * len(aval.shape)))
    return operand.update(shape=aval.shape, dtype=aval.dtype, weak_type=False, sharding=whole)


def _axes(aval: Any) -> frozenset[str]:
    own = getattr(aval, "vma", None)  # its name before jax 0.10
    if own is None:
        own = getattr(getattr(aval, "manual_axis_type", None), "varying", None)
    return frozenset(own or ())


def _spread(value: Any, axes: tuple[str, ...]) -> Any:
    if not axes:
        return value
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return getattr(jax.lax, "pvary")(value, axes)  # noqa: B009 - before jax 0.10


def call_target(
    ctx: Any, target: str, operands: Sequence[Any], meta: Any, axes: int, in_place: Mapping[int, int]
) -> Any:
    """Lower one call of an FFI target whose first `axes` axes are batch axes.

    in_place: {operand: result} that share memory where their types are equal; XLA copies an operand that is used again
    """
    aliases = {n: m for n, m in in_place.items() if ctx.avals_in[n].shape == ctx.avals_out[m].shape}
    lowering = jax.ffi.ffi_lowering(target, operand_output_aliases=aliases)
    shapes = [aval.shape for aval in (*ctx.avals_in, *ctx.avals_out)]
    if not axes or not several(ctx) or not all(isinstance(n, int) for shape in shapes for n in shape):
        return lowering(ctx, *operands, meta=meta)
    ctx, operands = _repeated(ctx, list(operands), axes)
    common = _common_axes([aval.shape for aval in (*ctx.avals_in, *ctx.avals_out)], axes)
    if not common:
        return lowering(ctx, *operands, meta=meta)
    if all(len(aval.shape) == common for aval in (*ctx.avals_in, *ctx.avals_out)):
        ctx, operands = _cored(ctx, operands)
        aliases.pop(0, None)
    jax.ffi.register_ffi_target_as_batch_partitionable(target)
    lowering = jax.ffi.ffi_lowering(target, operand_output_aliases=aliases, extra_attributes={
        "mhlo.frontend_attributes": mlir.ir_attribute({"num_batch_dims": str(common)}),
        "sdy.sharding_rule": ir.Attribute.parse(_rule(ctx, common)),
    })
    return lowering(ctx, *operands, meta=meta)


def several(ctx: Any) -> bool:
    """Whether XLA may partition the program: more than one device, and not inside of a manual region."""
    context = ctx.module_context.axis_context
    return getattr(context, "num_devices", 1) > 1 and not getattr(context, "manual_axes", ())


def _repeated(ctx: Any, operands: list[Any], axes: int) -> tuple[Any, list[Any]]:
    """Operands of size 1 along batch axes, repeated along them where that is cheap."""
    batch = ctx.avals_out[0].shape[:axes]
    traffic = sum(math.prod(a.shape) * a.dtype.itemsize for a in (*ctx.avals_in, *ctx.avals_out))
    avals = list(ctx.avals_in)
    for n, aval in enumerate(avals):
        full = (*batch, *aval.shape[axes:])
        if full != aval.shape and math.prod(full) * aval.dtype.itemsize <= traffic:
            avals[n] = aval.update(shape=full)
            places = ir.DenseI64ArrayAttr.get(list(range(len(full))))
            kind = ir.RankedTensorType.get(full, ir.RankedTensorType(operands[n].type).element_type)
            operands[n] = stablehlo.broadcast_in_dim(kind, operands[n], places)
    return ctx.replace(avals_in=tuple(avals)), operands


def _cored(ctx: Any, operands: list[Any]) -> tuple[Any, list[Any]]:
    """The first operand with one more axis, of size 1: XLA gathers a batch of which nothing has another axis."""
    avals, shape = list(ctx.avals_in), (*ctx.avals_in[0].shape, 1)
    avals[0] = avals[0].update(shape=shape)
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(operands[0].type).element_type)
    return ctx.replace(avals_in=tuple(avals)), [stablehlo.reshape(kind, operands[0]), *operands[1:]]


def _common_axes(shapes: Sequence[tuple[int, ...]], axes: int) -> int:
    """How many leading axes have one size everywhere. Counting an axis of size 1 would give wrong results."""
    common = 0
    while common < axes and len({shape[common] for shape in shapes}) == 1:
        common += 1
    return common


def _rule(ctx: Any, common: int) -> str:
    """Shardy's rule: the batch axes are factors of their own, every other axis stays whole on a device."""
    sizes: list[int] = list(ctx.avals_out[0].shape[:common])

    def axes_of(shape: tuple[int, ...]) -> str:
        names = list(range(common))
        for size in shape[common:]:
            names.append(len(sizes))
            sizes.append(size)
        return "[" + ", ".join(f"{_letter(n)}" for n in names) + "]"

    left = ", ".join(axes_of(aval.shape) for aval in ctx.avals_in)
    right = ", ".join(axes_of(aval.shape) for aval in ctx.avals_out)
    factors = ", ".join(f"{_letter(n)}={size}" for n, size in enumerate(sizes))
    whole = ", ".join(_letter(n) for n in range(common, len(sizes)))
    replicated = f" need_replication={{{whole}}}" if whole else ""
    return f"#sdy.op_sharding_rule<({left})->({right}) {{{factors}}}{replicated}, custom>"


def _letter(number: int) -> str:
    """Shardy's names of factors: i ... z, then z_1, z_2, ..."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"

