"""The public functions of the engine, in one place: each is defined in the module of its family."""

from __future__ import annotations

from irgrad.engine.checking import CheckReport, check
from irgrad.engine.gradients import batch_grad, grad, hvp, jvp, value_and_grad, vjp
from irgrad.engine.jacobians import hessian, jacfwd, jacrev

__all__ = [
    "CheckReport",
    "batch_grad",
    "check",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vjp",
]
