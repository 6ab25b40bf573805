"""The public functions of the engine, in one place: each is defined in the module of its family."""

from __future__ import annotations

from irgrad.engine.batches.batched import batch, batch_grad, batch_jvp, batch_value_and_grad, batch_vjp
from irgrad.engine.batches.broadcast import broadcast
from irgrad.engine.functions.checking import CheckReport, check
from irgrad.engine.functions.directions import multi_jvp, multi_vjp
from irgrad.engine.functions.gradients import grad, hvp, jvp, value_and_grad, vjp
from irgrad.engine.functions.jacobians import hessian, jacfwd, jacobian, jacrev
from irgrad.engine.functions.sparse import hessian_sparse, jac_sparse

__all__ = [
    "CheckReport",
    "batch",
    "batch_grad",
    "batch_jvp",
    "batch_value_and_grad",
    "batch_vjp",
    "broadcast",
    "check",
    "grad",
    "hessian",
    "hessian_sparse",
    "hvp",
    "jac_sparse",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "multi_jvp",
    "multi_vjp",
    "value_and_grad",
    "vjp",
]
