"""A row: one primal function with its partial derivatives, its domain and its documented kinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from irgrad.rules.expressions.costs import LIBRARY_CALL
from irgrad.rules.expressions.expr import ZERO, Arg, Expr, Operand, Result, const, cost, operation_cost

__all__ = ["STRUCT", "Family", "Interval", "Kink", "Output", "Row"]

Output = Literal["ret"] | tuple[Literal["ret", "ptr"], int]
"""Where a result goes: the return value, its k-th element, or the memory behind argument k."""
Interval = tuple[float, float]
STRUCT: tuple[Output, ...] = (("ret", 0), ("ret", 1))
"""Two results, returned as a struct or vector of two."""


@dataclass(frozen=True, slots=True)
class Kink:
    """A point where the mathematics leaves a choice: the arguments, the value chosen for each partial of the first
    result (None: not documented), and why."""

    at: tuple[float, ...]
    partials: tuple[float | None, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """One primal function.

    signature  one letter per argument: `f` a float of the row's type, `i` an integer, `p` a pointer that is written
    partials   partials[j][i] = d result j / d argument i, for every position i of the signature; ZERO where the result
               does not depend on the argument, and for integers and pointers
    outputs    where each float result goes; empty for a function that returns no float
    linear     the result is linear in its float arguments taken together, so the function is its own tangent
    domain     per argument, the interval from which tests draw
    kinks      points with a documented value
    constant   the result does not depend on any argument in the sense of a derivative (floor, ilogb, ...)
    work       cost of the function itself, in units of one addition
    lanewise   on vectors, LLVM's intrinsics of the row work lane by lane (an integer argument stays one number)
    libmvec    the C library has a form of the function for vectors
    """

    key: str
    signature: str
    partials: tuple[tuple[Expr, ...], ...]
    outputs: tuple[Output, ...] = ("ret",)
    linear: bool = False
    domain: tuple[Interval, ...] = ()
    kinks: tuple[Kink, ...] = ()
    libm: tuple[str, ...] = ()
    llvm: tuple[str, ...] = ()
    exact: tuple[tuple[str, str], ...] = ()
    opcode: str | None = None
    work: int = LIBRARY_CALL
    lanewise: bool = True
    libmvec: bool = False

    @property
    def intrinsics(self) -> tuple[str, ...]:
        """Names, without `llvm.`, of intrinsics that mean the function and nothing more, in the order of `libm`."""
        return tuple(name for name in self.llvm if "." not in name)

    @property
    def floats(self) -> tuple[int, ...]:
        """Positions of the float arguments."""
        return tuple(i for i, letter in enumerate(self.signature) if letter == "f")

    @property
    def pointers(self) -> tuple[int, ...]:
        """Positions of the pointers that the function writes through."""
        return tuple(i for i, letter in enumerate(self.signature) if letter == "p")

    @property
    def constant(self) -> bool:
        return all(partial is ZERO for of_result in self.partials for partial in of_result)

    def cost(self) -> int:
        """Work of all partials together, in units of one addition."""
        return cost(*(partial for of_result in self.partials for partial in of_result))


class Family:
    """Collects the rows of one file of the table.

    `define(key, signature, body, ...)`: the body gets one expression per argument that is no pointer, then `y`: the
    result, or the tuple of results when there are several. It returns the partials with respect to the *float*
    arguments: one expression, a tuple of them, or with several results one of those per result.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def define(
        self,
        key: str,
        signature: str,
        body: Callable[..., Any],
        *,
        domain: Sequence[Interval] | Interval = (-3.0, 3.0),
        kinks: Sequence[Kink] = (),
        outputs: tuple[Output, ...] = ("ret",),
        linear: bool = False,
        libm: str | None = None,
        llvm: str = "",
        exact: Sequence[tuple[str, str]] = (),
        opcode: str | None = None,
        work: int | None = None,
        lanewise: bool = True,
        libmvec: bool = False,
    ) -> Row:
        """Add a row. `libm` and `llvm` are base names separated by blanks (`libm=None`: the key itself; "": none);
        `exact` lists (symbol, dtype) pairs that follow no scheme; `work` is that of an operation of the same name,
        or of a library call, where it is not given. Raises ValueError for a body of the wrong shape."""
        row = Row(
            key, signature, _partials(key, signature, body, len(outputs)), outputs, linear, _domain(signature, domain),
            tuple(kinks), tuple((key if libm is None else libm).split()), tuple(llvm.split()), tuple(exact), opcode,
            operation_cost(key) if work is None else work, lanewise and outputs == ("ret",), libmvec,
        )  # fmt: skip
        self.rows.append(row)
        return row


def _domain(signature: str, domain: Sequence[Interval] | Interval) -> tuple[Interval, ...]:
    if len(domain) == 2 and isinstance(domain[0], int | float):
        low, high = domain
        assert isinstance(low, int | float)
        assert isinstance(high, int | float)
        return ((float(low), float(high)),) * len(signature)
    return tuple(tuple(pair) for pair in domain)  # type: ignore[misc,arg-type]


def _partials(key: str, signature: str, body: Callable[..., Any], results: int) -> tuple[tuple[Expr, ...], ...]:
    if results == 0:
        return ()
    args = [Arg(i) for i, letter in enumerate(signature) if letter != "p"]
    y = Result(0) if results == 1 else tuple(Result(j) for j in range(results))
    got = body(*args, y)
    floats = [i for i, letter in enumerate(signature) if letter == "f"]
    table = []
    for of_result in [got] if results == 1 else got:
        listed: tuple[Operand, ...] = of_result if isinstance(of_result, tuple) else (of_result,)
        if len(listed) != len(floats):
            raise ValueError(f"rule `{key}`: {len(listed)} partials for {len(floats)} float arguments")
        by_position = dict(zip(floats, map(const, listed), strict=True))
        table.append(tuple(by_position.get(i, ZERO) for i in range(len(signature))))
    if len(table) != results:
        raise ValueError(f"rule `{key}`: partials of {len(table)} results, {results} wanted")
    return tuple(table)
