"""Bodies of partials, run once on symbols: Python's operators and NumPy's functions build expressions.

A `Traced` stands for a floating-point number. Unlike an `Expr` it overloads `==`, and it turns integers into floats
where they meet floats. Conditions (`x > 0`, `a & b`, `~a`) are values of `np.where` only.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import ZERO, Arg, Expr, Result, call, compare, const, where

__all__ = ["Condition", "Traced", "choose", "innermost_line", "partials_of", "trace_partials"]


class Condition:
    """A comparison of traced values, or a combination of some: what `np.where` chooses by."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, *parts: Any) -> None:
        self.kind = kind  # "is" (a comparison), "and", "or", "not"
        self.parts = parts

    def __and__(self, other: Any) -> Condition:
        return Condition("and", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Condition:
        return Condition("or", self, other)

    __ror__ = __or__

    def __invert__(self) -> Condition:
        return Condition("not", self)

    def __bool__(self) -> bool:
        raise _undecided()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        kind = {"logical_and": "and", "bitwise_and": "and", "logical_or": "or", "bitwise_or": "or",
                "logical_not": "not", "invert": "not"}.get(ufunc.__name__)  # fmt: skip
        if kind is None or method != "__call__":
            return _apply(ufunc, method, inputs, options)
        return Condition(kind, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _array_function(function, args, kwargs)

    def choose(self, yes: Expr, no: Expr) -> Expr:
        """`yes` where this holds, else `no`."""
        if self.kind == "is":
            return where(self.parts[0], yes, no)
        if self.kind == "not":
            return choose(self.parts[0], no, yes)
        first, second = self.parts
        if self.kind == "and":
            return choose(first, choose(second, yes, no), no)
        return choose(first, yes, choose(second, yes, no))


def choose(condition: Any, yes: Expr, no: Expr) -> Expr:
    """A choice by a traced condition or by a plain bool."""
    if isinstance(condition, Condition):
        return condition.choose(yes, no)
    if isinstance(condition, Traced):
        return where(compare("une", condition.expr, 0.0), yes, no)
    return yes if condition else no


def _undecided() -> RuleError:
    return RuleError("a rule decides with `if` on a traced value", which=innermost_line(),
                     because="the body runs once, when the derivative is made: the value is not known then",
                     fix="np.where(condition, a, b)   (or ctx.when(condition) around calls)")  # fmt: skip


_ROOTS = {Path(__file__).parents[2], Path(__file__).resolve().parents[2]}  # as imported, and behind links
_OURS = tuple(f"{root / floor}/" for root in _ROOTS for floor in ("rules", "engine", "interop"))


def innermost_line() -> str:
    """The source line of the innermost frame outside of irgrad and its libraries."""
    for frame in reversed(traceback.extract_stack()):
        name = frame.filename
        if "site-packages" not in name and not name.startswith((*_OURS, "<frozen", "<__array_function__")):
            return f"{Path(name).name}:{frame.lineno}: {(frame.line or '').strip()}"
    return ""


class Traced:
    """A number that is known when the kernel runs. `whole`: an integer argument of the function."""

    __slots__ = ("expr", "whole")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr, whole: bool = False) -> None:
        self.expr = expr
        self.whole = whole

    def __bool__(self) -> bool:
        raise _undecided()

    def __float__(self) -> float:
        raise RuleError("a rule asks for the number behind a traced value", which=innermost_line(),
                        because="the body runs once, when the derivative is made: the value is not known then",
                        fix="NumPy's functions (np.exp, ...) instead of those of `math`")  # fmt: skip

    __int__ = __float__
    __index__ = __float__

    def __pos__(self) -> Traced:
        return self

    def __neg__(self) -> Traced:
        return Traced(call("neg", _expr(self)))

    def __abs__(self) -> Traced:
        return Traced(call("fabs", _expr(self)))

    def __pow__(self, other: Any) -> Traced:
        if isinstance(other, Traced | float):
            return Traced(call("pow", _expr(self), _expr(other)))
        if isinstance(other, int) and -4 <= other <= -1:
            return Traced(call("div", 1.0, _expr(self) ** -other))
        return Traced(_expr(self) ** other) if other else Traced(const(1.0))

    def __rpow__(self, other: Any) -> Traced:
        return Traced(call("pow", _expr(other), _expr(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _array_function(function, args, kwargs)

    def __repr__(self) -> str:
        return f"Traced({self.expr!r})"


def _binary(name: str, swapped: bool = False) -> Callable[[Traced, Any], Any]:
    def operator(a: Traced, b: Any) -> Any:
        if not isinstance(b, Traced | int | float) and not hasattr(b, "__float__"):
            return NotImplemented
        x, y = (b, a) if swapped else (a, b)
        return Traced(call(name, _expr(x), _expr(y)))

    return operator


def _comparison(predicate: str) -> Callable[[Traced, Any], Condition]:
    return lambda a, b: Condition("is", compare(predicate, _expr(a), _expr(b)))


for _name, _op in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
    setattr(Traced, f"__{_name}__", _binary(_op))
    setattr(Traced, f"__r{_name}__", _binary(_op, swapped=True))
for _name, _predicate in (("lt", "olt"), ("le", "ole"), ("gt", "ogt"), ("ge", "oge"), ("eq", "oeq"), ("ne", "une")):
    setattr(Traced, f"__{_name}__", _comparison(_predicate))


def _expr(value: Any) -> Expr:
    """An operand as an expression of floats."""
    if isinstance(value, Traced):
        return call("sitofp", value.expr) if value.whole else value.expr
    if isinstance(value, Expr):
        return value
    if isinstance(value, Condition):
        return value.choose(const(1.0), const(0.0))
    return const(float(value))


_NAMES = {
    "absolute": "fabs", "fabs": "fabs", "negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div",
    "true_divide": "div", "power": "pow", "float_power": "pow", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "gammaln": "lgamma",
    "gamma": "tgamma", "add": "add", "maximum": "maximum", "minimum": "minimum", "fmod": "fmod",
    **{name: name for name in (
        "sqrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh hypot cbrt erf erfc copysign floor "
        "ceil trunc rint fmax fmin j0 j1 y0 y1").split()},
}  # fmt: skip
_COMPARISONS = {"less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge", "equal": "oeq",
                "not_equal": "une"}  # fmt: skip
_COMPOSED: dict[str, Callable[..., Expr]] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: call("div", 1.0, x),
    "positive": lambda x: x,
    "sign": lambda x: where(compare("ogt", x, 0.0), 1.0, where(compare("olt", x, 0.0), -1.0, 0.0)),
    "logaddexp": lambda a, b: call("maximum", a, b) + call("log1p", call("exp", -call("fabs", a - b))),
    "deg2rad": lambda x: x * 0.017453292519943295,
    "rad2deg": lambda x: x * 57.29577951308232,
    "heaviside": lambda x, h: where(compare("ogt", x, 0.0), 1.0, where(compare("olt", x, 0.0), 0.0, h)),
    "expit": lambda x: call("div", 1.0, call("exp", -x) + 1.0),
}


def _apply(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if method == "__call__" and not options:
        if name in _NAMES:
            return Traced(call(_NAMES[name], *map(_expr, inputs)))
        if name in _COMPARISONS:
            return Condition("is", compare(_COMPARISONS[name], *map(_expr, inputs)))
        if name in _COMPOSED:
            return Traced(_COMPOSED[name](*map(_expr, inputs)))
        if name in ("ldexp", "jn"):
            return Traced(call(name, *[v.expr if isinstance(v, Traced) else const(v) for v in inputs]))
        if name in ("isnan", "isfinite"):
            x = _expr(inputs[0])
            finite = compare("olt", call("fabs", x), float("inf"))
            return Condition("is", compare("uno", x, x) if name == "isnan" else finite)
    raise RuleError(
        f"`{name}` is not among the functions that rules are written in",
        which=innermost_line(),
        because="the derivative is made of arithmetic, comparisons and functions of the C library",
        fix="write it with " + ", ".join(f"np.{n}" for n in ("exp", "log", "sqrt", "sin", "where")) + ", ...",
    )


def _array_function(function: Any, args: Any, kwargs: Any) -> Any:
    if function.__name__ == "where" and len(args) == 3 and not kwargs:
        condition, yes, no = args
        return Traced(choose(condition, _expr(yes), _expr(no)))
    if function.__name__ == "clip" and len(args) == 3:
        return Traced(call("minimum", call("maximum", _expr(args[0]), _expr(args[1])), _expr(args[2])))
    what = f"`np.{function.__name__}` is not among the functions that rules are written in"
    raise RuleError(what, which=innermost_line(),
                    because="partials are expressions of single numbers",
                    fix="write it with np.where and arithmetic")  # fmt: skip


def trace_partials(
    body: Callable[..., Any], letters: str, key: str, place: str, *, takes_result: bool
) -> tuple[tuple[Expr, ...], ...]:
    """Run the body: one expression per argument ("f" float, "i" integer, "p" pointer), ZERO for what is no float.

    Raises RuleError for a body of the wrong shape.
    """
    args = [Traced(Arg(i), letter == "i") for i, letter in enumerate(letters) if letter != "p"]
    options = {"y": Traced(Result(0))} if takes_result else {}
    if inspect.isfunction(body):
        signature = inspect.signature(body)
        try:
            signature.bind(*args, **options)
        except TypeError:
            taken = ", ".join(p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY)
            raise RuleError(f"the body of the rule for `{key}` takes ({taken})", where=place,
                            because=f"without `ctx` it gets the numbers of the call: {len(args)}",
                            fix="def _(ctx, ...): ... for a body that emits calls, or one parameter for each number"
                            ) from None  # fmt: skip
    return partials_of(body(*args, **options), letters, key, place)


def partials_of(got: Any, letters: str, key: str, place: str) -> tuple[tuple[Expr, ...], ...]:
    """What a body returned, by argument. Raises RuleError for a wrong number of partials."""
    if got is None:
        raise RuleError(f"the rule for `{key}` returns nothing", where=place,
                        because="its body ends without `return`, and a derivative that is zero is written as 0",
                        fix="return the partial derivatives, one for each floating-point argument")  # fmt: skip
    listed = list(got) if isinstance(got, tuple | list) else [got]
    floats = [i for i, letter in enumerate(letters) if letter == "f"]
    if len(listed) != len(floats):
        raise RuleError(f"the rule for `{key}` returns {len(listed)} partials", where=place,
                        because=f"the call has {len(floats)} floating-point arguments",
                        fix="return one expression per floating-point argument, 0 where there is none")  # fmt: skip
    by_position = dict(zip(floats, map(_partial, listed), strict=True))
    return (tuple(by_position.get(i, ZERO) for i in range(len(letters))),)


def _partial(value: Any) -> Expr:
    if value is None or (isinstance(value, int | float) and value == 0):
        return ZERO
    return _expr(value)
