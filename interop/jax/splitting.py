"""Calls that give values and derivatives together, taken apart where only a part is known or used.

jvp makes one call `D1+values` of a call `D0`: the primal and its tangent. Three transformations take it apart again:

- Partial evaluation with unknown tangents (`linearize`, `grad`, `vjp`, reverse mode over `scan`). A kernel with one
  scalar result computes its value and its gradient now, in one call `G0+values`; the gradient is the residual, and what
  is left to do is an inner product (on a GPU not where samples share an argument: see `sums`). For other kernels the
  values are computed now, and the residuals are the arguments and the tape (see `engine/tapes`), or the arguments alone
  where there is none.
- `jax.checkpoint`: values now, and what its policy does not save is computed again with the tangents.
- Dead code: results that nobody reads are not computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Var, set_current_trace
from jax.interpreters import partial_eval as pe

from irgrad.engine.signature.slots import TAPE
from irgrad.interop.jax.for_device import gpu_in_reach, keeps_tape
from irgrad.interop.jax.primitive import bind, foreign_call, result_avals
from irgrad.interop.jax.sharding import varying
from irgrad.interop.jax.sums import wanted_here
from irgrad.interop.programs.algebra import Kept, Spec, kept_for

__all__ = ["inner", "is_scalar", "used_part", "value_and_gradient"]


def _partial_eval(trace: Any, *tracers: Any, spec: Spec, sizes: Any, constants: Any, batch: Any) -> Any:
    params = {"spec": spec, "sizes": sizes, "constants": constants, "batch": batch}
    count = len(spec.inputs)
    known = [t.is_known() for t in tracers]
    if all(known) or not spec.values or not all(known[:count]):
        return trace.default_process_primitive(foreign_call, tracers, params)
    inputs = [t.pval.get_known() for t in tracers[:count]]
    late = is_scalar(spec, sizes) and _sums_later(inputs, spec, batch)
    if late or not is_scalar(spec, sizes):
        tape = None if late or any(map(_is_mapped, inputs)) else tape_for(spec, sizes, constants)
        first, params["spec"] = _halves(spec, tape)
        *values, last = bind(first, inputs, sizes, constants, batch)
        kept = [] if tape is None else [last]
        values = values if kept else [*values, last]
        operands = [*tracers[:count], *kept, *tracers[count:]]
        return [*values, *trace.default_process_primitive(foreign_call, operands, params)]
    values, gradients = value_and_gradient(inputs, **params)
    with set_current_trace(trace):
        return [*values, inner(gradients, tracers[count:], spec, len(batch))]


def _sums_later(inputs: Any, spec: Spec, batch: Any) -> bool:
    """Whether the gradient waits for the cotangents: with them it is summed over samples where it is made (see `sums`),
    without them it has a row for each sample."""
    shared = [x for i, x in zip(spec.inputs, inputs, strict=True) if i in spec.directions[0]
              and all(n == 1 for n in jax.typeof(x).shape[: len(batch)])]  # fmt: skip
    return bool(shared) and wanted_here(inputs, batch)


def value_and_gradient(
    inputs: Any, *, spec: Spec, sizes: Any, constants: Any, batch: Any
) -> tuple[list[Any], list[Any]]:
    """Values, and the gradients of the scalar of which `spec` is a first derivative, from one call."""
    (mask,) = spec.directions
    dtype = spec.kernel.primal.slots[spec.wanted[0]].dtype.numpy
    both = replace(spec, directions=(), cotangents=spec.wanted, wanted=mask, widths=())
    rows = bind(both, [*inputs, jnp.ones((1,) * len(batch), dtype)], sizes, constants, batch)
    return rows[: len(spec.values)], rows[len(spec.values) :]


def inner(gradients: Any, tangents: Any, spec: Spec, axes: int) -> Any:
    """The tangent of a scalar: the sum of <gradient, tangent>."""
    dtype = spec.kernel.primal.slots[spec.wanted[0]].dtype.numpy
    terms = [_inner(g, t, axes, spec, dtype) for g, t in zip(gradients, tangents, strict=True)]
    return sum(terms[1:], terms[0])


def tape_for(spec: Spec, sizes: Any, constants: Any) -> Kept | None:
    """The tape between the values of a call and its tangents, None where the primal runs again instead."""
    if spec.cotangents is not None or len(spec.directions) != 1:
        return None
    if gpu_in_reach() and not spec.kernel.options.keep_on and not keeps_tape(spec.kernel):
        return None
    return kept_for(spec.primal, spec.directions[0], spec.wanted, sizes, constants)


def _halves(spec: Spec, tape: Kept | None) -> tuple[Spec, Spec]:
    """The values, and the tape behind them; the tangents, with the tape as one more input."""
    if tape is None:
        return spec.primal, spec.linear
    return (replace(spec.primal, wanted=(*spec.values, TAPE), tape=tape),
            replace(spec.linear, inputs=(*spec.inputs, TAPE), tape=tape))  # fmt: skip


def _is_mapped(value: Any) -> bool:
    """Under `vmap`: samples side by side, which share registers and no tape, are worth more."""
    return type(value).__name__ == "BatchTracer"


def is_scalar(spec: Spec, sizes: Any) -> bool:
    """A first derivative of one scalar result."""
    slots, names = spec.kernel.primal.slots, dict(sizes)
    one = spec.cotangents is None and len(spec.directions) == 1 and len(spec.wanted) == 1
    return one and slots[spec.wanted[0]].shape(names) == ()


def _inner(gradient: Any, tangent: Any, axes: int, spec: Spec, dtype: Any) -> Any:
    """<gradient, tangent> for each member of the batch and each lane of the tangents."""
    core = tuple(range(axes, gradient.ndim))
    if spec.lanes:
        gradient = gradient[..., None]
    product = jax.lax.mul(*jnp.broadcast_arrays(gradient, tangent))
    return jax.lax.convert_element_type(jnp.sum(product, axis=core), dtype)


def _checkpointed(saveable: Any, unknown: Any, instantiated: Any, eqn: Any) -> Any:
    spec = eqn.params["spec"]
    count, values = len(spec.inputs), len(spec.values)
    outs = len(eqn.outvars)
    if not any(unknown):
        saved = _is_saved(saveable, eqn)
        if saved:
            return eqn, None, [False] * outs, [False] * outs, []
        return eqn, eqn, [False] * outs, [True] * outs, _residuals(eqn.invars, instantiated)
    residuals = _residuals(eqn.invars, instantiated)
    if not values or any(unknown[:count]):
        return None, eqn, [True] * outs, [True] * outs, residuals
    first = eqn.replace(invars=eqn.invars[:count], outvars=eqn.outvars[:values],
                        params={**eqn.params, "spec": spec.primal})
    if _is_saved(saveable, first):
        first, rest, extra = _saved(eqn)
        residuals += extra
        inst = [False] * values + [True] * (outs - values)
    else:
        rest, inst = eqn, [True] * outs
    return first, rest, [False] * values + [True] * (outs - values), inst, residuals


def _saved(eqn: Any) -> tuple[Any, Any, list[Any]]:
    """An equation for the values, one for the tangents, and the tape between them, if there is one."""
    spec: Spec = eqn.params["spec"]
    count, values = len(spec.inputs), len(spec.values)
    sizes, batch = eqn.params["sizes"], eqn.params["batch"]
    tape = None if is_scalar(spec, sizes) or spec.widths else tape_for(spec, sizes, eqn.params["constants"])
    before, behind = _halves(spec, tape)
    kept = []
    if tape is not None:
        aval = varying(result_avals(before, sizes, batch)[-1], [v.aval for v in eqn.invars[:count]], len(batch))
        kept = [Var(aval)]
    first = eqn.replace(invars=eqn.invars[:count], outvars=[*eqn.outvars[:values], *kept],
                        params={**eqn.params, "spec": before})
    rest = eqn.replace(invars=[*eqn.invars[:count], *kept, *eqn.invars[count:]], outvars=eqn.outvars[values:],
                       params={**eqn.params, "spec": behind})
    return first, rest, kept


def _is_saved(saveable: Any, eqn: Any) -> bool:
    """What the policy says of an equation. Policies return a bool or one of JAX's marks, named by what they do."""
    policy = saveable(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    return policy if isinstance(policy, bool) else "Recompute" not in type(policy).__name__


def _residuals(variables: Any, instantiated: Any) -> list[Any]:
    """Variables of an equation that the later part needs and does not have. Literals need no saving."""
    return [v for v, has in zip(variables, instantiated, strict=True) if not has and not hasattr(v, "val")]


def _dead_code(used: list[bool], *rest: Any) -> tuple[list[bool], Any]:
    eqn = rest[-1]  # from jax 0.12 on, what is live of its operands comes before it
    spec: Spec = eqn.params["spec"]
    if not any(used):
        return [False] * len(eqn.invars), None
    if all(used):
        return [True] * len(eqn.invars), eqn
    spec = used_part(spec, used)
    count = len(spec.members)
    new = eqn.replace(invars=eqn.invars[:count], params={**eqn.params, "spec": spec},
                      outvars=[v for v, use in zip(eqn.outvars, used, strict=True) if use])
    return [n < count for n in range(len(eqn.invars))], new


def used_part(spec: Spec, used: list[bool]) -> Spec:
    """The program of some of the results, at least one."""
    values = tuple(i for i, use in zip(spec.values, used, strict=False) if use)
    wanted = tuple(i for i, use in zip(spec.wanted, used[len(spec.values) :], strict=True) if use)
    part = replace(spec, values=values, wanted=wanted) if wanted else replace(spec.primal, wanted=values)
    return part if TAPE in (*part.inputs, *part.wanted) else part.plain


pe.custom_partial_eval_rules[foreign_call] = _partial_eval
pe.partial_eval_jaxpr_custom_rules[foreign_call] = _checkpointed
pe.dce_rules[foreign_call] = _dead_code
