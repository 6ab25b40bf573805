"""`multi_jvp`, `multi_vjp`: one primal with many tangents or cotangents at once, in strips that share its run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irgrad.engine.functions.jacobians import lane_bytes
from irgrad.engine.functions.strips import Strips, Width, choose_width, lanes_first, lanes_last
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.pages import copied
from irgrad.engine.kernel.select import active_outputs, at_types, in_tuple, selected, structured
from irgrad.engine.signature.parameter import Wrt
from irgrad.rules.errors import DTypeError, ShapeError, SignatureError

__all__ = ["multi_jvp", "multi_vjp"]

Array = np.ndarray[Any, Any]


def multi_jvp(
    kernel: Kernel, primals: Sequence[Any], tangents: Sequence[Any], *, layout: str = "auto", width: Width = "auto"
) -> tuple[Any, Any]:
    """Outputs and their derivatives in N directions (forward mode): `(out, tangents of out)`.

    primals:  the kernel's arguments
    tangents: one per argument, with one axis more than it: N directions; None for no perturbation
    layout:   where that axis is, in tangents and results: first ("aos", the default) or last ("soa")
    width:    directions in one native call, 1 to 64; by default what suits their number and memory

    Outputs that are not floating-point have the tangent None. Raises as the kernel does, and ShapeError, DTypeError or
    SignatureError for tangents that do not fit.

        >>> y, tangents = irgrad.multi_jvp(squares, (np.array([1.0, 2.0]),), (np.eye(2),))
        >>> tangents
        array([[2., 0.],
               [0., 4.]])
    """
    last = _last(layout)
    in_tuple(kernel, primals, "multi_jvp(kernel, (x,), (t,))")
    kernel, given = at_types(kernel, primals)
    primals, tangents = given, [*tangents, *([None] * (len(given) - len(primals)))]
    arguments = kernel.signature.arguments
    if len(tangents) != len(arguments):
        raise SignatureError(f"got {len(tangents)} tangents for {len(arguments)} arguments",
                             where=f"`{kernel.signature}`", fix="one per argument, None for no perturbation")
    bound = kernel.bind(tuple(primals), {})
    index = {p.name: i for i, p in enumerate(kernel.signature.parameters)}
    seeds = {index[p.name]: _directions(t, kernel, bound, index[p.name], f"tangents of `{p.name}`", last)
             for p, t in zip(arguments, tangents, strict=True) if t is not None and p.dtype.is_float}  # fmt: skip
    outputs = active_outputs(kernel)
    count = _count(seeds, last, f"`{kernel.signature}`")
    chosen = choose_width(width, count, lane_bytes(kernel, bound, (*seeds, *outputs)))
    strips = Strips(lambda w: kernel.primal.jvp_only((*seeds, *outputs), w), bound, [(i, 0) for i in seeds],
                    [(o, 0) for o in outputs], chosen)  # fmt: skip
    found = dict(zip(outputs, _all(strips, list(seeds.values()), count, last), strict=True))
    rows = [found.get(position) for position in kernel.output_positions]
    return kernel(*primals), rows[0] if len(rows) == 1 else tuple(rows) if rows else None


def multi_vjp(
    kernel: Kernel, *primals: Any, wrt: Wrt = None, layout: str = "auto", width: Width = "auto"
) -> tuple[Any, Callable[[Any], Any]]:
    """Outputs and the pullback of N cotangents at once (reverse mode): `(out, pullback)`.

    `pullback(cotangents)` takes cotangents of the output with one axis more than it (a tuple when there are several
    outputs, None for none), and gives gradients of the arguments in `wrt` (all floating-point ones by default, then as
    a tuple) with that axis. `layout` and `width` are those of `multi_jvp`. Arguments are copied. Raises as the kernel
    does, and ShapeError, DTypeError or SignatureError for cotangents that do not fit.

        >>> y, pullback = irgrad.multi_vjp(squares, np.array([1.0, 2.0]), wrt="x")
        >>> pullback(np.eye(2))
        array([[2., 0.],
               [0., 4.]])
    """
    last = _last(layout)
    choose_width(width, 1, 0)
    kernel, primals = at_types(kernel, primals)
    positions, single = selected(kernel, wrt, None, all_floats=True)
    bound = kernel.bind(primals, {})
    kept = Bound([None if b is None else copied(b) for b in bound.buffers], bound.sizes)
    outputs, active = kernel.output_positions, active_outputs(kernel)
    made: dict[tuple[int, ...], Strips] = {}

    def pullback(cotangents: Any) -> Any:
        """Gradients of the arguments for these cotangents of the outputs."""
        rows = [cotangents] if len(outputs) == 1 else list(cotangents)
        if len(rows) != len(outputs):
            raise SignatureError(f"got {len(rows)} cotangents for {len(outputs)} outputs",
                                 where=f"`{kernel.signature}`", fix="one per output: " + ", ".join(kernel.output_names))
        seeds = {position: _directions(row, kernel, kept, position, f"cotangents of `{name}`", last)
                 for position, name, row in zip(outputs, kernel.output_names, rows, strict=True)
                 if row is not None and position in active}  # fmt: skip
        count = _count(seeds, last, f"`{kernel.signature}`")
        chosen = choose_width(width, count, lane_bytes(kernel, kept, (*positions, *active)))
        key = (chosen, *seeds)
        strips = made.get(key)
        if strips is None:
            strips = made[key] = Strips(lambda w: kernel.primal.pullback((*positions, *active), w), kept,
                                        [(i, 0) for i in seeds], [(p, 0) for p in positions], chosen)  # fmt: skip
        return structured(list(_all(strips, list(seeds.values()), count, last)), single)

    return kernel(*primals), pullback


def _last(layout: str) -> bool:
    if layout not in ("auto", "aos", "soa"):
        raise SignatureError(f"there is no layout {layout!r}", fix='layout="aos", "soa" or "auto"')
    return layout == "soa"


def _directions(value: Any, kernel: Kernel, bound: Bound, position: int, name: str, last: bool) -> Array:
    """Directions checked against what they derive."""
    slot, shape = kernel.primal.slots[position], kernel.primal.shapes(bound.sizes)[position]
    array = np.asarray(value)
    if array.dtype != slot.dtype.numpy:
        raise DTypeError(f"the {name} have dtype {array.dtype}, wanted {slot.dtype.numpy}",
                         because="tangents and cotangents have the dtype of what they derive",
                         fix=f"pass them as np.{slot.dtype.numpy.name}")  # fmt: skip
    core = array.shape[:-1] if last else array.shape[1:]
    if array.ndim != len(shape) + 1 or core != shape:
        wanted = f"({', '.join([*map(str, shape), 'N'] if last else ['N', *map(str, shape)])})"
        raise ShapeError(f"the {name} have shape {array.shape}, wanted {wanted}",
                         because="they have the shape of what they derive and one axis more",
                         fix='one direction: jvp and vjp; N last: layout="soa"; N first: layout="aos"')  # fmt: skip
    return array


def _count(seeds: dict[int, Array], last: bool, where: str) -> int:
    lengths = {a.shape[-1 if last else 0] for a in seeds.values()}
    if len(lengths) != 1:
        raise ShapeError("there is no single number of directions", where=where,
                         because=f"the lengths are {sorted(lengths)}", fix="one length for all")  # fmt: skip
    return int(lengths.pop())


def _all(strips: Strips, seeds: Sequence[Array], count: int, last: bool) -> list[Array]:
    """The results for all directions."""
    shapes = strips.result_shapes
    found = [np.empty((*s, count) if last else (count, *s), strips.dtype(k)) for k, s in enumerate(shapes)]
    for first in range(0, count, strips.width):
        some = min(strips.width, count - first)
        for k, given in enumerate(seeds):
            seed = strips.seed(k)
            seed[:, some:] = 0
            if last:
                seed[:, :some] = given[..., first : first + some].reshape(-1, some)
            else:
                lanes_last(seed[:, :some], given[first : first + some].reshape(some, -1))
        for target, value in zip(found, strips.run(), strict=True):
            if last:
                target.reshape(-1, count)[:, first : first + some] = value[:, :some]
            else:
                lanes_first(target[first : first + some].reshape(some, -1), value)
    return found
