"""Programs as functions that autograd and `torch.func` differentiate, at any order.

`apply` records a program where torch asks for it: as a `torch.autograd.Function` whose `backward` and `jvp` apply other
programs in the same way (see `programs/terms`), so that these are differentiated as well; its `vmap` puts the new axis
in front, which is one more batch axis of the same native call.
"""

# pyright: reportMissingImports=false, reportPrivateImportUsage=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleMethodOverride=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.autograd import forward_ad

from irgrad.interop.programs import plans
from irgrad.interop.programs.terms import OPERAND, Term

__all__ = ["NAMED", "PLAIN", "Plan", "apply", "gradients_of", "modes"]

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
"""Tensors that are nothing but tensors."""
Tensors = Sequence[torch.Tensor]
_transforms = torch._C._are_functorch_transforms_active
modes = torch._C._len_torch_dispatch_stack
"""How many modes see operations before they run: those of `torch.compile`, `make_fx`, and others."""
_tracing = torch._C._is_tracing
_SMALL = 4096
"""Most elements of a result that is made like one that is there."""
_is_mapped = torch._C._functorch.is_legacy_batchedtensor


NAMED: WeakValueDictionary[str, Plan] = WeakValueDictionary()
"""Plans by the names that stand in graphs."""


class NoMemory(Exception):
    """A tensor that stands for several."""


class Plan(plans.Plan):
    """A plan on tensors."""

    @cached_property
    def name(self) -> str:
        """What graphs know it by."""
        NAMED[super().name] = self
        return super().name

    @cached_property
    def made(self) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """Shapes and dtypes of the results."""
        return [(shape, getattr(torch, kind)) for shape, kind in self.results]

    @cached_property
    def _fresh(self) -> list[Callable[[], torch.Tensor]]:
        """What makes each result: small ones like one that is there, which is faster."""
        makers: list[Callable[[], torch.Tensor]] = []
        for (shape, kind), zero in zip(self.made, self.native.zeroed, strict=True):
            if math.prod(shape) <= _SMALL:
                like = torch.empty(shape, dtype=kind, device="cpu")
                makers.append(partial(torch.zeros_like if zero else torch.empty_like, like))
            else:
                makers.append(partial(torch.zeros if zero else torch.empty, shape, dtype=kind, device="cpu"))
        return makers

    def run(self, operands: Tensors) -> tuple[torch.Tensor, ...]:
        """The results, without a record of how they were made. Tensors that stand for something else (while a graph is
        made) go through the operator."""
        if modes() or _tracing():
            return tuple(torch.ops.irgrad.call(self.name, list(operands)))
        for value in operands:
            if type(value) not in PLAIN or not value.is_cpu:
                return tuple(torch.ops.irgrad.call(self.name, list(operands)))
        try:
            return self.compute(operands)
        except NoMemory:
            return _mapped(self, operands)

    def compute(self, operands: Tensors) -> tuple[torch.Tensor, ...]:
        """The results of a native call; tensors of the CPU. Raises NoMemory under autograd's own vmap."""
        rows, places = [], []
        for given in operands:
            x = given if given.is_contiguous() and not given.is_neg() else given.resolve_neg().contiguous()
            try:
                at = x.data_ptr()
            except RuntimeError:
                raise NoMemory from None
            if not at and x.numel():  # zeros that torch has not written
                x = x.clone()
                at = x.data_ptr()
            rows.append(x)
            places.append(at)
        out = tuple([make() for make in self._fresh])
        shapes = [tuple(x.shape) for x in rows] if self.batch else ()
        self.native(places, [x.data_ptr() for x in out], shapes)
        return out


