"""`irgrad.broadcast` under JAX: one native call for the value and its partials, and products in XLA.

The linear part of the derivative is `sum_j partial_j * tangent_j` in operations of XLA, which are transposed, batched,
fused and sharded as any others; what is known beforehand is one native call. After Revels et al. (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from irgrad.rules.errors import ShapeError

if TYPE_CHECKING:
    from irgrad.engine.batches.broadcast import Broadcast

__all__ = ["broadcast"]


def broadcast(made: Broadcast, args: tuple[Any, ...]) -> Any:
    """The value for each element of the broadcast arguments. Raises ShapeError where the shapes do not fit."""
    kernel = made.kernel
    given = kernel.ordered(args, {})
    values = [value if hasattr(value, "dtype") else jnp.asarray(value, p.dtype.numpy)
              for value, p in zip(given, kernel.signature.arguments, strict=True)]  # fmt: skip
    try:
        shape = jnp.broadcast_shapes(*(jnp.shape(value) for value in values))
    except ValueError as error:
        raise ShapeError("the shapes cannot be broadcast", where=f"`{kernel.signature}`", because=str(error),
                         fix="axes that differ have to be of size 1: x[:, None]") from None  # fmt: skip

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def whole(*values: Any) -> Any:
        return _mapped(kernel, values, shape)

    def derivative(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        moved = [i for i in made.wrt if not isinstance(tangents[i], SymbolicZero)]
        if not moved:
            value = _mapped(kernel, primals, shape)
            return value, jnp.zeros_like(value)
        value, partials = _partials(made, primals, moved, shape)
        return value, sum(partial * tangents[i] for partial, i in zip(partials, moved, strict=True))

    whole.defjvp(derivative, symbolic_zeros=True)
    return whole(*values)


def _mapped(function: Any, values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """A function of numbers for all samples, as one native call."""
    alone = all(jnp.size(value) == 1 for value in values)
    if alone:
        found = function(*(jnp.reshape(value, ()) for value in values))
    else:
        axes = tuple(None if jnp.size(value) == 1 else 0 for value in values)
        flat = [jnp.reshape(value, ()) if axis is None else jnp.broadcast_to(value, shape).reshape(-1)
                for value, axis in zip(values, axes, strict=True)]  # fmt: skip
        found = jax.vmap(function, in_axes=axes)(*flat)
    return jax.tree.map(lambda row: jnp.reshape(row, shape), found)  # the value, or the value and partials


def _partials(made: Broadcast, values: Sequence[Any], moved: list[int], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The value and its partials by the arguments `moved`."""
    kernel: Any = made.kernel
    if not made.by_forward_passes(len(moved)):
        return _mapped(jax.value_and_grad(kernel, tuple(moved)), values, shape)  # type: ignore[no-any-return]

    def along(position: int) -> Any:
        def one(*numbers: Any) -> Any:
            return jax.jvp(lambda x: kernel(*numbers[:position], x, *numbers[position + 1 :]),
                           (numbers[position],), (jnp.ones_like(numbers[position]),))  # fmt: skip

        return _mapped(one, values, shape)

    rows = [along(position) for position in moved]
    return rows[0][0], [row[1] for row in rows]
