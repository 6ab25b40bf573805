"""jvp, transposition and batching of `foreign_call`: the tables of `algebra` in JAX's terms.

What reverse mode and `jit` make of a call that gives values and derivatives together is in `splitting`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import jax
from jax.interpreters import ad, batching

from irgrad.engine.functions.strips import OneLane, one_lane
from irgrad.engine.kernel.linearity import values_read
from irgrad.interop.jax.lanes import best_width, takes_one_lane, widened
from irgrad.interop.jax.primitive import bind, foreign_call
from irgrad.interop.jax.sums import bind_sums, wanted_here
from irgrad.interop.programs.algebra import Spec, operand_groups
from irgrad.rules.errors import Unsupported
from irgrad.rules.layers import using

__all__ = ["batched", "jvp", "tangents_of", "transpose"]


def _zero(value: Any) -> bool:
    return isinstance(value, ad.Zero) or getattr(value, "dtype", None) == jax.dtypes.float0


def jvp(primals: Any, tangents: Any, *, spec: Spec, sizes: Any, constants: Any, batch: Any) -> Any:
    """Results and their tangents."""
    params = (sizes, constants, batch)
    moved, _ = operand_groups(spec, tangents)
    mask = tuple(i for i, t in zip(spec.inputs, moved, strict=True) if not _zero(t))
    dx = [t for t in moved if not _zero(t)]
    if not spec.groups and mask and spec.tape is None:  # values and tangents in one call
        flow = tuple(i for i in spec.wanted if spec.flows(i))
        if flow:
            fused = replace(spec, directions=(mask,), wanted=flow, values=spec.wanted)
            rows = bind(fused, [*primals, *dx], *params)
            tangent_of = dict(zip(flow, rows[len(spec.wanted) :], strict=True))
            out = rows[: len(spec.wanted)]
            return out, [_or_zero(tangent_of.get(i), y) for i, y in zip(spec.wanted, out, strict=True)]
    out = bind(spec, primals, *params)
    rows = tangents_of(primals, tangents, spec=spec, sizes=sizes, constants=constants, batch=batch)
    return out, [_or_zero(t, y) for t, y in zip(rows, out, strict=True)]


def tangents_of(
    primals: Any, given: Any, *, spec: Spec, sizes: Any, constants: Any, batch: Any
) -> list[Any]:
    """Tangents of the results alone; None for zero."""
    params = (sizes, constants, batch)
    moved, changes = operand_groups(spec, given)
    mask = tuple(i for i, t in zip(spec.inputs, moved, strict=True) if not _zero(t))
    dx = [t for t in moved if not _zero(t)]
    flow_of = _linear_part(spec, primals, mask, dx, changes, params)
    value_of: dict[int, Any] = {}
    values = tuple(i for i in spec.values if spec.flows(i))
    if values and mask:
        term = Spec(spec.kernel, spec.inputs, (mask,), wanted=values, rules=spec.rules)
        value_of = dict(zip(values, bind(term, [*primals[: len(spec.inputs)], *dx], *params), strict=True))
    return [*(value_of.get(i) for i in spec.values), *(flow_of.get(i) for i in spec.wanted)]


def _linear_part(
    spec: Spec, primals: Any, mask: tuple[int, ...], dx: list[Any], changes: list[list[Any]], params: Any
) -> dict[int, Any]:
    """Tangents of the `wanted` results: one term for the inputs, one for each group."""
    inputs, groups = operand_groups(spec, primals)
    results = [i for i in spec.wanted if spec.flows(i)]
    flow = replace(spec, wanted=tuple(results), values=())
    sums: list[Any] = [None] * len(results)

    def add(term: Spec, operands: Any) -> None:
        for n, value in enumerate(bind(term, operands, *params)):
            sums[n] = value if sums[n] is None else jax.lax.add(sums[n], value)

    if mask and results:
        widths = (*spec.widths, 1) if spec.widths else ()
        moved = replace(flow, directions=(*spec.directions, mask), widths=widths).plain
        given = inputs[:-1] if spec.reads_tape else inputs  # a tape is good for first derivatives
        add(moved, [*given, *(value for row in groups for value in row), *dx])
    for number, (kind, which, members) in enumerate(spec.groups):
        live = [n for n, t in enumerate(changes[number]) if not _zero(t)]
        if not live or not results:
            continue
        part = tuple(members[n] for n in live)
        rows = [*groups[:number], [changes[number][n] for n in live], *groups[number + 1 :]]
        add(_with_group(flow, kind, which, part), [*inputs, *(value for row in rows for value in row)])
    return {i: t for i, t in zip(results, sums, strict=True) if t is not None}


def _or_zero(tangent: Any, primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval()) if tangent is None else tangent


def _with_group(spec: Spec, kind: str, which: int, members: tuple[int, ...]) -> Spec:
    if kind == "w":
        return replace(spec, cotangents=members)
    directions = list(spec.directions)
    directions[which] = members
    return replace(spec, directions=tuple(directions))


def transpose(cotangents: Any, *operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Any) -> Any:
    """Gradients of the operands that are undefined; they are members of one group, in which the call is linear, or
    inputs of a kernel that the user says to be linear."""
    if any(map(ad.is_undefined_primal, operands[: len(spec.inputs)])):
        return _of_linear(cotangents, operands, spec, (sizes, constants, batch))
    cotangents, spec = cotangents[len(spec.values) :], spec.linear  # the values do not depend on what is linear
    inputs, groups = operand_groups(spec, operands)
    number = next(n for n, row in enumerate(groups) if any(map(ad.is_undefined_primal, row)))
    members = spec.groups[number][2]
    wanted = tuple(m for m, v in zip(members, groups[number], strict=True) if ad.is_undefined_primal(v))
    live = [n for n, c in enumerate(cotangents) if not _zero(c)]
    gradients: dict[int, Any] = {}
    if live:
        part = replace(spec, wanted=tuple(spec.wanted[n] for n in live))
        given = [cotangents[n] for n in live]
        shared = {m: v.aval.shape[: len(batch)] for m, v in zip(members, groups[number], strict=True) if m in wanted}
        whole = tuple(bool(batch) and all(n == 1 for n in shared[m]) for m in wanted)
        params = (sizes, constants, batch)
        found = _gradients(part, number, wanted, inputs, groups, given, params, whole)
        gradients = dict(zip(wanted, found, strict=True))
    out: list[Any] = [None] * len(inputs)
    for n, (_, _, names) in enumerate(spec.groups):
        for name, value in zip(names, groups[n], strict=True):
            if n != number or not ad.is_undefined_primal(value):
                out.append(None)
            elif name in gradients:
                out.append(_summed(gradients[name], value.aval.shape))
            else:
                out.append(ad.Zero(value.aval))
    return out


def _of_linear(cotangents: Any, operands: Any, spec: Spec, params: tuple[Any, Any, Any]) -> list[Any]:
    """`transpose` of the function itself (`jax.linear_transpose`, `custom_linear_solve`), where it is linear: its
    gradient is the same everywhere. Raises Unsupported where the gradient reads the values of the arguments."""
    kernel = spec.kernel
    unknown = [ad.is_undefined_primal(x) for x in operands]
    wanted = tuple(i for i, x in zip(spec.inputs, unknown, strict=False) if x)
    outputs = tuple(i for i in spec.results if spec.flows(i))
    read: frozenset[int] = frozenset()
    if not spec.groups and spec.tape is None:
        with using(spec.rules):
            read = values_read(kernel.primal, wanted, outputs)
    if spec.groups or spec.tape is not None or read:
        names = ", ".join(f"`{kernel.primal.slots[i].name}`" for i in sorted(read or wanted))
        raise Unsupported(f"`{kernel.name}` is transposed, and not known to be linear in {names}",
                          where=f"`{kernel.signature}`", because=f"its derivative depends on the values of {names}",
                          fix="transpose its derivative: jax.linear_transpose(jax.linearize(f, x)[1], x)")
    live = [n for n, c in enumerate(cotangents) if not _zero(c)]
    found: dict[int, Any] = {}
    if live:
        term = replace(spec, cotangents=tuple(spec.wanted[n] for n in live), wanted=wanted)
        given = [jax.numpy.zeros(x.aval.shape, x.aval.dtype) if new else x
                 for x, new in zip(operands, unknown, strict=True)]  # fmt: skip
        found = dict(zip(wanted, bind(term, [*given, *(cotangents[n] for n in live)], *params), strict=True))
    return [
        None if not new else _summed(found[i], x.aval.shape) if i in found else ad.Zero(x.aval)
        for i, x, new in zip(spec.inputs, operands, unknown, strict=True)
    ]


def _gradients(
    spec: Spec, number: int, wanted: tuple[int, ...], inputs: list[Any], groups: list[list[Any]], given: list[Any],
    params: tuple[Any, Any, Any], whole: tuple[bool, ...] = (),
) -> list[Any]:  # fmt: skip
    """Gradients of the members `wanted` of group `number`. Lanes of the other groups are in the cotangents as well:
    they become batch axes, over which the gradients are summed. whole: which of them will be summed over the whole
    batch, and may be here."""
    sizes, constants, batch = params
    other = next((n for n in range(len(groups)) if n != number and spec.width(n) > 1), None)
    if other is not None:
        lane = sum(spec.width(n) > 1 for n in range(other)) - len(spec.lanes)
        rows = [[None if ad.is_undefined_primal(v) else _front(v) for v in row] for row in groups]
        rows[other] = [jax.numpy.moveaxis(v, -1, 0) for v in groups[other]]
        rows[number] = groups[number]
        outer = (sizes, constants, (spec.width(other), *batch))
        moved = [jax.numpy.moveaxis(c, lane, 0) for c in given]
        found = _gradients(spec.widened(other, 1), number, wanted, [_front(x) for x in inputs], rows, moved, outer)
        return [jax.numpy.sum(g, axis=0) for g in found]
    kind, which, _ = spec.groups[number]
    others = [row for n, row in enumerate(groups) if n != number]
    term, order = _transposed(spec, kind, which, spec.wanted, wanted)
    term = term.widened(order, spec.width(number))
    flat = [*inputs, *(value for row in _placed(others, given, order) for value in row)]
    if any(whole) and not term.lanes and wanted_here(flat, batch):
        return bind_sums(term, flat, sizes, constants, batch, whole)
    return bind(term, flat, sizes, constants, batch)


def _transposed(
    spec: Spec, kind: str, which: int, mask: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[Spec, int]:
    """The transposed program (every width 1), and the group at which the cotangents stand in it."""
    spec = replace(spec, widths=())
    if kind == "w":  # G in w -> D with one more direction
        return replace(spec, directions=(*spec.directions, mask), cotangents=None, wanted=wanted), len(spec.directions)
    if spec.cotangents is None:  # D in t_i -> G of the others
        others = tuple(row for n, row in enumerate(spec.directions) if n != which)
        return replace(spec, directions=others, cotangents=mask, wanted=wanted), 0
    directions = list(spec.directions)  # G in t_i -> G with the cotangent in its place
    directions[which] = mask
    return replace(spec, directions=tuple(directions), wanted=wanted), which + 1


def _placed(others: list[list[Any]], given: list[Any], order: int) -> list[list[Any]]:
    return [*others[:order], given, *others[order:]]


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the batch axes along which the operand had size 1."""
    axes = [n for n, (got, wanted) in enumerate(zip(gradient.shape, shape, strict=True)) if got != wanted]
    return jax.numpy.sum(gradient, axis=tuple(axes), keepdims=True) if axes else gradient


