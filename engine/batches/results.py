"""Arrays that receive the results of a batch: new ones, or those of the caller, which are checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irgrad.engine.batches.axes import Operands
from irgrad.engine.batches.plan import LINE
from irgrad.engine.signature.slots import Slot
from irgrad.rules.errors import DTypeError, ShapeError, SignatureError

__all__ = ["arrays_for_results", "empty"]

Array = np.ndarray[Any, Any]
PLACED = 1 << 16  # bytes of an array of results from which it matters how its vectors lie in cache lines


def arrays_for_results(
    slots: Sequence[Slot], shapes: Sequence[tuple[int, ...]], given: Operands, wanted: dict[int, str], layout: str,
    out: Any,
) -> dict[int, Array]:  # fmt: skip
    """Arrays for the results: those of `out`, checked, or new ones."""
    rows = [None] * len(wanted) if out is None else [out] if isinstance(out, np.ndarray) else list(out)
    if len(rows) != len(wanted):
        raise SignatureError(f"out has {len(rows)} arrays, wanted {len(wanted)}",
                             because="there is one per result", fix="out=(a, b, ...) in the order of the results")
    targets: dict[int, Array] = {}
    for (number, mode), array in zip(wanted.items(), rows, strict=True):
        slot, core = slots[number], shapes[number]
        shape = core if mode == "sum" else (*core, given.samples) if layout == "soa" else (given.samples, *core)
        if array is None:
            targets[number] = empty(shape, slot.dtype.numpy, given.data[next(iter(given.axes))].array)
            continue
        _check_out(array, shape, slot, given)
        targets[number] = array
    return targets


def empty(shape: tuple[int, ...], dtype: Any, first: Array) -> Array:
    """An array for results; a large one begins as far behind a cache line as the first batched argument does, so that
    blocks which begin at cache lines of one begin at cache lines of the other."""
    count = math.prod(shape)
    if count * dtype.itemsize < PLACED:
        return np.empty(shape, dtype)
    memory = np.empty(count + LINE // dtype.itemsize, dtype)
    ahead = (first.ctypes.data - memory.ctypes.data) % LINE
    start = ahead // dtype.itemsize
    return memory[start : start + count].reshape(shape)


def _check_out(array: Any, shape: tuple[int, ...], slot: Slot, given: Operands) -> None:
    name = f"out array for `{slot.name}`"
    if not isinstance(array, np.ndarray) or array.dtype != slot.dtype.numpy:
        got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise DTypeError(f"the {name} has dtype {got}, wanted {slot.dtype.numpy.name}",
                         fix=f"np.empty({shape}, np.{slot.dtype.numpy.name})")
    if array.shape != shape:
        raise ShapeError(f"the {name} has shape {array.shape}, wanted {shape}",
                         fix=f"np.empty({shape}, np.{slot.dtype.numpy.name})")
    if not array.flags.carray:
        raise ShapeError(f"the {name} is not a writeable C-ordered array",
                         fix="np.empty(...) makes one; slices with steps and transposed arrays are none")
    for data in given.data.values():
        if np.may_share_memory(array, data.array):
            raise ShapeError(f"the {name} overlaps an argument", because="buffers of a kernel never overlap",
                             fix="pass an array of its own")
