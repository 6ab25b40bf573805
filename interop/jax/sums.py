"""Gradients of arguments that all samples share, summed where they are made: `foreign_sums`.

The gradient of a shared argument is a sum over samples. As rows of `foreign_call`, one for each sample, which XLA adds
up, it takes memory that grows with their number. On a GPU each thread has a row, to which it adds what its samples
give, and XLA adds up those. What is computed is the same but for the order of the sum, so every rule of JAX is that of
the rows and their sum; only the lowering for CUDA differs.

Under a further `vmap` there are groups of samples, those of the leading axes of the batch, and a sum for each: the
threads are shared out among the groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.core
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from irgrad.interop.jax.primitive import BINDER, bind, platforms_of, result_avals
from irgrad.interop.programs.algebra import Spec

__all__ = ["ROWS_OF_THREADS", "bind_sums", "foreign_sums", "wanted_here"]

ROWS_OF_THREADS: list[bool] = []
"""What is said by hand: whether sums are made on the device, in place of asking JAX for its devices."""

ON_DEVICE = "cuda"
"""The platform where they are."""

foreign_sums = Primitive("foreign_sums")
foreign_sums.multiple_results = True


def wanted_here(operands: Sequence[Any], batch: Sequence[Any]) -> bool:
    """Whether gradients of shared arguments are summed by `foreign_sums`: where JAX's default device is a GPU, the
    operands are not in parts on several devices, and there are several samples, of a known number."""
    if not all(isinstance(n, int) for n in batch) or math.prod(batch) < 2:
        return False
    types = [jax.typeof(x) for x in operands]
    if BINDER.get() is not None or any(getattr(t, "vma", None) or not t.sharding.mesh.empty for t in types):
        return False
    return ROWS_OF_THREADS[-1] if ROWS_OF_THREADS else jax.default_backend() == "gpu"


def bind_sums(
    spec: Spec, operands: Sequence[Any], sizes: Any, constants: Any, batch: Any, summed: tuple[bool, ...]
) -> list[Any]:
    """The results of a call; those that are `summed` have size 1 along all axes of the batch."""
    out: list[Any] = foreign_sums.bind(
        *operands, spec=spec, sizes=sizes, constants=constants, batch=batch, summed=summed, groups=0
    )
    return out


def _rows(
    *operands: Any, summed: tuple[bool, ...], groups: int, spec: Spec, sizes: Any, constants: Any, batch: Any
) -> list[Any]:
    """The same by rows of samples. groups: how many leading axes of the batch are not summed over."""
    axes = tuple(range(groups, len(batch)))
    found = bind(spec, operands, sizes, constants, batch)
    return [jax.numpy.sum(row, axis=axes, keepdims=True) if total else row
            for row, total in zip(found, summed, strict=True)]  # fmt: skip


def _avals(
    spec: Spec, sizes: Any, batch: tuple[Any, ...], summed: tuple[bool, ...], groups: int
) -> list[jax.core.ShapedArray]:
    whole = result_avals(spec, sizes, batch)
    ones = (*batch[:groups], *(1,) * (len(batch) - groups))
    return [aval.update(shape=(*ones, *aval.shape[len(batch) :])) if total else aval
            for aval, total in zip(whole, summed, strict=True)]  # fmt: skip


def _abstract(*operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Any, summed: Any, groups: int) -> Any:
    return _avals(spec, sizes, batch, summed, groups)


def _evaluate(*operands: Any, **params: Any) -> Any:
    return jax.jit(lambda *given: foreign_sums.bind(*given, **params))(*operands)


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    out = foreign_sums.bind(*primals, **params)
    live = [n for n, t in enumerate(tangents) if type(t) is not ad.Zero]

    def of_live(*given: Any) -> list[Any]:
        row = list(primals)
        for n, value in zip(live, given, strict=True):
            row[n] = value
        return _rows(*row, **params)

    _, moved = jax.jvp(of_live, [primals[n] for n in live], [tangents[n] for n in live])
    return out, moved


def _transpose(cotangents: Any, *operands: Any, **params: Any) -> list[Any]:
    linear = [n for n, value in enumerate(operands) if ad.is_undefined_primal(value)]
    kinds = [jax.ShapeDtypeStruct(operands[n].aval.shape, operands[n].aval.dtype) for n in linear]

    def of_linear(*given: Any) -> list[Any]:
        row = list(operands)
        for n, value in zip(linear, given, strict=True):
            row[n] = value
        return _rows(*row, **params)

    shapes = _avals(params["spec"], params["sizes"], params["batch"], params["summed"], params["groups"])
    given = [jax.numpy.zeros(a.shape, a.dtype) if type(c) is ad.Zero else c
             for a, c in zip(shapes, cotangents, strict=True)]  # fmt: skip
    found = iter(jax.linear_transpose(of_linear, *kinds)(given))
    return [next(found) if n in linear else None for n in range(len(operands))]


def _batched(operands: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    rows = [x[None] if d is None else jax.numpy.moveaxis(x, d, 0)
            for x, d in zip(operands, dims, strict=True)]  # fmt: skip
    params |= {"batch": (size, *params["batch"]), "groups": params["groups"] + 1}
    out = foreign_sums.bind(*rows, **params)
    return out, [0] * len(out)


def _lower(ctx: Any, *operands: Any, summed: tuple[bool, ...], groups: int, batch: Any, **params: Any) -> Any:
    """Rows of threads on a GPU, and rows of samples everywhere else."""
    from irgrad.interop.jax.device import lower_on_device

    if platforms_of(ctx) != (ON_DEVICE,) or params["spec"].kernel.options.keep_on:
        rows = mlir.lower_fun(_rows, multiple_results=True)
        return rows(ctx, *operands, summed=summed, groups=groups, batch=batch, **params)
    return lower_on_device(ctx, operands, params["spec"], params["sizes"], params["constants"], batch, summed, groups)


foreign_sums.def_abstract_eval(_abstract)
foreign_sums.def_impl(_evaluate)
ad.primitive_jvps[foreign_sums] = _jvp
ad.primitive_transposes[foreign_sums] = _transpose
batching.primitive_batchers[foreign_sums] = _batched
mlir.register_lowering(foreign_sums, _lower, cacheable=False)
