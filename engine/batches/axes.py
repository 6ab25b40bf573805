"""Arguments of a batch: which of them are batched, along which axis, how many samples there are.

Every argument is checked as a single call would check it, on the first sample; errors name the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from irgrad.engine.kernel.binding import Bound, as_array
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import ShapeError, SignatureError

__all__ = ["AxesSpec", "Data", "Operands", "data_of", "operands_of", "strides_of"]

Array = np.ndarray[Any, Any]
AxesSpec = int | Sequence[int | None] | Mapping[str, int | None] | None


@dataclass(frozen=True, slots=True)
class Data:
    """A buffer with or without samples: byte strides between samples (0: one for all) and between elements."""

    array: Array
    sample: int
    element: int


@dataclass(frozen=True, slots=True)
class Operands:
    """Arguments of a batched call.

    samples: how many;  axes: C parameter -> axis of the batch;  bound: buffers of the first sample, sizes
    data:    C parameter -> where its samples are
    """

    samples: int
    axes: dict[int, int]
    bound: Bound
    data: dict[int, Data]


def operands_of(kernel: Kernel, values: Sequence[Any], in_axes: AxesSpec, layout: str) -> Operands:
    """Check the arguments of a batched call, given in the order of `kernel.signature.arguments`.

    Raises ShapeError (an axis that is not there, extents that differ, no batched argument, shapes), DTypeError,
    SignatureError (in_axes).
    """
    signature, arguments = kernel.signature, kernel.signature.arguments
    index = {p.name: i for i, p in enumerate(signature.parameters)}
    wanted = _axes(signature, arguments, values, in_axes, layout)
    axes: dict[int, int] = {}
    arrays: dict[int, Array] = {}
    samples, first = -1, ""
    for p, value, axis in zip(arguments, values, wanted, strict=True):
        if axis is None:
            continue
        array = value if _ready(value, p) else as_array(value, _input(p))
        at = _axis(p, array, axis)
        extent = array.shape[at]
        if samples not in (-1, extent):
            raise ShapeError(f"`{p.name}` has {extent} samples, wanted {samples}", where=f"`{signature}`",
                             because=f"axis {at} of `{p.name}` has extent {extent}, and {first} has {samples}",
                             fix="give every batched argument the same extent, or say with in_axes= which are batched")
        if samples < 0:
            samples, first = extent, f"axis {at} of `{p.name}`"
        axes[index[p.name]], arrays[index[p.name]] = at, array
    if samples < 0:
        raise ShapeError("no argument is batched", where=f"`{signature}`",
                         because="no argument has one axis more than the signature says" if in_axes is None
                         else "every entry of in_axes is None",
                         fix="in_axes=0   or   one axis (or None) per argument, as in jax.vmap")
    bound = kernel.bind(tuple(_first(kernel, value, axes, arrays, index[p.name])
                              for p, value in zip(arguments, values, strict=True)), {})  # fmt: skip
    data = {i: data_of(arrays[i], axes[i]) for i in axes}
    for i, buffer in enumerate(bound.buffers):
        if buffer is not None and i not in data:
            data[i] = Data(buffer, 0, buffer.itemsize)
    return Operands(samples, axes, bound, data)


def _ready(value: Any, p: Parameter) -> bool:
    return type(value) is np.ndarray and value.dtype == p.dtype.numpy and bool(value.flags.carray)


@cache
def _input(p: Parameter) -> Parameter:
    """The parameter as one that is only read: its array is not copied."""
    return replace(p, intent="in")


def data_of(array: Array, axis: int) -> Data:
    """Where the samples of an array are; one whose axis is neither the first nor the last is copied."""
    if axis not in (0, array.ndim - 1):
        array = np.moveaxis(array, axis, 0)
        axis = 0
    array = np.ascontiguousarray(array)
    return Data(array, *strides_of(array.shape, axis, array.itemsize))


def strides_of(shape: Sequence[int], axis: int, itemsize: int) -> tuple[int, int]:
    """(sample, element) strides of a C-ordered array whose batch axis is the first or the last."""
    if axis == 0:
        count = 1
        for extent in shape[1:]:
            count *= extent
        return count * itemsize, itemsize
    return itemsize, shape[axis] * itemsize


def _axes(
    signature: Signature, arguments: Sequence[Parameter], values: Sequence[Any], in_axes: AxesSpec, layout: str
) -> list[int | None]:
    names = [p.name for p in arguments]
    if in_axes is None:
        last = layout == "soa"
        return [(-1 if last else 0) if np.ndim(v) == len(p.shape or ()) + 1 else None
                for v, p in zip(values, arguments, strict=True)]  # fmt: skip
    if isinstance(in_axes, Mapping):
        unknown = [name for name in in_axes if name not in names]
        if unknown:
            raise SignatureError(f"in_axes names `{unknown[0]}`, which is no argument", where=f"`{signature}`",
                                 fix=f"the arguments are {', '.join(names)}")
        return [_checked(in_axes.get(name), name, signature) for name in names]
    if isinstance(in_axes, int) and not isinstance(in_axes, bool):
        return [in_axes] * len(names)
    rows = list(in_axes) if isinstance(in_axes, Sequence) and not isinstance(in_axes, str) else None
    if rows is None or len(rows) != len(names):
        got = f"{len(rows)} entries" if rows is not None else repr(in_axes)
        raise SignatureError(f"in_axes has {got}, wanted {len(names)}", where=f"`{signature}`",
                             because=f"the arguments of the call are {', '.join(names)}",
                             fix="one axis or None per argument, or a dictionary by names")
    return [_checked(row, name, signature) for row, name in zip(rows, names, strict=True)]


def _checked(axis: Any, name: str, signature: Signature) -> int | None:
    if axis is None or (isinstance(axis, int) and not isinstance(axis, bool)):
        return axis
    raise SignatureError(f"in_axes of `{name}` is {axis!r}", where=f"`{signature}`",
                         because="wanted an integer or None", fix=f'in_axes={{"{name}": 0}}')


def _axis(p: Parameter, array: Array, axis: int) -> int:
    rank = len(p.shape or ()) + 1
    if array.ndim != rank:
        raise ShapeError(f"`{p.name}` has rank {array.ndim}, wanted rank {rank}", where=f"`{p}`",
                         because=f"its shape is {array.shape}, and in_axes says that it is batched along axis {axis}",
                         fix=f"in_axes=None for `{p.name}` to share it, or give it one axis more than the signature")
    if not -rank <= axis < rank:
        raise ShapeError(f"`{p.name}` has no axis {axis}", where=f"`{p}`", because=f"its shape is {array.shape}",
                         fix=f"in_axes from {-rank} to {rank - 1} for `{p.name}`")
    return axis % rank


def _first(kernel: Kernel, value: Any, axes: Mapping[int, int], arrays: Mapping[int, Array], index: int) -> Any:
    """What the first sample gives for an argument."""
    if index not in axes:
        return value
    p, array, axis = kernel.signature.parameters[index], arrays[index], axes[index]
    if not p.is_array and any(p.name in e.names() for q in kernel.signature.parameters for e in q.shape or ()):
        raise ShapeError(f"`{p.name}` is batched", where=f"`{kernel.signature}`",
                         because="it determines the shape of an array, and all samples have the same shapes",
                         fix=f"in_axes=None for `{p.name}`")
    if array.shape[axis] == 0:
        core = tuple(n for k, n in enumerate(array.shape) if k != axis)
        return np.zeros(core, array.dtype)[()]
    return array[0] if axis == 0 else np.take(array, 0, axis)[()]