def batched(
    operands: Any, dims: Any, *, spec: Spec, sizes: Any, constants: Any, batch: Any
) -> tuple[list[Any], list[int | None]]:
    """One more axis. Where only the operands of one group have it, in which the call is linear, they share the primal:
    the axis becomes the group's width. Any other is one more batch axis in front, along which what is not mapped keeps
    size 1, which costs nothing."""
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    inputs, groups = operand_groups(spec, dims)
    live = [n for n, row in enumerate(groups) if any(d is not None for d in row)]
    alone = len(live) == 1 and all(d is None for d in inputs)
    others = math.prod(spec.width(n) for n in range(len(groups)) if n not in live)
    wide = isinstance(size, int) and size > 1 and best_width(size, others) > 1
    if alone and wide:
        if not takes_one_lane(spec, live[0], size, sizes):
            return widened(operands, dims, size, live[0], spec, (sizes, constants, batch))
        warnings.warn(one_lane(spec.kernel.name), OneLane, stacklevel=2)
    if alone and spec.values:  # they do not depend on the new axis
        given = list(operands[: len(inputs)])
        values = bind(spec.primal, given, sizes, constants, batch)
        rest, at = batched(operands, dims, spec=spec.linear, sizes=sizes, constants=constants, batch=batch)
        return [*values, *rest], [*([None] * len(values)), *at]
    rows = [_front(x) if d is None else jax.numpy.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
    out = bind(spec, rows, sizes, constants, (size, *batch))
    return out, [0] * len(out)


ad.primitive_jvps[foreign_call] = jvp
ad.primitive_transposes[foreign_call] = transpose
batching.primitive_batchers[foreign_call] = batched


def _front(x: Any) -> Any:
    """With an axis of size 1 in front; Python numbers too, which JAX hands on as they are."""
    return jax.numpy.expand_dims(x, 0)
