"""`irgrad.parallel.map` under JAX: `jax.vmap` of the kernel, which is one native call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from irgrad.engine.constructs.parallel import Map

__all__ = ["mapped"]


def mapped(made: Map, args: tuple[Any, ...]) -> Any:
    """The kernel for each element of its arguments. Raises as `jax.vmap` and the kernel do."""
    arguments = made.kernel.signature.arguments
    values = made.kernel.ordered(args, {})
    axes = made.in_axes
    if axes is None:
        axes = tuple(0 if jnp.ndim(value) > len(p.shape or ()) else None
                     for value, p in zip(values, arguments, strict=True))  # fmt: skip
    elif isinstance(axes, Mapping):
        axes = tuple(axes.get(p.name) for p in arguments)
    elif not isinstance(axes, int):
        axes = tuple(axes)
    return jax.vmap(made.kernel, in_axes=axes)(*values)
