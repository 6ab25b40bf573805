"""The engine: kernels, signatures, and the functions that differentiate them. Names are handed on lazily (PEP 562)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irgrad.engine.api import (
        batch,
        batch_grad,
        batch_jvp,
        batch_value_and_grad,
        batch_vjp,
        check,
        explain_batch,
        grad,
        hessian,
        hessian_sparse,
        hvp,
        jac_sparse,
        jacfwd,
        jacrev,
        jvp,
        multi_jvp,
        multi_vjp,
        value_and_grad,
        vjp,
    )
    from irgrad.engine.explain import explain_rules
    from irgrad.engine.kernel import Kernel
    from irgrad.engine.signature import Signature

__all__ = [
    "Kernel",
    "Signature",
    "batch",
    "batch_grad",
    "batch_jvp",
    "batch_value_and_grad",
    "batch_vjp",
    "check",
    "explain_batch",
    "explain_rules",
    "grad",
    "hessian",
    "hessian_sparse",
    "hvp",
    "jac_sparse",
    "jacfwd",
    "jacrev",
    "jvp",
    "multi_jvp",
    "multi_vjp",
    "value_and_grad",
    "vjp",
]

_HOMES: dict[str, str] = {
    "Kernel": "irgrad.engine.kernel",
    "Signature": "irgrad.engine.signature",
    **{name: "irgrad.engine.api" for name in __all__ if name.islower()},
    "explain_rules": "irgrad.engine.explain",
}


def __getattr__(name: str) -> Any:
    """Import the home of `name` on first use. Raises AttributeError for a name that is not handed on."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'irgrad.engine' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
