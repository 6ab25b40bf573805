"""`as_custom_jvp`: the partials of a rule for pure JAX code, as a function with `jax.custom_jvp`.

The expressions of the partials are read as `jax.numpy` (a reading as in `irgrad.rules.expressions.readings`), so the
function jits, batches and differentiates again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import scipy as jsp
from jax.custom_derivatives import SymbolicZero

from irgrad.rules.definitions.types import SCALARS, Active, Const, mode_type
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import ZERO, emit
from irgrad.rules.expressions.row import Row
from irgrad.rules.keys import key_of
from irgrad.rules.layers import Snapshot, current

__all__ = ["JaxReading", "as_custom_jvp"]

_UNARY = (
    "sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt floor ceil trunc rint asin acos atan "
    "asinh acosh atanh"
).split()
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in _UNARY},
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "fadd": lambda a, b: a + b, "fsub": lambda a, b: a - b, "fmul": lambda a, b: a * b, "fdiv": lambda a, b: a / b,
    "neg": lambda a: -a, "fneg": lambda a: -a, "identity": lambda a: a, "fabs": jnp.abs,
    "iadd1": lambda n: n + 1, "isub1": lambda n: n - 1, "sitofp": lambda n: jnp.asarray(n) * 1.0,
    "fma": lambda a, b, c: a * b + c, "rsqrt": jax.lax.rsqrt, "exp10": lambda x: 10.0**x,
    "pow": jnp.power, "powi": lambda x, n: jax.lax.pow(x, jnp.asarray(n, jnp.int32)), "ldexp": jnp.ldexp,
    "scalbln": jnp.ldexp, "hypot": jnp.hypot, "atan2": jnp.arctan2, "copysign": jnp.copysign, "fmod": jnp.fmod,
    "remainder": lambda a, b: a - b * jnp.rint(a / b), "fmax": jnp.fmax, "fmin": jnp.fmin, "maximum": jnp.maximum,
    "minimum": jnp.minimum, "fdim": lambda a, b: jnp.maximum(a - b, 0), "nearbyint": jnp.rint, "roundeven": jnp.rint,
    "round": lambda x: jnp.trunc(x + jnp.copysign(0.5, x)), "erf": jsp.special.erf, "erfc": jsp.special.erfc,
    "lgamma": jsp.special.gammaln, "tgamma": jsp.special.gamma, "sinpi": lambda x: jnp.sin(np.pi * x),
    "cospi": lambda x: jnp.cos(np.pi * x), "tanpi": lambda x: jnp.tan(np.pi * x),
    "asinpi": lambda x: jnp.arcsin(x) / np.pi, "acospi": lambda x: jnp.arccos(x) / np.pi,
    "atanpi": lambda x: jnp.arctan(x) / np.pi, "sincos": lambda x: (jnp.sin(x), jnp.cos(x)),
    "sincos.pair": lambda x: (jnp.sin(x), jnp.cos(x)),
}  # fmt: skip
_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


class JaxReading:
    """Expressions of rules as `jax.numpy` arrays. Constants are Python floats: they take the other operand's type."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def const(self, value: float) -> float:
        return float(value)

    def op(self, name: str, *args: Any) -> Any:
        function = _FUNCTIONS.get(name)
        if function is None:
            raise RuleError(f"JAX has no function `{name}`", where=f"the partials of `{self.key}`",
                            because="the rule calls a function of the C library", fix="partials without it")
        return function(*args)

    def cmp(self, pred: str, a: Any, b: Any) -> Any:
        nan = jnp.isnan(a) | jnp.isnan(b)
        if pred in ("uno", "ord"):
            return nan if pred == "uno" else ~nan
        holds = _ORDERED[pred[1:]](a, b)
        return holds | nan if pred[0] == "u" else holds & ~nan

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return jnp.where(condition, a, b)


