"""Several devices: values that vary along mesh axes (`shard_map`), and batches that XLA cuts over devices (`jit`).

Under `shard_map(check_vma=True)` a value's type says along which mesh axes it varies. Operands of one call are made to
vary along the same ones, and so do its results.

Under plain `jit` XLA may partition a custom call along leading axes that every operand and result has, if its target is
registered for that. An operand that is not batched has size 1 there, which cannot be cut: it is repeated along the
batch where that costs less than what the call reads and writes anyway, else once for each device (see `cut`), and only
where there are several devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir
from jax.sharding import PartitionSpec

from irgrad.rules.errors import ShapeError

__all__ = ["Cut", "alike", "call_target", "cut", "several", "varying"]


def alike(operands: Sequence[Any]) -> list[Any]:
    """The operands, each varying along every mesh axis that one of them varies along."""
    axes = [_axes(jax.typeof(x)) for x in operands]
    union = frozenset[str]().union(*axes)
    if not union:
        return list(operands)
    return [_spread(x, tuple(sorted(union - own))) for x, own in zip(operands, axes, strict=True)]


def varying(aval: Any, operands: Sequence[Any], axes: int = 0) -> Any:
    """The type of a result: it varies as the operands (which are alike) do, and where types say how values are sharded
    (meshes with explicit axes) its first `axes` axes, those of the batch, are sharded as theirs.

    Raises ShapeError for an operand that is sharded along another axis: a kernel needs that whole.
    """
    operand = next((x for x in operands if _axes(x)), None)
    if operand is not None:
        whole = operand.sharding.update(spec=PartitionSpec(*(None,) * len(aval.shape)))
        return operand.update(shape=aval.shape, dtype=aval.dtype, weak_type=False, sharding=whole)
    typed = [x for x in operands if not x.sharding.mesh.empty]
    if not typed:
        return aval
    spec: list[Any] = [None] * len(aval.shape)
    for x in typed:
        for k, name in enumerate(x.sharding.spec):
            if name is None:
                continue
            if k >= axes or spec[k] not in (None, name):
                raise ShapeError(f"a kernel gets {x.str_short()}", because=f"axis {k} is sharded over {name!r}, and "
                                 + ("no axis of the batch" if k >= axes else f"over {spec[k]!r} in another argument"),
                                 fix="jax.sharding.reshard(x, jax.P(...)) with the axes of single samples whole")
            spec[k] = name
    return aval.update(sharding=typed[0].sharding.update(spec=PartitionSpec(*spec)))


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


class Cut(NamedTuple):
    """A call with batch axes, arranged so that XLA may cut it over devices.

    batch: sizes of its batch axes; common: how many of them, from the first, every operand and result has; back: what
    becomes of the results
    """

    ctx: Any
    operands: Sequence[Any]
    batch: tuple[Any, ...]
    common: int
    back: Callable[[Sequence[Any]], Sequence[Any]]


def cut(ctx: Any, operands: Sequence[Any], batch: tuple[Any, ...]) -> Cut:
    """Arrange a call with batch axes for several devices.

    An axis of n samples along which an operand has size 1 becomes two: one of as many pieces as devices can share, in
    front, along which the operand is repeated (on a device that has one piece that is no more than the operand itself),
    and one of the samples of a piece. So do the axes behind such a one, since XLA cuts leading axes only.
    """
    shapes = [aval.shape for aval in (*ctx.avals_in, *ctx.avals_out)]
    if not several(ctx) or not all(isinstance(n, int) for shape in shapes for n in shape):
        return Cut(ctx, operands, batch, 0, lambda rows: rows)
    axes = len(batch)
    ctx, operands = _repeated(ctx, list(operands), axes)
    common = _common_axes([aval.shape for aval in (*ctx.avals_in, *ctx.avals_out)], axes)
    devices = ctx.module_context.axis_context.num_devices
    pieces = [math.gcd(n, devices) for n in batch[common:]]
    if all(n == 1 for n in pieces):
        return Cut(ctx, operands, batch, common, lambda rows: rows)
    rest = [n // piece for n, piece in zip(batch[common:], pieces, strict=True)]
    inside = (*batch[:common], *pieces, *rest)
    split = [_pieces(x, aval, common, pieces) for x, aval in zip(operands, ctx.avals_in, strict=True)]
    avals = [aval.update(shape=(*inside, *aval.shape[axes:])) for aval in ctx.avals_out]
    new = ctx.replace(avals_in=tuple(aval for _, aval in split), avals_out=tuple(avals))

    def back(rows: Sequence[Any]) -> Sequence[Any]:
        order = [common + k + side * len(pieces) for k in range(len(pieces)) for side in (0, 1)]
        return [_joined(y, aval.shape, common, order) for y, aval in zip(rows, ctx.avals_out, strict=True)]

    return Cut(new, [x for x, _ in split], inside, common + len(pieces), back)


def _pieces(x: Any, aval: Any, common: int, pieces: Sequence[int]) -> tuple[Any, Any]:
    """An operand with each axis behind the common ones as (piece, sample of a piece), all pieces in front."""
    head, axes, core = aval.shape[:common], aval.shape[common:][: len(pieces)], aval.shape[common + len(pieces) :]
    halves = [(piece, n // piece) if n > 1 else (1, 1) for n, piece in zip(axes, pieces, strict=True)]
    count = len(pieces)
    order = [*range(common), *(common + 2 * k for k in range(count)), *(common + 2 * k + 1 for k in range(count)),
             *range(common + 2 * count, common + 2 * count + len(core))]  # fmt: skip
    x = _reshaped(x, (*head, *(n for pair in halves for n in pair), *core))
    x = stablehlo.transpose(x, ir.DenseI64ArrayAttr.get(order))
    shape = (*head, *pieces, *(pair[1] for pair in halves), *core)
    if any(pair[0] != piece for pair, piece in zip(halves, pieces, strict=True)):
        x = _broadcast(x, shape)
    return x, aval.update(shape=shape)


def _joined(y: Any, shape: Sequence[int], common: int, order: Sequence[int]) -> Any:
    """A result with its pieces at their places again."""
    behind = common + len(order)
    count = len(ir.RankedTensorType(y.type).shape)
    y = stablehlo.transpose(y, ir.DenseI64ArrayAttr.get([*range(common), *order, *range(behind, count)]))
    return _reshaped(y, shape)


def _reshaped(x: Any, shape: Sequence[int]) -> Any:
    return stablehlo.reshape(ir.RankedTensorType.get(list(shape), ir.RankedTensorType(x.type).element_type), x)


def _broadcast(x: Any, shape: Sequence[int]) -> Any:
    """Axes of size 1 with the sizes of `shape`."""
    kind = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(x.type).element_type)
    return stablehlo.broadcast_in_dim(kind, x, ir.DenseI64ArrayAttr.get(list(range(len(shape)))))


def call_target(
    ctx: Any, target: str, operands: Sequence[Any], meta: Any, common: int, in_place: Mapping[int, int]
) -> Any:
    """Lower one call of an FFI target, which XLA may partition along the first `common` axes.

    in_place: {operand: result} that share memory where their types are equal; XLA copies an operand that is used again
    """
    aliases = {n: m for n, m in in_place.items() if ctx.avals_in[n].shape == ctx.avals_out[m].shape}
    if not common:
        return jax.ffi.ffi_lowering(target, operand_output_aliases=aliases)(ctx, *operands, meta=meta)
    if all(len(aval.shape) == common for aval in (*ctx.avals_in, *ctx.avals_out)):
        ctx, operands = _cored(ctx, list(operands))
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
            operands[n] = _broadcast(operands[n], full)
    return ctx.replace(avals_in=tuple(avals)), operands


def _cored(ctx: Any, operands: list[Any]) -> tuple[Any, list[Any]]:
    """The first operand with one more axis, of size 1: XLA gathers a batch of which nothing has another axis."""
    avals, shape = list(ctx.avals_in), (*ctx.avals_in[0].shape, 1)
    avals[0] = avals[0].update(shape=shape)
    return ctx.replace(avals_in=tuple(avals)), [_reshaped(operands[0], shape), *operands[1:]]


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

