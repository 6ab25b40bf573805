"""`jacfwd`, `jacrev`, `jacobian`, `hessian`: derivatives as arrays, a strip of directions in one native call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irgrad.engine.functions.gradients import reverse_of_scalar
from irgrad.engine.functions.strips import Spares, Strips, Width, choose_width, lanes_first
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.select import active_outputs, by_types, selected
from irgrad.engine.signature.parameter import Wrt

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev", "lane_bytes"]

Array = np.ndarray[Any, Any]


def jacfwd(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, width: Width = "auto") -> Callable[..., Any]:
    """The Jacobian by forward mode, several elements of the arguments in one native call: for few inputs.

    wrt, argnums: arguments to differentiate, by name or position; argument 0 by default
    width:        tangents in one call, 1 to 64; by default what suits the number of directions and their memory

    Returns a function of the kernel's arguments. For one output and one argument it gives an array of shape
    `output.shape + argument.shape`; several outputs give a tuple, several arguments a tuple (inside that of outputs),
    as in JAX. Only floating-point outputs are differentiated. Raises SignatureError for an unknown argument or width.
    Source of the method: Leppkes and Naumann's vector mode, as in Enzyme's batch mode (Moses et al., SC 2022).

        >>> irgrad.jacfwd(squares)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    typed = by_types(kernel, lambda k: jacfwd(k, wrt, argnums=argnums, width=width))
    if typed is not None:
        return typed  # type: ignore[no-any-return]
    positions, single = selected(kernel, wrt, argnums)
    outputs = active_outputs(kernel)
    choose_width(width, 1, 0)

    program = lambda w: kernel.primal.jvp_only((*positions, *outputs), w)  # noqa: E731
    made = partial(_strips, kernel, program, positions, outputs, width)
    return _function(kernel, made, _columns, partial(_nested, single=single))


def jacrev(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, width: Width = "auto") -> Callable[..., Any]:
    """The Jacobian by reverse mode, several elements of the outputs in one native call: for few outputs.

    Arguments, result and errors are those of `jacfwd`; `width` is the number of cotangents in one call.

        >>> irgrad.jacrev(squares)(np.array([1.0, 2.0])).shape
        (2, 2)
    """
    typed = by_types(kernel, lambda k: jacrev(k, wrt, argnums=argnums, width=width))
    if typed is not None:
        return typed  # type: ignore[no-any-return]
    positions, single = selected(kernel, wrt, argnums)
    outputs = active_outputs(kernel)
    choose_width(width, 1, 0)

    program = lambda w: kernel.primal.pullback((*positions, *outputs), w)  # noqa: E731
    made = partial(_strips, kernel, program, outputs, positions, width)
    return _function(kernel, made, _rows, partial(_nested, single=single))


def jacobian(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, width: Width = "auto") -> Callable[..., Any]:
    """The Jacobian by the mode that has fewer directions at the arguments of the call: `jacfwd` or `jacrev`.

    Arguments, result and errors are those of `jacfwd`.

        >>> irgrad.jacobian(squares)(np.array([1.0, 2.0])).shape
        (2, 2)
    """
    typed = by_types(kernel, lambda k: jacobian(k, wrt, argnums=argnums, width=width))
    if typed is not None:
        return typed  # type: ignore[no-any-return]
    positions, _ = selected(kernel, wrt, argnums)
    forward = jacfwd(kernel, wrt, argnums=argnums, width=width)
    reverse = jacrev(kernel, wrt, argnums=argnums, width=width)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        """The Jacobian at these arguments."""
        bound = kernel.bind(args, kwargs)
        inputs, outputs = (sum(_size(kernel, bound, p) for p in ps) for ps in (positions, active_outputs(kernel)))
        return (forward if inputs <= outputs else reverse)(*args, **kwargs)

    return derivative


def hessian(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, width: Width = "auto") -> Callable[..., Any]:
    """The Hessian of a scalar-valued kernel: forward over reverse, several elements of the arguments in one call.

    Returns a function of the kernel's arguments. For one argument it gives an array of shape
    `argument.shape + argument.shape`; for a tuple `wrt` a tuple of tuples of blocks, as in JAX. `width` is that of
    `jacfwd`. Raises ActivityError when the kernel is not scalar-valued, SignatureError for an unknown argument or
    width.

        >>> irgrad.hessian(total)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 2.]])
    """
    typed = by_types(kernel, lambda k: hessian(k, wrt, argnums=argnums, width=width))
    if typed is not None:
        return typed  # type: ignore[no-any-return]
    positions, single = selected(kernel, wrt, argnums)
    choose_width(width, 1, 0)

    def made(bound: Bound) -> Strips:
        directions = sum(_size(kernel, bound, p) for p in positions)
        chosen = choose_width(width, directions, 2 * lane_bytes(kernel, bound, positions))
        return hessian_strips(kernel, bound, positions, chosen)

    return _function(kernel, made, _columns, lambda blocks: blocks[0][0] if single else tuple(map(tuple, blocks)))


