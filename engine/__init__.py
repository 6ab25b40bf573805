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
    from irgrad.engine.rule_check import check_rule
    from irgrad.engine.signature import Signature
    from irgrad.engine.tapes import explain_tape

__all__ = [
    "Kernel",
    "Signature",
    "batch",
    "batch_grad",
    "batch_jvp",
    "batch_value_and_grad",
    "batch_vjp",
    "check",
    "check_rule",
    "explain_batch",
    "explain_rules",
    "explain_tape",
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

# Each name comes from the module that defines it, not from `api`, which imports all of them: a gradient that is served
# from the disk cache imports what runs it and nothing else.
_HOMES: dict[str, str] = {
    "Kernel": "irgrad.engine.kernel",
    "Signature": "irgrad.engine.signature",
    **dict.fromkeys(("grad", "hvp", "jvp", "value_and_grad", "vjp"), "irgrad.engine.gradients"),
    **dict.fromkeys(("hessian", "jacfwd", "jacrev"), "irgrad.engine.jacobians"),
    **dict.fromkeys(("hessian_sparse", "jac_sparse"), "irgrad.engine.sparse"),
    **dict.fromkeys((name for name in __all__ if "batch" in name), "irgrad.engine.batched"),
    **dict.fromkeys(("multi_jvp", "multi_vjp"), "irgrad.engine.directions"),
    "check": "irgrad.engine.checking",
    "explain_rules": "irgrad.engine.explain",
    "explain_tape": "irgrad.engine.tapes",
    "check_rule": "irgrad.engine.rule_check",
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
