"""An axis of tangents or cotangents alone as the width of a call: all of them share one run of the primal."""

from __future__ import annotations

import math
from typing import Any

import jax

from irgrad.engine.functions.strips import choose_width, takes_one
from irgrad.interop.jax.primitive import bind
from irgrad.interop.programs.algebra import Spec, operand_groups, program_of
from irgrad.rules.errors import OneAtATime
from irgrad.rules.layers import using

__all__ = ["best_width", "takes_one_lane", "widened"]

_MOST = 32  # lanes of a program over all its groups: code grows with them


def best_width(total: int, others: int = 1, lane_bytes: int = 0) -> int:
    """The width of the strips in which `total` derivatives are taken, when the program has `others` lanes already.

    `lane_bytes`: shadow memory of one lane. A power of two, as in `choose_width`, for less than a strip as well: 13
    lanes take 1.4 times as long as 16 (measured: up to 2 times), and 3 as long as 4.
    """
    return min(choose_width("auto", total, lane_bytes), 1 << (max(1, _MOST // others).bit_length() - 1))


def widened(
    operands: Any, dims: Any, size: int, number: int, spec: Spec, params: tuple[Any, Any, Any]
) -> tuple[list[Any], list[int | None]]:
    """A new axis of group `number` only, as its width: with the lanes that it has already, in strips of the best width.

    The lanes of the group are the axis (old lanes, new axis), flattened."""
    sizes, constants, batch = params
    old = spec.width(number)
    total = old * size
    width = _width(spec, number, size, sizes)
    strips = -(-total // width)
    inputs, groups = operand_groups(spec, list(zip(operands, dims, strict=True)))
    rows = []
    for x, d in groups[number]:
        moved = jax.numpy.broadcast_to(x[..., None], (*x.shape, size)) if d is None else jax.numpy.moveaxis(x, d, -1)
        core = moved.shape[: -2 if old > 1 else -1]
        flat = jax.numpy.reshape(moved, (*core, total))
        if strips * width > total:
            flat = jax.numpy.pad(flat, [(0, 0)] * len(core) + [(0, strips * width - total)])
        if strips > 1:
            flat = jax.numpy.moveaxis(jax.numpy.reshape(flat, (*core, strips, width)), -2, 0)
        rows.append(flat)

    def front(x: Any) -> Any:
        return jax.numpy.expand_dims(x, 0) if strips > 1 else x

    every = [[front(x) for x, _ in row] for row in groups]
    every[number] = rows
    flat = [*(front(x) for x, _ in inputs), *(x for row in every for x in row)]
    wide = spec.widened(number, width)
    out = bind(wide, flat, sizes, constants, (strips, *batch) if strips > 1 else batch)
    axis = sum(spec.width(n) > 1 for n in range(number)) - len(wide.lanes)
    values, wanted = out[: len(spec.values)], out[len(spec.values) :]
    results = [_unstripped(y, axis, strips, total, old, size) for y in wanted]
    return [*(v[0] if strips > 1 else v for v in values), *results], [*(None for _ in values), *(0 for _ in results)]


def takes_one_lane(spec: Spec, number: int, size: int, sizes: Any) -> bool:
    """Whether rules of the user make a call take one derivative of this group at a time."""
    with using(spec.rules):
        if not spec.kernel.primal.lane_by_lane:
            return False
    try:
        return takes_one(program_of(spec.widened(number, _width(spec, number, size, sizes))))
    except OneAtATime:
        return True


def _width(spec: Spec, number: int, size: int, sizes: Any) -> int:
    """Lanes of a strip, of a new axis of a group together with the lanes that it has."""
    old = spec.width(number)
    return best_width(old * size, math.prod(spec.lanes) // old, _lane_bytes(spec, number, sizes))


def _lane_bytes(spec: Spec, number: int, sizes: Any) -> int:
    """Memory of one lane of a group and of the results; 0 where a size is a symbol."""
    slots, names = spec.kernel.primal.slots, dict(sizes)
    if not all(isinstance(size, int) for size in names.values()):
        return 0
    members = (*spec.groups[number][2], *spec.wanted)
    return sum(math.prod(slots[i].shape(names)) * slots[i].dtype.size for i in members)


def _unstripped(y: Any, axis: int, strips: int, total: int, old: int, size: int) -> Any:
    """A result with the group's lanes at `axis` (from the end): the new axis in front, the old lanes at their place."""
    y = jax.numpy.moveaxis(y, axis, -1)
    if strips > 1:
        y = jax.numpy.moveaxis(y, 0, -2)
        y = jax.numpy.reshape(y, (*y.shape[:-2], -1))
    y = y[..., :total]
    if old == 1:
        return jax.numpy.moveaxis(y, -1, 0)
    y = jax.numpy.moveaxis(jax.numpy.reshape(y, (*y.shape[:-1], old, size)), -1, 0)
    return jax.numpy.moveaxis(y, -1, axis)
