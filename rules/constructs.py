"""Parallel constructs as keys of rules: `reduce`, `scan`, `map`, `scatter` with `op=`, and their derivatives on NumPy.

    rule(reduce, op="sum") ...                 a rule of the user for one operation
    derivative("reduce", "product")            the value, the tangent and the cotangents

No derivative divides, so all are right where factors are zero:

    reduce product   x_bar[i] = y_bar * (x[0] ... x[i-1]) * (x[i+1] ... x[n-1])        prefix times suffix products
    scan             l[k] = y_bar[k] + f_a(y[k], x[k+1]) l[k+1],  x_bar[k] = l[k] f_b(y[k-1], x[k])
                     for y[k] = f(y[k-1], x[k]): a linear recurrence, backwards (Blelloch, "Prefix sums and their
                     applications", 1990, section 1.4)
    scatter product  as reduce, among the factors that meet in one place

Ties of min and max: the first of the equal elements takes the whole derivative; in `scatter` what was there before
comes first, then the elements by position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irgrad.rules.definitions.definition import Key
from irgrad.rules.errors import RuleError

__all__ = ["CONSTRUCTS", "OPERATIONS", "Derivative", "derivative", "general", "map", "reduce", "scan", "scatter"]

reduce, scan, map, scatter = (Key(kind, "any") for kind in ("reduce", "scan", "map", "scatter"))  # noqa: A001
CONSTRUCTS = ("reduce", "scan", "map", "scatter")
OPERATIONS = ("sum", "product", "min", "max")


@dataclass(frozen=True, slots=True)
class Derivative:
    """value(x, ...) -> y;  forward(x, ..., dx) -> dy;  reverse(x, ..., y_bar) -> cotangents of the float arguments.

    `reduce` and `scan` take x;  `map` takes x;  `scatter` takes (base, index, x) and has tangents of base and x.
    """

    value: Callable[..., Any]
    forward: Callable[..., Any]
    reverse: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class general:  # noqa: N801 - spelled like the other operations
    """An operation f(a, b) with its partials: for `map`, f(x) with one partial."""

    function: Callable[..., Any]
    partials: Callable[..., Any]


def derivative(construct: str, op: str | general) -> Derivative:
    """The derivative of a construct. Raises RuleError for an operation that it does not have."""
    if isinstance(op, general):
        made = {"reduce": _reduce_general, "scan": _scan_general, "map": _map_general}.get(construct)
        if made is not None:
            return made(op)
    elif construct == "reduce" and op in _REDUCE:
        return _REDUCE[op]
    elif construct == "scan" and op in OPERATIONS:
        return _SCAN[op] if op in _SCAN else _scan_general(_BINARY[op])
    elif construct == "scatter" and op in OPERATIONS:
        return _SCATTER[op]
    raise RuleError(f"`{construct}` has no operation {op!r}", because=f"the operations are {', '.join(OPERATIONS)}",
                    fix="general(f, partials) for reduce, scan and map")  # fmt: skip


def _dot(a: Any, b: Any) -> Any:
    import numpy as np

    return np.sum(a * b, axis=0)


def others(x: Any) -> Any:
    """For each element the product of all others: prefix times suffix products."""
    import numpy as np

    ahead, behind = np.ones_like(x), np.ones_like(x)
    np.cumprod(x[:-1], axis=0, out=ahead[1:])
    behind[:-1] = np.cumprod(x[:0:-1], axis=0)[::-1]
    return ahead * behind


def _first(choose: str) -> Callable[[Any], Any]:
    """One at the first smallest (largest) element, zero elsewhere."""

    def at(x: Any) -> Any:
        import numpy as np

        mark = np.zeros_like(x)
        np.put_along_axis(mark, np.expand_dims(getattr(np, choose)(x, axis=0), 0), 1, axis=0)
        return mark

    return at


def _linear_in(slopes: Callable[[Any], Any], value: Callable[[Any], Any]) -> Derivative:
    return Derivative(value, lambda x, dx: _dot(slopes(x), dx), lambda x, y_bar: slopes(x) * y_bar)


def _ones(x: Any) -> Any:
    import numpy as np

    return np.ones_like(x)


_REDUCE = {
    "sum": _linear_in(_ones, lambda x: x.sum(axis=0)),
    "product": _linear_in(others, lambda x: x.prod(axis=0)),
    "min": _linear_in(_first("argmin"), lambda x: x.min(axis=0)),
    "max": _linear_in(_first("argmax"), lambda x: x.max(axis=0)),
}


def _scan_general(op: general) -> Derivative:
    import numpy as np

    def value(x: Any) -> Any:
        y = np.array(x)
        for k in range(1, len(y)):
            y[k] = op.function(y[k - 1], x[k])
        return y

    def forward(x: Any, dx: Any) -> Any:
        y, dy = value(x), np.array(dx)
        for k in range(1, len(y)):
            a, b = op.partials(y[k - 1], x[k])
            dy[k] = a * dy[k - 1] + b * dx[k]
        return dy

    def reverse(x: Any, y_bar: Any) -> Any:
        y, x_bar = value(x), np.zeros_like(x)
        carried: Any = np.array(y_bar[-1]) if len(y) else 0.0
        for k in range(len(y) - 1, 0, -1):
            a, b = op.partials(y[k - 1], x[k])
            x_bar[k] = carried * b
            carried = y_bar[k - 1] + carried * a
        if len(y):
            x_bar[0] = carried
        return x_bar

    return Derivative(value, forward, reverse)


def _reduce_general(op: general) -> Derivative:
    """The last element of the scan."""
    import numpy as np

    scanned = _scan_general(op)

    def reverse(x: Any, y_bar: Any) -> Any:
        seeds = np.zeros_like(x)
        seeds[-1] = y_bar
        return scanned.reverse(x, seeds)

    return Derivative(lambda x: scanned.value(x)[-1], lambda x, dx: scanned.forward(x, dx)[-1], reverse)


def _map_general(op: general) -> Derivative:
    return Derivative(op.function, lambda x, dx: op.partials(x) * dx, lambda x, y_bar: op.partials(x) * y_bar)


def _least(a: Any, b: Any) -> Any:
    import numpy as np

    return np.where(a <= b, 1.0, 0.0), np.where(a <= b, 0.0, 1.0)


def _most(a: Any, b: Any) -> Any:
    import numpy as np

    return np.where(a >= b, 1.0, 0.0), np.where(a >= b, 0.0, 1.0)


def _smaller(a: Any, b: Any) -> Any:
    import numpy as np

    return np.minimum(a, b)


def _larger(a: Any, b: Any) -> Any:
    import numpy as np

    return np.maximum(a, b)


_BINARY = {"product": general(lambda a, b: a * b, lambda a, b: (b, a)), "min": general(_smaller, _least),
           "max": general(_larger, _most)}  # fmt: skip
_SCAN = {"sum": Derivative(lambda x: x.cumsum(axis=0), lambda x, dx: dx.cumsum(axis=0),
                           lambda x, y_bar: y_bar[::-1].cumsum(axis=0)[::-1])}  # fmt: skip


def _scatter(op: str) -> Derivative:
    """y[index[i]] = op(y[index[i]], x[i]) from y = base: each place reduces what was there and what arrives."""

    def value(base: Any, index: Any, x: Any) -> Any:
        y = base.copy()
        for place, members in _groups(index):
            y[place] = _REDUCE[op].value(_joined(base, x, place, members))
        return y

    def forward(base: Any, index: Any, x: Any, dbase: Any, dx: Any) -> Any:
        dy = dbase.copy()
        for place, members in _groups(index):
            dy[place] = _REDUCE[op].forward(_joined(base, x, place, members), _joined(dbase, dx, place, members))
        return dy

    def reverse(base: Any, index: Any, x: Any, y_bar: Any) -> tuple[Any, Any]:
        base_bar, x_bar = y_bar.copy(), 0 * x
        for place, members in _groups(index):
            bars = _REDUCE[op].reverse(_joined(base, x, place, members), y_bar[place])
            base_bar[place], x_bar[members] = bars[0], bars[1:]
        return base_bar, x_bar

    return Derivative(value, forward, reverse)


def _groups(index: Any) -> list[tuple[int, Any]]:
    import numpy as np

    return [(int(place), np.flatnonzero(index == place)) for place in np.unique(index)]


def _joined(base: Any, x: Any, place: int, members: Any) -> Any:
    import numpy as np

    return np.concatenate([base[place : place + 1], x[members]])


_SCATTER = {op: _scatter(op) for op in OPERATIONS}
