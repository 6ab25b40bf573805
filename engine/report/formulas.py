"""Counts and bytes as formulas over the integer arguments: polynomials that print, are evaluated, and are summed.

A formula is a sum of products of atoms with rational coefficients, over the integers: what the program computes modulo
2**64 it computes for counts that fit.

    atom ::= Symbol(name)              an integer argument
           | Iteration(loop, name)     the number of the iteration that a loop is in, from 0
           | Apply(op, a, b)           max, min, // (rounded down) and ceil (of a quotient) of two formulas
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Apply", "Atom", "Formula", "Iteration", "Symbol", "apply", "constant", "of_atom", "sole", "summed"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """An integer argument."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Iteration:
    """The number of a loop's current iteration. loop: which one, in its function."""

    loop: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of two formulas: "max", "min", "//" or "ceil"."""

    op: str
    a: Formula
    b: Formula

    def __str__(self) -> str:
        if self.op in ("max", "min"):
            return f"{self.op}({self.a}, {self.b})"
        if self.op == "ceil":
            return f"ceil({_in_product(self.a)} / {_in_product(self.b)})"
        return f"({_in_product(self.a)} // {_in_product(self.b)})"


Atom = Symbol | Iteration | Apply
Product = tuple[Atom, ...]  # sorted by their text; () for the constant


@dataclass(frozen=True, slots=True)
class Formula:
    """A polynomial: pairs of a product of atoms and its coefficient, in the order in which they are printed."""

    terms: tuple[tuple[Product, Fraction], ...] = ()

    @staticmethod
    def of(terms: Mapping[Product, Fraction]) -> Formula:
        """Without terms that are zero."""
        rows = [(product, value) for product, value in terms.items() if value]
        return Formula(tuple(sorted(rows, key=lambda row: (-len(row[0]), [str(atom) for atom in row[0]]))))

    @property
    def const(self) -> int | None:
        """The value of a constant."""
        if not self.terms:
            return 0
        product, value = self.terms[0]
        return int(value) if not product and value.denominator == 1 else None

    def __add__(self, other: Formula | int) -> Formula:
        found = dict(self.terms)
        for product, value in _formula(other).terms:
            found[product] = found.get(product, Fraction()) + value
        return Formula.of(found)

    def __sub__(self, other: Formula | int) -> Formula:
        return self + _formula(other) * -1

    def __mul__(self, other: Formula | int) -> Formula:
        found: dict[Product, Fraction] = {}
        for left, a in self.terms:
            for right, b in _formula(other).terms:
                product = tuple(sorted((*left, *right), key=str))
                found[product] = found.get(product, Fraction()) + a * b
        return Formula.of(found)

    def atoms(self) -> set[Atom]:
        """All atoms, those inside of functions too."""
        found: set[Atom] = set()
        for product, _ in self.terms:
            for atom in product:
                found.add(atom)
                if isinstance(atom, Apply):
                    found |= atom.a.atoms() | atom.b.atoms()
        return found

    def names(self) -> list[str]:
        """The arguments that it reads."""
        return sorted({atom.name for atom in self.atoms() if isinstance(atom, Symbol)})

    def iterations(self) -> set[int]:
        """The loops whose iteration it depends on."""
        return {atom.loop for atom in self.atoms() if isinstance(atom, Iteration)}

    def evaluate(self, sizes: Mapping[str, int], iterations: Mapping[int, int] | None = None) -> int:
        """The number. Raises KeyError for an argument without a value."""
        total = Fraction()
        for product, coefficient in self.terms:
            amount = coefficient
            for atom in product:
                amount *= _value(atom, sizes, iterations or {})
            total += amount
        return math.floor(total)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        whole = math.lcm(*(value.denominator for _, value in self.terms))
        text = ""
        for product, value in self.terms:
            number = int(value * whole)
            factors = [str(abs(number))] if abs(number) != 1 or not product else []
            factors += _powers(product)
            sign = " - " if number < 0 else " + "
            text += (sign if text else "-" if number < 0 else "") + "*".join(factors)
        if whole == 1:
            return text
        return f"({text})/{whole}" if len(self.terms) > 1 else f"{text}/{whole}"


def _powers(product: Product) -> list[str]:
    counted: dict[str, int] = {}
    for atom in product:
        counted[str(atom)] = counted.get(str(atom), 0) + 1
    return [text if power == 1 else f"{text}^{power}" for text, power in counted.items()]


def _in_product(formula: Formula) -> str:
    return str(formula) if len(formula.terms) < 2 else f"({formula})"


def _formula(value: Formula | int) -> Formula:
    return value if isinstance(value, Formula) else constant(value)


def _value(atom: Atom, sizes: Mapping[str, int], iterations: Mapping[int, int]) -> Fraction:
    if isinstance(atom, Symbol):
        return Fraction(int(sizes[atom.name]))
    if isinstance(atom, Iteration):
        return Fraction(iterations[atom.loop])
    a, b = atom.a.evaluate(sizes, iterations), atom.b.evaluate(sizes, iterations)
    if atom.op in ("max", "min"):
        return Fraction(max(a, b) if atom.op == "max" else min(a, b))
    if b == 0:
        return Fraction()
    return Fraction(-(-a // b) if atom.op == "ceil" else a // b)


def constant(number: int) -> Formula:
    """A number."""
    return Formula.of({(): Fraction(number)})


def of_atom(atom: Atom) -> Formula:
    """An atom alone."""
    return Formula(((((atom,)), Fraction(1)),))


def apply(op: str, a: Formula, b: Formula) -> Formula:
    """A function of two formulas, folded where it is a number or divides without rest."""
    if a.const is not None and b.const is not None and (b.const or op in ("max", "min")):
        return constant(math.floor(_value(Apply(op, a, b), {}, {})))
    if op in ("max", "min"):
        difference = (a - b).const
        if difference is not None:
            return a if (difference >= 0) == (op == "max") else b
    elif b.const and all(value % b.const == 0 for _, value in a.terms):
        return Formula(tuple((product, value / b.const) for product, value in a.terms))
    return of_atom(Apply(op, a, b))


def sole(formula: Formula) -> tuple[Apply, int] | None:
    """A function and an integer, where the formula is the sum of the two."""
    found, number = None, 0
    for product, value in formula.terms:
        if not product and value.denominator == 1:
            number = int(value)
        elif len(product) == 1 and isinstance(product[0], Apply) and value == 1 and found is None:
            found = product[0]
        else:
            return None
    return (found, number) if found is not None else None


# -- sums ---------------------------------------------------------------------------------------------------------


def summed(formula: Formula, loop: int, count: Formula) -> Formula | None:
    """The sum over the iterations 0, ..., count - 1 of a loop, for a count that is not negative; None where the
    formula is no polynomial of degree up to 3 in the number of the iteration."""
    total = constant(0)
    for product, value in formula.terms:
        others = tuple(atom for atom in product if not (isinstance(atom, Iteration) and atom.loop == loop))
        rest = Formula(((others, value),))
        power = len(product) - len(others)
        if loop in rest.iterations() or power >= len(_SUMS):
            return None
        total += rest * _SUMS[power](count)
    return total


def _scaled(formula: Formula, divisor: int) -> Formula:
    return Formula(tuple((product, value / divisor) for product, value in formula.terms))


def _product(parts: Iterable[Formula]) -> Formula:
    total = constant(1)
    for part in parts:
        total = total * part
    return total


_SUMS: tuple[Callable[[Formula], Formula], ...] = (  # of k**p for k = 0, ..., n - 1 (Faulhaber)
    lambda n: n,
    lambda n: _scaled(_product((n, n - 1)), 2),
    lambda n: _scaled(_product((n, n - 1, n * 2 - 1)), 6),
    lambda n: _scaled(_product((n, n, n - 1, n - 1)), 4),
)