def as_custom_jvp(key: Any, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A JAX function of scalars or arrays (elementwise) whose derivative is the rule of `key`.

    key:      of a rule that gives partials: the user's, or a row of the tables (`"hypot"`, `"erf"`)
    function: what it computes, in JAX; for many rows of the tables it is known

    Works under `jit`, `grad`, `vmap` and in derivatives of derivatives; f32 and f64, and rules by dtype. The rules are
    those in force now. Raises RuleError where the rule has no partials, where JAX has no counterpart of a function that
    they call, and where `function` is missing.
    """
    name, rules = key_of(key).key.name, current()
    compute = function if function is not None else _FUNCTIONS.get(name)
    if compute is None:
        raise RuleError(f"nothing says what `{name}` computes in JAX", because="it is no function of jax.numpy",
                        fix=f'as_custom_jvp("{name}", lambda x: ...)')  # fmt: skip
    _known(rules, name)
    reading = JaxReading(name)

    primal: Any = jax.custom_jvp(lambda *args: compute(*args))

    def tangent(primals: Any, tangents: Any) -> Any:
        letters = "".join("i" if jnp.issubdtype(jnp.result_type(p), jnp.integer) else "f" for p in primals)
        floats = [p for p, c in zip(primals, letters, strict=True) if c == "f"]
        row = _row(rules, name, letters, jnp.result_type(*floats))
        y = primal(*primals)
        results = list(y) if isinstance(y, tuple) else [y]
        moved = [_pushed(reading, partials, primals, tangents, results, result)
                 for partials, result in zip(row.partials, results, strict=True)]  # fmt: skip
        return y, tuple(moved) if isinstance(y, tuple) else moved[0]

    primal.defjvp(tangent, symbolic_zeros=True)

    def called(*args: Any) -> Any:
        floats = [a for a in args if not jnp.issubdtype(jnp.result_type(a), jnp.integer)]
        kind = jnp.result_type(*floats) if floats else None
        return primal(*(jnp.asarray(a) if jnp.issubdtype(jnp.result_type(a), jnp.integer) else jnp.asarray(a, kind)
                        for a in args))  # fmt: skip

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"`{name}`; its derivative is the rule of irgrad."
    return called


def _pushed(reading: JaxReading, partials: Sequence[Any], primals: Any, tangents: Any, results: Any, like: Any) -> Any:
    """The sum of partials times tangents; what is zero by structure takes no part, infinite partials or not."""
    total: Any = jnp.zeros_like(like)
    for partial, t in zip(partials, tangents, strict=False):
        if partial is not ZERO and not isinstance(t, SymbolicZero) and t.dtype != jax.dtypes.float0:
            total = total + emit(partial, reading, primals, results) * t
    return jnp.asarray(total, jnp.result_type(like))


def _known(rules: Snapshot, name: str) -> None:
    from irgrad.rules.table import rows

    if name not in rows() and not rules.find(name):
        raise RuleError(f"there is no rule for `{name}`", because="no layer and no table knows it",
                        fix=f'@rule("{name}")')  # fmt: skip


def _row(rules: Snapshot, name: str, letters: str, dtype: Any) -> Row:
    """The partials for arguments of these kinds."""
    from irgrad.rules.table import rows

    real = SCALARS[{"float32": "f32", "float64": "f64", "float16": "f16"}.get(jnp.dtype(dtype).name, "f32")]
    kinds = [Active[real] if c == "f" else Const[SCALARS["i32"]] for c in letters]
    rule = rules.resolve(name, (mode_type("forward", 1), Active[real], *kinds))
    if rule is None and name in rows():
        row = rows()[name]
        if row.signature.replace("p", "") == letters:
            return row
    if rule is None or rule.form != "partials":
        because = f"the rule at {rule.place} is of the form `{rule.form}`" if rule is not None else "no rule fits"
        raise RuleError(f"there are no partials for `{name}` of {', '.join(map(str, kinds))}", because=because,
                        fix="JAX code needs partials: def _(x): return ...")  # fmt: skip
    return rule.partials(letters)
