"""The engine: kernels, signatures, and the functions that differentiate them. Names are handed on lazily (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irgrad.engine.api import (
        batch,
        batch_grad,
        batch_jvp,
        batch_value_and_grad,
        batch_vjp,
        broadcast,
        check,
        grad,
        hessian,
        hessian_sparse,
        hvp,
        jac_sparse,
        jacfwd,
        jacobian,
        jacrev,
        jvp,
        multi_jvp,
        multi_vjp,
        value_and_grad,
        vjp,
    )
    from irgrad.engine.functions.bench import bench
    from irgrad.engine.functions.implicit import fixed_point, linear_solve, root
    from irgrad.engine.functions.nonfinite import first_nonfinite
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.kernel.memory import release
    from irgrad.engine.kernel.primals import primal
    from irgrad.engine.kernel.tapes import explain_tape
    from irgrad.engine.report.batch_text import explain_batch
    from irgrad.engine.report.calls import explain_rules
    from irgrad.engine.report.derivation import explain_plan
    from irgrad.engine.report.explain import explain
    from irgrad.engine.rulecheck.check import check_rule
    from irgrad.engine.signature.signature import Signature

__all__ = [
    "Kernel",
    "Signature",
    "batch",
    "batch_grad",
    "batch_jvp",
    "batch_value_and_grad",
    "batch_vjp",
    "bench",
    "broadcast",
    "check",
    "check_rule",
    "explain",
    "explain_batch",
    "explain_plan",
    "explain_rules",
    "explain_tape",
    "first_nonfinite",
    "fixed_point",
    "grad",
    "hessian",
    "hessian_sparse",
    "hvp",
    "jac_sparse",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_solve",
    "multi_jvp",
    "multi_vjp",
    "primal",
    "release",
    "root",
    "value_and_grad",
    "vjp",
]

# Each name comes from the module that defines it, not from `api`, which imports all of them: a gradient that is served
# from the disk cache imports what runs it and nothing else.
_HOMES: dict[str, str] = {
    "Kernel": "irgrad.engine.kernel.kernel",
    "Signature": "irgrad.engine.signature.signature",
    **dict.fromkeys(("grad", "hvp", "jvp", "value_and_grad", "vjp"), "irgrad.engine.functions.gradients"),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), "irgrad.engine.functions.jacobians"),
    **dict.fromkeys(("hessian_sparse", "jac_sparse"), "irgrad.engine.functions.sparse"),
    **dict.fromkeys((name for name in __all__ if "batch" in name), "irgrad.engine.batches.batched"),
    "broadcast": "irgrad.engine.batches.broadcast",
    **dict.fromkeys(("multi_jvp", "multi_vjp"), "irgrad.engine.functions.directions"),
    "bench": "irgrad.engine.functions.bench",
    "check": "irgrad.engine.functions.checking",
    "first_nonfinite": "irgrad.engine.functions.nonfinite",
    **dict.fromkeys(("fixed_point", "linear_solve", "root"), "irgrad.engine.functions.implicit"),
    "explain": "irgrad.engine.report.explain",
    "explain_batch": "irgrad.engine.report.batch_text",
    "explain_plan": "irgrad.engine.report.derivation",
    "explain_rules": "irgrad.engine.report.calls",
    "explain_tape": "irgrad.engine.kernel.tapes",
    "primal": "irgrad.engine.kernel.primals",
    "release": "irgrad.engine.kernel.memory",
    "check_rule": "irgrad.engine.rulecheck.check",
}


def __getattr__(name: str) -> Any:
    """Import the home of `name` on first use. Raises AttributeError for a name that is not handed on."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'irgrad.engine' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
