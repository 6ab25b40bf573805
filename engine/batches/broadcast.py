"""`broadcast`: a kernel of numbers over arrays, as NumPy's functions are: the shapes of its arguments are broadcast.

Derivatives are forward mode inside reverse mode (Revels et al., Dynamic Automatic Differentiation of GPU Broadcast
Kernels, 2018): one pass over the samples computes the value and its partials by each argument, p of them, and both a
tangent and a cotangent are then products with them. A cotangent of an axis that was broadcast is summed over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from irgrad.engine.batches.batched import batch, batch_jvp, batch_value_and_grad
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.run import like
from irgrad.engine.kernel.select import plain_kernel, scalar_output, selected
from irgrad.engine.signature.parameter import Wrt
from irgrad.engine.support.foreign import bridge_function
from irgrad.rules.errors import ShapeError, SignatureError

__all__ = ["MODES", "Broadcast", "broadcast"]

Array = np.ndarray[Any, Any]
MODES = ("auto", "forward", "reverse")
FEW = 4
"""Partials up to which a kernel with loops computes them by as many forward passes: each costs little more than the
value, and needs no tape."""


class Broadcast:
    """A function of arrays, made by `broadcast`. Thread-safe.

    kernel: what runs for each element; wrt: positions of the arguments that partials are taken by
    """

    def __init__(self, kernel: Kernel, wrt: Wrt, mode: str, threads: int | None) -> None:
        kernel = plain_kernel(kernel)
        arrays = [p.name for p in kernel.signature.parameters if p.shape]
        if arrays or len(kernel.output_positions) != 1:
            what = f"`{arrays[0]}` is an array" if arrays else f"it has {len(kernel.output_positions)} results"
            raise SignatureError("the kernel cannot be broadcast", where=f"`{kernel.signature}`",
                                 because=f"{what}, and what is broadcast takes numbers and returns one",
                                 fix="batch(kernel)   or   jax.vmap(kernel)")  # fmt: skip
        scalar_output(kernel)  # raises where it is no floating-point number
        if mode not in MODES:
            raise SignatureError(f"mode = {mode!r} is not known", fix="mode = " + " or ".join(map(repr, MODES)))
        self.kernel, self.mode, self.threads = kernel, mode, threads
        positions, self.single = selected(kernel, wrt, None, all_floats=True)
        self.wrt = tuple(positions)
        self._batches: dict[Any, Any] = {}
        self.__name__ = f"broadcast_{kernel.name}"

    def __call__(self, *args: Any) -> Any:
        """The value for each element of the broadcast arguments.

        Takes arrays of the kernel's dtypes and numbers; values of JAX too. Raises ShapeError where the shapes do not
        fit, and what the kernel raises.
        """
        bridge = bridge_function(args, "broadcast")
        if bridge is not None:
            return bridge(self, args)
        values, shape = self._values(args)
        flat, axes = _flat(values, shape)
        return self._batch(axes, "value")(*flat).reshape(shape)

    def value_and_partials(self, *args: Any) -> tuple[Array, Any]:
        """The value and its partial derivatives by the arguments in `wrt`, each of the broadcast shape: an array, or a
        tuple of them where `wrt` is one. Raises as the call does.
        """
        values, shape = self._values(args)
        value, partials = self._partials(values, shape)
        return value, partials[0] if self.single else partials

    def vjp(self, *args: Any) -> tuple[Array, Callable[[Any], Any]]:
        """The value and the pullback: `pullback(cotangent)` gives the cotangents of the arguments in `wrt`, each of its
        argument's shape. Everything is computed in the first pass: a pullback multiplies and sums."""
        values, shape = self._values(args)
        value, partials = self._partials(values, shape)

        def pullback(cotangent: Any) -> Any:
            """The cotangents of the arguments, summed over the axes that were broadcast."""
            given = like(cotangent, value, "cotangent")
            rows = [_reduced(given * partial, np.shape(values[i])) for partial, i in
                    zip(partials, self.wrt, strict=True)]  # fmt: skip
            return rows[0] if self.single else tuple(rows)

        return value, pullback

    def by_forward_passes(self, partials: int) -> bool:
        """Whether this many partials are computed by forward passes, one each, rather than by one reverse pass."""
        if self.mode != "auto":
            return self.mode == "forward"
        return partials <= FEW and not self.straight

    @cached_property
    def straight(self) -> bool:
        """Whether nothing of the kernel loops, so that its reverse pass needs no tape."""
        one = [np.zeros(1, p.dtype.numpy) for p in self.kernel.signature.arguments]
        return batch(self.kernel, in_axes=0).strategy_at(*one).name == "scalars"

    def _batch(self, axes: tuple[int | None, ...], what: str) -> Any:
        """The batched function of the value, or of value and partials, for these axes."""
        found = self._batches.get((axes, what))
        if found is None:
            wrt = () if what == "value" else (self.wrt,)
            make: Any = batch_value_and_grad if wrt else batch
            found = self._batches[axes, what] = make(self.kernel, *wrt, in_axes=axes, threads=self.threads)
        return found

    def _partials(self, values: Sequence[Any], shape: tuple[int, ...]) -> tuple[Array, tuple[Array, ...]]:
        flat, axes = _flat(values, shape)
        if not self.by_forward_passes(len(self.wrt)):
            value, found = self._batch(axes, "partials")(*flat)
        else:
            rows = [batch_jvp(self.kernel, flat, _unit(flat, i), in_axes=axes, threads=self.threads) for i in self.wrt]
            value, found = rows[0][0], tuple(row[1] for row in rows)
        return value.reshape(shape), tuple(row.reshape(shape) for row in found)

    def _values(self, args: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]]:
        """The arguments as arrays, and the shape that they are broadcast to."""
        arguments = self.kernel.signature.arguments
        given = self.kernel.ordered(tuple(args), {})
        values = [value if isinstance(value, np.ndarray) else np.asarray(value, p.dtype.numpy)
                  for value, p in zip(given, arguments, strict=True)]  # fmt: skip
        try:
            return values, np.broadcast_shapes(*(value.shape for value in values))
        except ValueError:
            shapes = ", ".join(f"`{p.name}` {value.shape}" for value, p in zip(values, arguments, strict=True))
            raise ShapeError("the shapes cannot be broadcast", where=f"`{self.kernel.signature}`",
                             because=f"they are {shapes}",
                             fix="axes that differ have to be of size 1: x[:, None]") from None  # fmt: skip

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.kernel.signature}>"


