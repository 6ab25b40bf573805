"""Extents of arrays: integer expressions in names, as in `f64[2*n+1, m]`.

    expr   ::= term (("+" | "-") term)*
    term   ::= factor (("*" | "/" | "%") factor)*
    factor ::= integer | name | "(" expr ")" | "-" factor

`/` is floor division. An expression evaluates in an environment of names, and solves for one unknown name in which it
is affine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BinaryExtent", "ConstExtent", "Extent", "NameExtent"]


class Extent:
    """Base of extent expressions. Immutable; equal when printed alike."""

    __slots__ = ()

    def names(self) -> frozenset[str]:
        """The names that occur."""
        raise NotImplementedError

    def value(self, names: Mapping[str, int]) -> int:
        """The value in an environment. Raises KeyError for a name it lacks, ZeroDivisionError for `/ 0`."""
        raise NotImplementedError

    def degree(self, name: str) -> int:
        """0: free of `name`; 1: affine in it; 2: anything else."""
        raise NotImplementedError

    def solve(self, name: str, size: int, names: Mapping[str, int]) -> int | None:
        """The value of `name` for which the expression is `size`, or None when no integer >= 0 does it.

        The expression must be affine in `name`; the other names come from the environment.
        """
        at_zero = self.value({**names, name: 0})
        slope = self.value({**names, name: 1}) - at_zero
        if slope == 0 or (size - at_zero) % slope:
            return None
        solution = (size - at_zero) // slope
        return solution if solution >= 0 else None


@dataclass(frozen=True, slots=True)
class ConstExtent(Extent):
    """A literal."""

    number: int

    def names(self) -> frozenset[str]:
        return frozenset()

    def value(self, names: Mapping[str, int]) -> int:
        return self.number

    def degree(self, name: str) -> int:
        return 0

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class NameExtent(Extent):
    """A name."""

    name: str

    def names(self) -> frozenset[str]:
        return frozenset((self.name,))

    def value(self, names: Mapping[str, int]) -> int:
        return names[self.name]

    def degree(self, name: str) -> int:
        return int(name == self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class BinaryExtent(Extent):
    """`left op right`, op one of + - * / %."""

    op: str
    left: Extent
    right: Extent

    def names(self) -> frozenset[str]:
        return self.left.names() | self.right.names()

    def value(self, names: Mapping[str, int]) -> int:
        left, right = self.left.value(names), self.right.value(names)
        match self.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left // right
            case _:
                return left % right

    def degree(self, name: str) -> int:
        left, right = self.left.degree(name), self.right.degree(name)
        if self.op in "+-":
            return max(left, right)
        if self.op == "*":
            return min(2, left + right)
        return 2 if left or right else 0

    def __str__(self) -> str:
        tight = self.op in "*/%"
        left = f"({self.left})" if tight and _is_sum(self.left) else str(self.left)
        parens = isinstance(self.right, BinaryExtent) and (tight or self.op == "-")
        right = f"({self.right})" if parens else str(self.right)
        return f"{left}{self.op}{right}"


def _is_sum(extent: Extent) -> bool:
    return isinstance(extent, BinaryExtent) and extent.op in "+-"
