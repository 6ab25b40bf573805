"""Partials written with jnp, jax.scipy or jax.grad: their jaxpr becomes an expression of the rule tables.

Scalar primitives only. Each row of `_PRIMITIVES` is a primitive and what it means; calls (jit, custom_jvp, ...) are
looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import ZERO, Arg, Expr, Result, call, compare, const, where
from irgrad.rules.expressions.tracing import Condition, choose, innermost_line

__all__ = ["trace_partials"]


def _named(name: str) -> Callable[..., Any]:
    return lambda eqn, *operands: call(name, *operands)


def _compared(predicate: str) -> Callable[..., Any]:
    return lambda eqn, a, b: Condition("is", compare(predicate, _float(a), _float(b)))


def _float(value: Any) -> Expr:
    return value.choose(const(1.0), const(0.0)) if isinstance(value, Condition) else value


def _select(eqn: Any, chosen: Any, *cases: Any) -> Any:
    condition = chosen if isinstance(chosen, Condition) else Condition("is", compare("une", _float(chosen), 0.0))
    if isinstance(cases[0], Condition):
        yes, no = Condition("and", condition, cases[1]), Condition("and", Condition("not", condition), cases[0])
        return Condition("or", yes, no)
    return choose(condition, _float(cases[1]), _float(cases[0]))


def _power(eqn: Any, x: Expr) -> Expr:
    exponent = int(eqn.params["y"])
    size = abs(exponent)
    result = x**size if 1 <= size <= 4 else call("pow", x, float(size)) if size else const(1.0)
    return call("div", 1.0, result) if exponent < 0 else result


def _sign(eqn: Any, x: Expr) -> Expr:
    return where(compare("ogt", x, 0.0), 1.0, where(compare("olt", x, 0.0), -1.0, x))


def _convert(eqn: Any, x: Any) -> Any:
    """Floats to integers lose their fraction, to bool everything but whether they are zero."""
    kind, before = np.dtype(eqn.params["new_dtype"]).kind, np.dtype(eqn.invars[0].aval.dtype).kind
    if kind == "b" and before != "b":
        return Condition("is", compare("une", _float(x), 0.0))
    return call("trunc", x) if kind in "iu" and before == "f" else x


def _round(eqn: Any, x: Expr) -> Expr:
    if int(eqn.params["rounding_method"]) != 1:
        raise RuleError("a rule rounds halves away from zero", which=innermost_line(),
                        because="the rule tables round halves to even", fix="jnp.round")  # fmt: skip
    return call("rint", x)


def _logic(kind: str) -> Callable[..., Any]:
    return lambda eqn, *operands: Condition(kind, *operands)


_PRIMITIVES: dict[str, Callable[..., Any]] = {
    **{name: _named(row) for name, row in (
        ("add", "add"), ("add_any", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "div"), ("neg", "neg"),
        ("abs", "fabs"), ("max", "maximum"), ("min", "minimum"), ("pow", "pow"), ("rem", "fmod"))},
    **{name: _named(name) for name in (
        "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p sqrt cbrt erf erfc "
        "lgamma floor ceil").split()},
    **{name: _compared(row) for name, row in (
        ("gt", "ogt"), ("ge", "oge"), ("lt", "olt"), ("le", "ole"), ("eq", "oeq"), ("ne", "une"))},
    "and": _logic("and"), "or": _logic("or"), "not": _logic("not"),
    "integer_pow": _power, "sign": _sign, "select_n": _select,
    "square": lambda eqn, x: x * x,
    "rsqrt": lambda eqn, x: call("div", 1.0, call("sqrt", x)),
    "logistic": lambda eqn, x: call("div", 1.0, call("exp", -x) + 1.0),
    "is_finite": lambda eqn, x: Condition("is", compare("olt", call("fabs", x), float("inf"))),
    "clamp": lambda eqn, low, x, high: call("minimum", call("maximum", x, low), high),
    "stop_gradient": lambda eqn, x: x,
    "convert_element_type": _convert, "round": _round,
    **dict.fromkeys(("copy", "copy_p", "broadcast_in_dim", "reshape", "squeeze"),
                    lambda eqn, x, *_: x),
}  # fmt: skip

# Functions of JAX that are written with the bits of numbers, by name.
_NAMED: dict[str, Callable[..., Expr]] = {"exp_neg_sq": lambda x: call("exp", -(x * x))}


def trace_partials(
    body: Callable[..., Any], letters: str, key: str, place: str, *, takes_result: bool
) -> tuple[tuple[Expr, ...], ...]:
    """As `irgrad.rules.expressions.tracing.trace_partials`, through the jaxpr of the body."""
    from irgrad.rules.expressions.tracing import partials_of

    positions = [i for i, letter in enumerate(letters) if letter != "p"]
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct((), np.int64 if letters[i] == "i" else np.float64) for i in positions]
        result = [jax.ShapeDtypeStruct((), np.float64)] if takes_result else []

        def flat(*values: Any) -> Any:
            return body(*values[:-1], y=values[-1]) if takes_result else body(*values)

        try:
            closed, out = jax.make_jaxpr(flat, return_shape=True)(*shapes, *result)
        except jax.errors.ConcretizationTypeError:
            raise RuleError("a rule decides with `if` on a traced value", where=place,
                            because="the body runs once, when the derivative is made: the value is not known then",
                            fix="jnp.where(condition, a, b)") from None  # fmt: skip
    inputs = [Arg(i) if letters[i] != "i" else call("sitofp", Arg(i)) for i in positions]
    values = _evaluate(closed.jaxpr, closed.consts, [*inputs, *([Result(0)] if takes_result else [])], key)
    listed = jax.tree.unflatten(jax.tree.structure(out), [_literal(v) for v in values])
    return partials_of(listed, letters, key, place)


def _literal(value: Any) -> Any:
    """A value of the body; the structural zero for a literal 0."""
    found = _float(value)
    return ZERO if found is const(0.0) else found


def _evaluate(jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any], key: str) -> list[Any]:
    known: dict[Any, Any] = dict(zip(jaxpr.invars, inputs, strict=True))
    known.update(zip(jaxpr.constvars, map(_constant, consts), strict=True))

    def read(atom: Any) -> Any:
        return _constant(atom.val) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        results = _equation(eqn, operands, key)
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _equation(eqn: Any, operands: list[Any], key: str) -> list[Any]:
    name = eqn.primitive.name
    inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr") or eqn.params.get("fun_jaxpr")
    named = _NAMED.get(_function_of(inner)) if name == "custom_jvp_call" else None
    if named is not None:
        return [named(*operands)]
    if inner is not None and name not in ("while", "scan", "cond"):
        jaxpr = getattr(inner, "jaxpr", inner)
        return _evaluate(jaxpr, getattr(inner, "consts", ()), operands[: len(jaxpr.invars)], key)
    scalar = all(getattr(atom.aval, "shape", ()) == () for atom in (*eqn.invars, *eqn.outvars))
    handler = _PRIMITIVES.get(name)
    if handler is None or not scalar:
        raise RuleError(f"the rule for `{key}` uses `{name}`", which=innermost_line(),
                        because="C has no counterpart" if scalar else "partials are expressions of single numbers",
                        fix="scalar arithmetic, functions of the C library, jnp.where")  # fmt: skip
    return [handler(eqn, *operands)]


def _function_of(closed: Any) -> str:
    """The Python function that a jaxpr was traced from."""
    info = getattr(getattr(closed, "jaxpr", closed), "debug_info", None)
    return str(getattr(info, "func_name", ""))


def _constant(value: Any) -> Any:
    array = np.asarray(value)
    if array.shape != ():
        raise RuleError("a rule uses an array", which=repr(value),
                        because="partials are expressions of single numbers", fix="scalar arithmetic")  # fmt: skip
    if array.dtype == np.bool_:
        holds = compare("oeq", 0.0, 0.0)
        return Condition("is", holds) if array else Condition("not", Condition("is", holds))
    return const(float(array))
