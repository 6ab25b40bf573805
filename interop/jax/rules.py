"""jvp, transposition and batching of `foreign_call`: the tables of `algebra` in JAX's terms.

What reverse mode and `jit` make of a call that gives values and derivatives together is in `splitting`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
from jax.interpreters import ad, batching

from irgrad.interop.jax.algebra import Spec
from irgrad.interop.jax.primitive import bind, foreign_call

__all__: list[str] = []


def _zero(value: Any) -> bool:
    return isinstance(value, ad.Zero) or getattr(value, "dtype", None) == jax.dtypes.float0


def _groups(spec: Spec, values: Any) -> tuple[list[Any], list[list[Any]]]:
    """The operands' values as inputs and groups."""
    at = len(spec.inputs)
    inputs, groups = list(values[:at]), []
    for _, _, mask in spec.groups:
        groups.append(list(values[at : at + len(mask)]))
        at += len(mask)
    return inputs, groups


def _jvp(primals: Any, tangents: Any, *, spec: Spec, sizes: Any, constants: Any, batch: Any) -> Any:
    params = (sizes, constants, batch)
    moved, changes = _groups(spec, tangents)
    mask = tuple(i for i, t in zip(spec.inputs, moved, strict=True) if not _zero(t))
    dx = [t for t in moved if not _zero(t)]
    slots = spec.kernel.primal.slots
    if not spec.groups and mask:  # values and tangents in one call
        flow = tuple(i for i in spec.wanted if slots[i].differentiable)
        if flow:
            fused = replace(spec, directions=(mask,), wanted=flow, values=spec.wanted)
            rows = bind(fused, [*primals, *dx], *params)
            tangent_of = dict(zip(flow, rows[len(spec.wanted) :], strict=True))
            out = rows[: len(spec.wanted)]
            return out, [_or_zero(tangent_of.get(i), y) for i, y in zip(spec.wanted, out, strict=True)]
    out = bind(spec, primals, *params)
    flow_of = _linear_part(spec, primals, mask, dx, changes, params)
    value_of: dict[int, Any] = {}
    values = tuple(i for i in spec.values if slots[i].differentiable)
    if values and mask:
        term = Spec(spec.kernel, spec.inputs, (mask,), wanted=values)
        value_of = dict(zip(values, bind(term, [*primals[: len(spec.inputs)], *dx], *params), strict=True))
    rows = [*(value_of.get(i) for i in spec.values), *(flow_of.get(i) for i in spec.wanted)]
    return out, [_or_zero(t, y) for t, y in zip(rows, out, strict=True)]


def _linear_part(
    spec: Spec, primals: Any, mask: tuple[int, ...], dx: list[Any], changes: list[list[Any]], params: Any
) -> dict[int, Any]:
    """Tangents of the `wanted` results: one term for the inputs, one for each group."""
    slots = spec.kernel.primal.slots
    inputs, groups = _groups(spec, primals)
    results = [i for i in spec.wanted if slots[i].differentiable]
    flow = replace(spec, wanted=tuple(results), values=())
    sums: list[Any] = [None] * len(results)

    def add(term: Spec, operands: Any) -> None:
        for n, value in enumerate(bind(term, operands, *params)):
            sums[n] = value if sums[n] is None else jax.lax.add(sums[n], value)

    if mask and results:
        add(replace(flow, directions=(*spec.directions, mask)), [*primals, *dx])
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


def _transpose(cotangents: Any, *operands: Any, spec: Spec, sizes: Any, constants: Any, batch: Any) -> Any:
    """Gradients of the operands that are undefined; they are members of one group, in which the call is linear."""
    cotangents, spec = cotangents[len(spec.values) :], spec.linear  # the values do not depend on what is linear
    inputs, groups = _groups(spec, operands)
    number = next(n for n, row in enumerate(groups) if any(map(ad.is_undefined_primal, row)))
    kind, which, members = spec.groups[number]
    live = [n for n, c in enumerate(cotangents) if not _zero(c)]
    gradients: dict[int, Any] = {}
    wanted = tuple(m for m, v in zip(members, groups[number], strict=True) if ad.is_undefined_primal(v))
    if live:
        mask = tuple(spec.wanted[n] for n in live)
        given = [cotangents[n] for n in live]
        others = [row for n, row in enumerate(groups) if n != number]
        term, order = _transposed(spec, kind, which, mask, wanted)
        rows = _placed(others, given, order)
        flat = [*inputs, *(value for row in rows for value in row)]
        gradients = dict(zip(wanted, bind(term, flat, sizes, constants, batch), strict=True))
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


def _transposed(
    spec: Spec, kind: str, which: int, mask: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[Spec, int]:
    """The transposed program, and the group at which the cotangents stand in it."""
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


def _batch(
    operands: Any, dims: Any, *, spec: Spec, sizes: Any, constants: Any, batch: Any
) -> tuple[list[Any], list[int | None]]:
    """One more batch axis in front; what is not mapped keeps size 1 there, which costs nothing."""
    count = len(spec.inputs)
    if spec.values and all(d is None for d in dims[:count]):  # many tangents at one point: the values are one
        values = bind(spec.primal, operands[:count], sizes, constants, batch)
        rest, places = _batch(operands, dims, spec=spec.linear, sizes=sizes, constants=constants, batch=batch)
        return [*values, *rest], [*(None for _ in values), *places]
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    rows = [x[None] if d is None else jax.numpy.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
    out = bind(spec, rows, sizes, constants, (size, *batch))
    return out, [0] * len(out)


ad.primitive_jvps[foreign_call] = _jvp
ad.primitive_transposes[foreign_call] = _transpose
batching.primitive_batchers[foreign_call] = _batch
