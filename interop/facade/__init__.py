"""irgrad: derivatives of compiled functions.

This module only hands names on (PEP 562): `import irgrad` costs milliseconds, and numpy, LLVM and JAX are imported
when the first name that needs them is asked for.

    import irgrad as ig
    lib = ig.load("nbody.c")
    energy = lib.kernel("energy", "f64(f64[n,3] pos, f64[n] mass, i64 n)")
    ig.grad(energy, wrt="pos")(pos, mass)
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irgrad import engine, interop, rules
    from irgrad.engine import (
        Kernel,
        Signature,
        batch,
        batch_grad,
        batch_jvp,
        batch_value_and_grad,
        batch_vjp,
        bench,
        broadcast,
        check,
        check_rule,
        explain,
        explain_batch,
        explain_plan,
        explain_rules,
        explain_tape,
        first_nonfinite,
        fixed_point,
        grad,
        hessian,
        hessian_sparse,
        hvp,
        jac_sparse,
        jacfwd,
        jacobian,
        jacrev,
        jvp,
        linear_solve,
        multi_jvp,
        multi_vjp,
        primal,
        release,
        root,
        value_and_grad,
        vjp,
    )
    from irgrad.engine import constructs as parallel
    from irgrad.interop.loaders import Library, load
    from irgrad.interop.loaders.numba_functions import from_numba, jit
    from irgrad.rules import inactive, opt_out, rule
    from irgrad.rules.errors import (
        ActivityError,
        AmbiguousRuleError,
        CacheError,
        CompileError,
        DTypeError,
        IRGradError,
        IRInvalid,
        IRSyntaxError,
        KernelError,
        LimitExceeded,
        LoadError,
        MissingRuleError,
        OneAtATime,
        RuleError,
        ShapeError,
        SignatureError,
        TapeMemoryError,
        Unsupported,
    )

__version__ = "0.1.0"

_ERRORS = (
    "ActivityError",
    "AmbiguousRuleError",
    "CacheError",
    "CompileError",
    "DTypeError",
    "IRGradError",
    "IRInvalid",
    "IRSyntaxError",
    "KernelError",
    "LimitExceeded",
    "LoadError",
    "MissingRuleError",
    "OneAtATime",
    "RuleError",
    "ShapeError",
    "SignatureError",
    "TapeMemoryError",
    "Unsupported",
)

_ENGINE = (
    "Kernel", "Signature", "batch", "batch_grad", "batch_jvp", "batch_value_and_grad", "batch_vjp", "bench",
    "broadcast", "check", "check_rule", "explain", "explain_batch", "explain_plan", "explain_rules", "explain_tape",
    "first_nonfinite", "fixed_point", "grad", "hessian", "hessian_sparse", "hvp", "jac_sparse", "jacfwd",
    "jacobian", "jacrev", "jvp", "linear_solve", "multi_jvp", "multi_vjp", "primal", "release", "root",
    "value_and_grad", "vjp",
)  # fmt: skip
"""All of `irgrad.engine`: a test compares the two."""

# name -> module that defines it; an empty attribute means the module itself.
_HOMES: dict[str, tuple[str, str]] = {
    "engine": ("irgrad.engine", ""),
    "interop": ("irgrad.interop", ""),
    "rules": ("irgrad.rules", ""),
    "load": ("irgrad.interop.loaders", "load"),
    **{name: ("irgrad.interop.loaders.numba_functions", name) for name in ("from_numba", "jit")},
    "Library": ("irgrad.interop.loaders", "Library"),
    "parallel": ("irgrad.engine.constructs", ""),
    "torch": ("irgrad.interop.torch", ""),
    **{name: ("irgrad.engine", name) for name in _ENGINE},
    **{name: ("irgrad.rules", name) for name in ("inactive", "opt_out", "rule")},
    **{name: ("irgrad.rules.errors", name) for name in _ERRORS},
}

__all__ = [
    "ActivityError",
    "AmbiguousRuleError",
    "CacheError",
    "CompileError",
    "DTypeError",
    "IRGradError",
    "IRInvalid",
    "IRSyntaxError",
    "Kernel",
    "KernelError",
    "Library",
    "LimitExceeded",
    "LoadError",
    "MissingRuleError",
    "OneAtATime",
    "RuleError",
    "ShapeError",
    "Signature",
    "SignatureError",
    "TapeMemoryError",
    "Unsupported",
    "__version__",
    "batch",
    "batch_grad",
    "batch_jvp",
    "batch_value_and_grad",
    "batch_vjp",
    "bench",
    "broadcast",
    "check",
    "check_rule",
    "engine",
    "explain",
    "explain_batch",
    "explain_plan",
    "explain_rules",
    "explain_tape",
    "first_nonfinite",
    "fixed_point",
    "from_numba",
    "grad",
    "hessian",
    "hessian_sparse",
    "hvp",
    "inactive",
    "interop",
    "jac_sparse",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_solve",
    "load",
    "multi_jvp",
    "multi_vjp",
    "opt_out",
    "parallel",
    "primal",
    "release",
    "root",
    "rule",
    "rules",
    "value_and_grad",
    "vjp",
]


def __getattr__(name: str) -> Any:
    """Import the home of `name` on first use. Raises AttributeError for a name that is not handed on."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'irgrad' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    module = importlib.import_module(home[0])
    value = getattr(module, home[1]) if home[1] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
