"""A second adapter: calls as hijax primitives, the coming public interface of JAX (`jax.experimental.hijax`, 0.11 on).

    with irgrad.interop.jax.hijax():
        jax.grad(kernel)(x)

The tables are those of `algebra` and `rules`; only who is bound differs: a `HiPrim` whose methods call them. It is
lowered to `foreign_call`. Its `lin` splits values from what is linear, so that reverse mode runs the primal once.

hijax has no rule that takes a call of values and tangents apart when only its values are known, so forward mode makes
two native calls, and policies of `jax.checkpoint` compute all of a call again. So `foreign_call` stays the base.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import jax
from jax.interpreters import ad

from irgrad.interop.jax import rules, splitting
from irgrad.interop.jax.primitive import BINDER, bind, foreign_call
from irgrad.interop.programs.algebra import Spec
from irgrad.rules.errors import Unsupported

__all__ = ["hijax"]


@contextmanager
def hijax() -> Iterator[None]:
    """Kernels called inside of the `with` block are hijax primitives. What `jax.jit` traced before stays as it was.

    Raises Unsupported where JAX has no `jax.experimental.hijax.HiPrim`, that is before 0.11.
    """
    _kind()
    token = BINDER.set(_bind)
    try:
        yield
    finally:
        BINDER.reset(token)


def _bind(spec: Spec, operands: Any, sizes: Any, constants: Any, batch: tuple[Any, ...]) -> list[Any]:
    avals = tuple(jax.typeof(x) for x in operands)
    return list(_kind()(avals, spec, sizes, constants, batch)(*operands))


@contextmanager
def _bound(binder: Any) -> Iterator[None]:
    token = BINDER.set(binder)
    try:
        yield
    finally:
        BINDER.reset(token)


@cache
def _kind() -> Any:
    """The class of the primitives; made on first use, since its base is not in every JAX."""
    extension = importlib.import_module("jax.experimental.hijax")
    base, pair = getattr(extension, "HiPrim", None), getattr(extension, "vjp_from_lin", None)
    if base is None or pair is None:
        raise Unsupported("this JAX has no hijax primitives", which=f"jax {jax.__version__}",
                          because="jax.experimental.hijax.HiPrim came with 0.11",
                          fix="pip install 'jax>=0.11'   or   leave the adapter out, it changes no result")

    def initialise(self: Any, avals: Any, spec: Spec, sizes: Any, constants: Any, batch: Any) -> None:
        self.in_avals = avals
        # they become attributes, beside the methods
        self.params = {"spec": spec, "sizes": sizes, "constants": constants, "batch_sizes": batch}
        self.out_aval = tuple(foreign_call.abstract_eval(
            *avals, spec=spec, sizes=sizes, constants=constants, batch=batch)[0])
        base.__init__(self)

    methods = {"__init__": initialise, "expand": _expand, "jvp": _jvp, "lin": _lin, "linearized": _linearized,
               "transpose": _transpose, "batch": _batch, "dce": _dce, "vjp_fwd": pair[0],
               "vjp_bwd_retval": pair[1]}  # fmt: skip
    return type("ForeignCall", (base,), methods)


def _expand(self: Any, *operands: Any) -> Any:
    return tuple(foreign_call.bind(*operands, **_params(self)))


def _jvp(self: Any, primals: Any, tangents: Any) -> Any:
    """Values and tangents are two calls: hijax has no rule to take one apart when only its values are known."""
    with _bound(_bind):
        out = bind(self.spec, primals, self.sizes, self.constants, self.batch_sizes)
        rows = rules.tangents_of(primals, tangents, **_params(self))
    return tuple(out), _zeros(self, rows)


def _lin(self: Any, moves: Any, *primals: Any) -> Any:
    """Values, and what the linear part needs: the arguments, or the gradient of a kernel with one scalar result."""
    spec: Spec = self.spec
    slots = spec.kernel.primal.slots
    with _bound(_bind):
        derivative = _scalar(self, moves)
        if derivative is not None:
            values, gradients = splitting.value_and_gradient(primals, **{**_params(self), "spec": derivative})
            return tuple(values), tuple(gradients)
        out = bind(spec, primals, self.sizes, self.constants, self.batch_sizes)
    return tuple(out), primals, tuple(bool(any(moves)) and slots[i].differentiable for i in spec.results)


def _linearized(self: Any, residuals: Any, *tangents: Any) -> Any:
    with _bound(_bind):
        live = [t for t in tangents if not isinstance(t, ad.Zero)]
        derivative = _scalar(self, [not isinstance(t, ad.Zero) for t in tangents])
        if derivative is not None:
            return (splitting.inner(residuals, live, derivative, len(self.batch_sizes)),)
        rows = rules.tangents_of(residuals, tangents, **_params(self))
    return _zeros(self, rows)


def _zeros(self: Any, rows: Any) -> Any:
    """Tangents, None for zero, as hijax wants them."""
    pairs = zip(rows, self.out_aval, strict=True)
    return tuple(ad.Zero(aval.to_tangent_aval()) if t is None else t for t, aval in pairs)


def _scalar(self: Any, moves: Any) -> Spec | None:
    """The first derivative of a call of a kernel with one scalar result; None for other calls."""
    spec: Spec = self.spec
    mask = tuple(i for i, moved in zip(spec.inputs, moves, strict=False) if moved)
    if spec.groups or not mask or not all(spec.kernel.primal.slots[i].differentiable for i in spec.wanted):
        return None
    derivative = replace(spec, directions=(mask,), values=spec.wanted)
    return derivative if splitting.is_scalar(derivative, self.sizes) else None


def _transpose(self: Any, cotangents: Any, *given: Any) -> None:
    """`given`: values, and accumulators in the place of what the call is linear in."""
    operands = [ad.UndefinedPrimal(x.aval) if hasattr(x, "accum") else x for x in given]
    with _bound(_bind):
        gradients = rules.transpose(list(cotangents), *operands, **_params(self))
    for accumulator, gradient in zip(given, gradients, strict=True):
        if hasattr(accumulator, "accum") and gradient is not None:
            accumulator.accum(gradient)


def _batch(self: Any, _: Any, operands: Any, dims: Any) -> Any:
    with _bound(_bind):
        if all(dim is None for dim in dims):  # hijax asks for these too
            out = bind(self.spec, operands, self.sizes, self.constants, self.batch_sizes)
            return tuple(out), (None,) * len(out)
        out, at = rules.batched(operands, dims, **_params(self))
    return tuple(out), tuple(at)


def _dce(self: Any, used: Any, live: Any) -> Any:
    """Results that nobody reads are not computed, with the operands that only those need."""
    del live
    if not any(used):
        return False, False, None
    if all(used):
        return True, True, self
    spec = splitting.used_part(self.spec, list(used))
    count = len(spec.members)
    new = type(self)(self.in_avals[:count], *(({**_params(self), "spec": spec})[k] for k in _NAMES))
    return tuple(n < count for n in range(len(self.in_avals))), tuple(used), new


def _params(self: Any) -> dict[str, Any]:
    """The parameters of `foreign_call`."""
    return {"spec": self.spec, "sizes": self.sizes, "constants": self.constants, "batch": self.batch_sizes}


_NAMES = ("spec", "sizes", "constants", "batch")
