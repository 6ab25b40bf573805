"""The expression algebra in which partial derivatives are written.

An expression is an immutable node, interned: two equal expressions are one object, so equality is `is`, sharing costs
nothing, and walking an expression touches each distinct node once.

    Arg(i)             the i-th argument of the primal function
    Result(j)          its j-th result
    Const(v)           a float; `exact` names the real number it rounds (a fraction, "pi", ...)
    ZERO               the structural zero: "does not depend on". It absorbs every factor, infinities and NaN too
    Op(name, args)     an operation or a function; `name` is the name of the function itself: "mul", "sin", "hypot"
    Cmp(pred, a, b)    a comparison; `pred` is LLVM's: "olt", "oeq", "uno", ...
    Where(c, a, b)     a where c holds, else b; both are evaluated

One expression has several readings (emit IR, floats, complex, mpmath), all through the protocol EmitContext.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeVar, Union

from irgrad.rules.expressions.costs import LIBRARY_CALL, OPERATIONS

__all__ = [
    "ZERO",
    "Arg",
    "Cmp",
    "Const",
    "EmitContext",
    "Expr",
    "Op",
    "Result",
    "Where",
    "call",
    "const",
    "cost",
    "emit",
    "needs",
    "nodes",
    "to_text",
]

V = TypeVar("V")
Operand = Union["Expr", float, int, Fraction]
Values = Sequence[V] | Mapping[int, V]
"""Values by position; a mapping may leave out those that are not needed."""

_INTERNED: weakref.WeakValueDictionary[tuple[Any, ...], Expr] = weakref.WeakValueDictionary()

CONSTANTS: dict[str, float] = {
    "pi": 3.141592653589793,
    "ln2": 0.6931471805599453,
    "ln10": 2.302585092994046,
    "1/ln2": 1.4426950408889634,
    "1/ln10": 0.4342944819032518,
    "2/sqrt(pi)": 1.1283791670955126,
}
"""Named real numbers, rounded to double. The mpmath reading computes them in full precision."""


class EmitContext(Protocol[V]):
    """What a reading provides. The engine's writes instructions; the others compute.

    `op` gets names of this module: add sub mul div neg fma, the C names of functions (sin, pow, jn, ...), and three
    that work on integer arguments: `sitofp` (integer to the float type of the row), `iadd1`, `isub1`.
    `powi`, `ldexp` and `scalbln` take (float, integer); `jn` and `yn` take (integer, float).
    """

    def const(self, value: float) -> V: ...

    def op(self, name: str, *args: V) -> V: ...

    def cmp(self, pred: str, a: V, b: V) -> V: ...

    def where(self, condition: V, a: V, b: V) -> V: ...


class Expr:
    """Base of all nodes. Python's operators build expressions with light simplification (see `call`)."""

    __slots__ = ("__weakref__", "children")
    children: tuple[Expr, ...]

    def __add__(self, other: Operand) -> Expr:
        return call("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return call("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return call("sub", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return call("sub", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return call("mul", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return call("mul", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return call("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return call("div", other, self)

    def __pow__(self, other: Operand) -> Expr:
        if isinstance(other, int) and 1 <= other <= 4:
            square = self * self
            return (self, square, square * self, square * square)[other - 1]
        return call("pow", self, other)

    def __neg__(self) -> Expr:
        return call("neg", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return call("fabs", self)

    def __lt__(self, other: Operand) -> Expr:
        return compare("olt", self, other)

    def __le__(self, other: Operand) -> Expr:
        return compare("ole", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return compare("ogt", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return compare("oge", self, other)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value; use `where(condition, a, b)` instead of `if`")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Operand, **options: Any) -> Expr:
        """NumPy's functions on expressions: `np.sqrt(x)` builds an Op. Raises TypeError for what has no name here."""
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or options or name not in OPERATIONS:
            raise TypeError(f"`numpy.{ufunc.__name__}` has no counterpart among expressions")
        return call(name, *inputs)

    def __repr__(self) -> str:
        return to_text(self)


class Arg(Expr):
    """Argument `index` of the primal function, in the order of its C prototype."""

    __slots__ = ("index",)
    index: int

    def __new__(cls, index: int) -> Arg:
        return _intern(cls, ("arg", index), (), index=index)


class Result(Expr):
    """Result `index` of the primal function (`y`); its row says where that result goes."""

    __slots__ = ("index",)
    index: int

    def __new__(cls, index: int = 0) -> Result:
        return _intern(cls, ("result", index), (), index=index)


class Const(Expr):
    """A float. `exact` is the real number it stands for where that is no double: a Fraction or a name of CONSTANTS."""

    __slots__ = ("exact", "value")
    value: float
    exact: Fraction | str | None

    def __new__(cls, value: float, exact: Fraction | str | None = None) -> Const:
        # repr tells -0.0 from 0.0, and NaN equals itself there
        return _intern(cls, ("const", repr(value), exact), (), value=value, exact=exact)


class Zero(Expr):
    """The structural zero; use the constant ZERO."""

    __slots__ = ()

    def __new__(cls) -> Zero:
        return _intern(cls, ("zero",), ())


class Op(Expr):
    """Operation `name` on `children`. Build it with `call`, which simplifies."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str, children: tuple[Expr, ...]) -> Op:
        return _intern(cls, ("op", name, *map(id, children)), children, name=name)


class Cmp(Expr):
    """Comparison of two floats with LLVM's predicate `pred`; only a condition of Where reads it."""

    __slots__ = ("pred",)
    pred: str

    def __new__(cls, pred: str, a: Expr, b: Expr) -> Cmp:
        return _intern(cls, ("cmp", pred, id(a), id(b)), (a, b), pred=pred)


class Where(Expr):
    """children = (condition, if true, if false). Build it with `where`."""

    __slots__ = ()

    def __new__(cls, condition: Expr, a: Expr, b: Expr) -> Where:
        return _intern(cls, ("where", id(condition), id(a), id(b)), (condition, a, b))


E = TypeVar("E", bound=Expr)


def _intern(cls: type[E], key: tuple[Any, ...], children: tuple[Expr, ...], **fields: Any) -> E:
    """The one node of that key. A node keeps its children alive, so the ids in a live key are never reused."""
    found = _INTERNED.get(key)
    if found is None:
        found = object.__new__(cls)
        found.children = children
        for field, value in fields.items():
            setattr(found, field, value)
        # setdefault: when two threads meet here, both get the same node
        found = _INTERNED.setdefault(key, found)
    assert isinstance(found, cls)
    return found


ZERO = Zero()
_ONE = Const(1.0)
_MINUS_ONE = Const(-1.0)


def const(value: Operand | str) -> Expr:
    """An operand as an expression. A Fraction or a name of CONSTANTS keeps its exact meaning for mpmath."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return Const(CONSTANTS[value], value)
    rounded = float(value)
    exact = value if isinstance(value, Fraction) and Fraction(rounded) != value else None
    return Const(rounded, exact)


def compare(pred: str, a: Operand, b: Operand) -> Expr:
    """A comparison; the structural zero compares as 0.0."""
    return Cmp(pred, _solid(const(a)), _solid(const(b)))


def where(condition: Expr, a: Operand, b: Operand) -> Expr:
    """`a` where the condition holds, else `b`. Both sides are evaluated: neither may trap, either may be NaN."""
    yes, no = const(a), const(b)
    return yes if yes is no else Where(condition, yes, no)


def call(name: str, *operands: Operand) -> Expr:
    """Operation `name`, simplified where IEEE arithmetic allows it.

    Exact for every input: x*1, x/1, x*(-1), -(-x), x-(-y), x+(-y), constants whose result is exact. The structural zero
    vanishes from sums and absorbs products. Nothing is reassociated, and 0.0*x stays (x may be infinite).
    """
    args = tuple(const(value) for value in operands)
    simplify = _SIMPLIFY.get(name)
    found = simplify(*args) if simplify else None
    if found is None and name in _FOLD and all(isinstance(a, Const) and a.exact is None for a in args):
        found = _fold(name, args)
    return Op(name, tuple(map(_solid, args))) if found is None else found


def _solid(e: Expr) -> Expr:
    """An operand of a function that is no sum and no product: there the structural zero is the number 0."""
    return Const(0.0) if e is ZERO else e


def _fold(name: str, args: tuple[Expr, ...]) -> Expr | None:
    values = [Fraction(a.value) for a in args if isinstance(a, Const) and abs(a.value) < float("inf")]
    if len(values) != len(args) or (name == "div" and values[1] == 0) or 0 in values:
        return None  # signed zeros, NaN and infinities are left to the machine
    exact: Fraction = _FOLD[name](*values)
    try:
        rounded = float(exact)
    except OverflowError:
        return None
    return Const(rounded) if exact and Fraction(rounded) == exact else None


def _negated(e: Expr) -> Expr | None:
    return e.children[0] if isinstance(e, Op) and e.name == "neg" else None


def _simplify_add(a: Expr, b: Expr) -> Expr | None:
    if a is ZERO or b is ZERO:
        return b if a is ZERO else a
    inner = _negated(b)
    return call("sub", a, inner) if inner is not None else None


def _simplify_sub(a: Expr, b: Expr) -> Expr | None:
    if a is ZERO or b is ZERO:
        return call("neg", b) if a is ZERO else a
    inner = _negated(b)
    return call("add", a, inner) if inner is not None else None


def _simplify_mul(a: Expr, b: Expr) -> Expr | None:
    if a is ZERO or b is ZERO:
        return ZERO
    for one, other in ((a, b), (b, a)):
        if one is _ONE:
            return other
        if one is _MINUS_ONE:
            return call("neg", other)
    return None


def _simplify_div(a: Expr, b: Expr) -> Expr | None:
    if a is ZERO:
        return ZERO
    if b is ZERO:
        raise ZeroDivisionError("a rule divides by a structural zero")
    if b is _ONE:
        return a
    return call("neg", a) if b is _MINUS_ONE else None


def _simplify_neg(a: Expr) -> Expr | None:
    return ZERO if a is ZERO else _negated(a)


_SIMPLIFY: dict[str, Callable[..., Expr | None]] = {
    "add": _simplify_add, "sub": _simplify_sub, "mul": _simplify_mul, "div": _simplify_div, "neg": _simplify_neg,
}  # fmt: skip
_FOLD: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "neg": lambda a: -a,
}  # fmt: skip
_UFUNCS = {
    "absolute": "fabs", "negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div", "power": "pow",
    "true_divide": "div", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip

def operation_cost(name: str) -> int:
    """Cost of an operation or function by its name in expressions, in units of one addition."""
    return OPERATIONS.get(name, LIBRARY_CALL)


@lru_cache(1024)  # expressions of tables are walked for each instruction that they are applied to
def nodes(*roots: Expr) -> tuple[Expr, ...]:
    """Every distinct node below `roots`, operands before their users."""
    seen: set[int] = set()
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children) if id(child) not in seen)
    return tuple(order)


@lru_cache(1024)
def needs(*roots: Expr) -> frozenset[Arg | Result]:
    """The arguments and results of the primal function that the expressions read."""
    return frozenset(node for node in nodes(*roots) if isinstance(node, Arg | Result))


def cost(*roots: Expr) -> int:
    """Work of evaluating the expressions together, in units of one addition (`OPERATIONS`; 20 for what it lacks)."""
    total = 0
    for node in nodes(*roots):
        if isinstance(node, Op):
            total += OPERATIONS.get(node.name, LIBRARY_CALL)
        elif isinstance(node, Cmp | Where):
            total += 1
    return total


def emit(
    expr: Expr, ctx: EmitContext[V], args: Values[V], results: Values[V] = (), memo: dict[Expr, V] | None = None
) -> V:
    """Read `expr` through `ctx`, each distinct node once. Pass one `memo` to share work between several expressions.

    `args[i]` and `results[j]` are the values of Arg(i) and Result(j). Returns the value of the expression; the
    structural zero becomes `ctx.const(0.0)`, so ask `expr is ZERO` before emitting.
    """
    done: dict[Expr, V] = {} if memo is None else memo
    if expr in done:
        return done[expr]
    for node in nodes(expr):
        if node not in done:
            done[node] = _emit_node(node, ctx, args, results, done)
    return done[expr]


def _emit_node(node: Expr, ctx: EmitContext[V], args: Values[V], results: Values[V], done: dict[Expr, V]) -> V:
    operands = [done[child] for child in node.children]
    if isinstance(node, Op):
        return ctx.op(node.name, *operands)
    if isinstance(node, Arg):
        return args[node.index]
    if isinstance(node, Result):
        return results[node.index]
    if isinstance(node, Cmp):
        return ctx.cmp(node.pred, *operands)
    if isinstance(node, Where):
        return ctx.where(*operands)
    if isinstance(node, Const):
        exact = getattr(ctx, "exact_const", None)
        return exact(node.exact) if exact and node.exact is not None else ctx.const(node.value)
    return ctx.const(0.0)


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_PREDICATES = {"olt": "<", "ole": "<=", "ogt": ">", "oge": ">=", "oeq": "==", "une": "!="}


def to_text(expr: Expr) -> str:
    """The expression as one would write it: `x0`, `x1` are arguments, `y0` results."""
    text: dict[Expr, str] = {}
    for node in nodes(expr):
        parts = [text[child] for child in node.children]
        if isinstance(node, Arg | Result):
            text[node] = f"{'x' if isinstance(node, Arg) else 'y'}{node.index}"
        elif isinstance(node, Const):
            text[node] = f"{node.value:g}" if node.exact is None else f"({node.exact})"
        elif isinstance(node, Op) and node.name in _INFIX:
            text[node] = f"({parts[0]} {_INFIX[node.name]} {parts[1]})"
        elif isinstance(node, Op):
            text[node] = f"-{parts[0]}" if node.name == "neg" else f"{node.name}({', '.join(parts)})"
        elif isinstance(node, Cmp):
            text[node] = f"({parts[0]} {_PREDICATES.get(node.pred, node.pred)} {parts[1]})"
        else:
            text[node] = "0" if node is ZERO else f"where({', '.join(parts)})"
    return text[expr]