def broadcast(kernel: Kernel, wrt: Wrt = None, *, mode: str = "auto", threads: int | None = None) -> Broadcast:
    """A kernel of numbers as a function of arrays: `broadcast(kernel)(x[:, None], y)`, with NumPy's broadcasting.

    wrt:     the arguments that derivatives are taken by, by default all of floating point
    mode:    how partials are computed: "reverse", one reverse pass for all of them; "forward", a forward pass for each;
             "auto", the latter for kernels with loops and few partials
    threads: as for `batch`

    The result has `value_and_partials(*args)` and `vjp(*args)`. Under JAX its derivative is one native call, which
    gives the value and the partials, and products of XLA: `jax.grad` calls nothing native in its reverse pass.
    Raises SignatureError for a kernel with arrays or several results, or another word for `mode`, and ActivityError
    for one whose result is an integer.

        >>> irgrad.broadcast(f)(np.array([[1.0], [2.0]]), np.array([3.0, 4.0]))
        array([[ 3.,  4.],
               [12., 16.]])
    """
    return Broadcast(kernel, wrt, mode, threads)


def _flat(values: Sequence[Array], shape: tuple[int, ...]) -> tuple[list[Any], tuple[int | None, ...]]:
    """The arguments as samples side by side, those of one element shared; and where the samples are."""
    alone = all(value.size == 1 for value in values)
    flat: list[Any] = []
    axes: list[int | None] = []
    for number, value in enumerate(values):
        shared = value.size == 1 and not (alone and number == 0)
        whole = value if value.shape == shape else np.broadcast_to(value, shape)
        flat.append(value.reshape(()) if shared else whole.reshape(-1))
        axes.append(None if shared else 0)
    return flat, tuple(axes)


def _unit(flat: Sequence[Array], position: int) -> list[Array | None]:
    """Tangents of one in the direction of one argument."""
    return [np.ones_like(value) if number == position else None for number, value in enumerate(flat)]


def _reduced(array: Array, shape: tuple[int, ...]) -> Array:
    """An array summed over the axes that `shape` lacks or has once."""
    ahead = array.ndim - len(shape)
    axes = [*range(ahead), *(ahead + i for i, size in enumerate(shape) if size == 1 and array.shape[ahead + i] != 1)]
    return np.asarray(array.sum(axis=tuple(axes))).reshape(shape)