def _mapped(plan: Plan, operands: Tensors) -> tuple[torch.Tensor, ...]:
    """The results under autograd's own vmap (`torch.autograd.grad(is_grads_batched=True)`, `functional.jacobian(
    vectorize=True)`), which is none of the transforms: a batch axis for each of its levels."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    return _without_levels(plan, operands, level)


def _without_levels(plan: Plan, operands: Tensors, level: int) -> tuple[torch.Tensor, ...]:
    if not level or not any(map(_is_mapped, operands)):
        return plan.run(operands)
    rows = [torch._remove_batch_dim(x, level, 1, 0) for x in operands]  # size 1 where it is not mapped at this level
    size = max(int(x.shape[0]) for x in rows)
    out = _without_levels(plan.mapped(size), rows, level - 1)
    return tuple([torch._add_batch_dim(y, 0, level) for y in out])


def apply(plan: Plan, operands: Tensors) -> tuple[torch.Tensor, ...]:
    """The results of a program, recorded where autograd, forward mode or a transform of `torch.func` wants it."""
    if _transforms():
        out: tuple[torch.Tensor, ...] = _Transformed.apply(plan, *operands)
        return out
    if forward_ad._current_level >= 0:
        return _Recorded.apply(plan, *operands)  # type: ignore[no-any-return]
    if torch.is_grad_enabled():
        for value in operands:
            if value.requires_grad:
                return _Recorded.apply(plan, *operands)  # type: ignore[no-any-return]
    return plan.run(operands)


def _keep(ctx: Any, plan: Plan, operands: Tensors, out: Tensors, tape: Tensors = ()) -> None:
    ctx.plan = plan
    ctx.save_for_backward(*operands, *tape)
    if forward_ad._current_level >= 0:
        ctx.save_for_forward(*operands)
    ctx.set_materialize_grads(False)
    if not all(plan.flows):
        ctx.mark_non_differentiable(*(y for y, flows in zip(out, plan.flows, strict=True) if not flows))


def _sums(terms: list[tuple[Plan, Term]], operands: Tensors, given: Sequence[Any]) -> dict[int, Any]:
    """The sums of the terms, by target."""
    sums: dict[int, Any] = {}
    for plan, term in terms:
        rows = [operands[n] if kind == OPERAND else given[n] for kind, n in term.operands]
        for target, value in zip(term.targets, apply(plan, rows), strict=True):
            sums[target] = sums[target] + value if target in sums else value
    return sums


def _summed(gradient: Any, shape: Sequence[int]) -> Any:
    """The gradient summed over the batch axes along which the operand had size 1."""
    axes = [k for k, (n, size) in enumerate(zip(gradient.shape, shape, strict=True)) if n != size]
    return gradient.sum(axes, keepdim=True) if axes else gradient


def gradients_of(plan: Plan, operands: Tensors, needed: Sequence[bool], cotangents: Sequence[Any]) -> list[Any]:
    """Gradients of the operands that need one, None for the others."""
    live = tuple([n for n, c in enumerate(cotangents) if c is not None])
    wanted = tuple([n for n, need in enumerate(needed) if need])
    terms = plan.gradients if plan.spec.tape is None else plan.from_tape
    sums = _sums(terms(wanted, live), operands, cotangents)
    if plan.batch:
        sums = {n: _summed(value, operands[n].shape) for n, value in sums.items()}
    return [sums.get(n) for n in range(len(needed))]


def _taped(plan: Plan, operands: Tensors, needed: Sequence[bool]) -> Plan | None:
    """The plan with a tape for the backward pass, where one is worth keeping, of tensors that are numbers."""
    if forward_ad._current_level >= 0 or modes() or _tracing():
        return None
    if any(type(x) not in PLAIN or not x.is_cpu or _is_mapped(x) for x in operands):
        return None
    return plan.taped(tuple([n for n, need in enumerate(needed) if need]))


class _Recorded(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """A program, for autograd and forward mode."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, *operands: torch.Tensor) -> Any:
        ctx.taped = taped = _taped(plan, operands, ctx.needs_input_grad[1:])
        if taped is None:
            out = plan.run(operands)
            _keep(ctx, plan, operands, out)
            return out
        *values, tape = taped.run(operands)
        _keep(ctx, plan, operands, values, (tape,))
        return tuple(values)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        operands, plan, needed = ctx.saved_tensors, ctx.plan, ctx.needs_input_grad[1:]
        taped = getattr(ctx, "taped", None)
        again = torch.is_grad_enabled() or any(c is not None and _is_mapped(c) for c in cotangents)
        if taped is not None and not again:
            return None, *gradients_of(taped, operands, needed, cotangents)
        count = len(operands) - (taped is not None)
        return None, *gradients_of(plan, operands[:count], needed, cotangents)

    @staticmethod
    def jvp(ctx: Any, *given: Any) -> Any:
        plan, operands, tangents = ctx.plan, ctx.saved_tensors, given[1:]
        moved = tuple([n for n, t in enumerate(tangents) if t is not None])
        sums = _sums(plan.tangents(moved), operands, tangents)
        return tuple(
            [
                sums[n] if n in sums else operands[0].new_zeros(shape, dtype=dtype) if plan.flows[n] else None
                for n, (shape, dtype) in enumerate(plan.made)
            ]
        )


class _Transformed(_Recorded):
    """The same for the transforms of `torch.func`, which want the context apart."""

    @staticmethod
    def forward(plan: Plan, *operands: torch.Tensor) -> Any:  # type: ignore[override]
        return plan.run(operands)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _keep(ctx, inputs[0], inputs[1:], output)
        ctx.save_for_forward(*inputs[1:])  # in a compiled graph the level of forward mode is not told

    @staticmethod
    def vmap(info: Any, in_dims: Any, plan: Plan, *operands: torch.Tensor) -> Any:
        rows = [x.unsqueeze(0) if d is None else x.movedim(d, 0) for x, d in zip(operands, in_dims[1:], strict=True)]
        out = apply(plan.mapped(int(info.batch_size)), rows)
        return out, (0,) * len(out)