def _strips(
    kernel: Kernel, program: Callable[[int], Program], seeds: Sequence[int], results: Sequence[int], width: Width,
    bound: Bound,
) -> Strips:  # fmt: skip
    """A program of the kernel's first derivatives with a direction for each element of its seeds."""
    directions = sum(_size(kernel, bound, p) for p in seeds)
    chosen = choose_width(width, directions, lane_bytes(kernel, bound, (*seeds, *results)))
    return Strips(program, bound, [(p, 0) for p in seeds], [(p, 0) for p in results], chosen)


def _function(
    kernel: Kernel, made: Callable[[Bound], Strips], read: Callable[[Strips], list[list[Array]]],
    shaped: Callable[[list[list[Array]]], Any],
) -> Callable[..., Any]:  # fmt: skip
    """A function of the kernel's arguments that runs strips, those of an earlier call where they fit."""
    spares = Spares(made)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        """The matrix of derivatives at these arguments."""
        key, strips = spares.take(kernel.bind(args, kwargs))
        blocks = read(strips)
        spares.give(key, strips)
        return shaped(blocks)

    return derivative


def hessian_strips(kernel: Kernel, bound: Bound, positions: Sequence[int], width: int) -> Strips:
    """Hessian-vector products of that width: seeds are the vectors, results the products."""
    reverse, moving, target = reverse_of_scalar(kernel, positions)
    seeds, results = [(p, 1) for p in positions], [(p, 0, 1) for p in positions]
    return Strips(lambda w: reverse.jvp_only(moving, w), bound, seeds, results,
                  width, {(target, 0): 1.0})  # fmt: skip


def lane_bytes(kernel: Kernel, bound: Bound, positions: Sequence[int]) -> int:
    """Memory of one lane of the shadows of these parameters."""
    return sum(_size(kernel, bound, p) * kernel.primal.slots[p].dtype.size for p in positions)


def _size(kernel: Kernel, bound: Bound, position: int) -> int:
    size = 1
    for extent in kernel.primal.shapes(bound.sizes)[position]:
        size *= extent
    return size


def _columns(strips: Strips) -> list[list[Array]]:
    """For each result its derivatives by each seed, `result.shape + seed.shape`."""
    total = strips.directions
    parts = [np.empty((*shape, total), strips.dtype(k)) for k, shape in enumerate(strips.result_shapes)]
    for first, count, values in strips.units():
        for part, value in zip(parts, values, strict=True):
            part.reshape(-1, total)[:, first : first + count] = value[:, :count]
    return [_cut(part, strips.seed_shapes) for part in parts]


def _cut(part: Array, seeds: Sequence[tuple[int, ...]]) -> list[Array]:
    front = part.shape[:-1]
    if len(seeds) == 1:
        return [part.reshape((*front, *seeds[0]))]
    rows, end = [], 0
    for shape in seeds:
        start, end = end, end + math.prod(shape)
        rows.append(np.ascontiguousarray(part[..., start:end]).reshape((*front, *shape)))
    return rows


def _rows(strips: Strips) -> list[list[Array]]:
    """For each seed the derivatives of it by each result, `seed.shape + result.shape`."""
    total = strips.directions
    parts = [np.empty((total, *shape), strips.dtype(k)) for k, shape in enumerate(strips.result_shapes)]
    for first, count, values in strips.units():
        for part, value in zip(parts, values, strict=True):
            lanes_first(part[first : first + count].reshape(count, -1), value)
    blocks: list[list[Array]] = []
    end = 0
    for shape in strips.seed_shapes:
        start, end = end, end + math.prod(shape)
        blocks.append([p[start:end].reshape((*shape, *p.shape[1:])) for p in parts])
    return blocks


def _nested(blocks: list[list[Array]], single: bool) -> Any:
    rows: list[Any] = [block[0] if single else tuple(block) for block in blocks]
    return rows[0] if len(rows) == 1 else tuple(rows)
