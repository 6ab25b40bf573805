"""Is a polynomial over loop counters and sizes never negative, given what bounds them?

Variables are numbers from a fixed order, those of inner loops first, sizes last. What is known is a list of polynomials
that are not negative. Variables are eliminated in their order: a multiple of each is bounded by others of a later
number, and what its bounds say of each other is a fact about the rest (Fourier and Motzkin). A polynomial is then at
its least where a variable with a factor that is not negative is at a lower bound, one with a factor that is not
positive at an upper bound; the signs of the factors, which may hold sizes, are asked in the same way. All of this holds
over the real numbers, so that the answer yes is right for integers; no means that it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Polynomial", "System", "added", "constant", "multiplied", "variable"]

Polynomial = dict[tuple[int, ...], int]
"""Coefficients by monomial: the sorted numbers of its variables; () is the constant."""

_STEPS = 300  # polynomials looked at for one question
_FACTS = 60


def constant(number: int) -> Polynomial:
    """A number."""
    return {(): number} if number else {}


def variable(number: int) -> Polynomial:
    """A variable."""
    return {(number,): 1}


def added(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    """a + factor * b."""
    total = dict(a)
    for monomial, coefficient in b.items():
        total[monomial] = total.get(monomial, 0) + factor * coefficient
        if not total[monomial]:
            del total[monomial]
    return total


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    """a * b."""
    total: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            monomial = tuple(sorted(left + right))
            total[monomial] = total.get(monomial, 0) + x * y
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


class System:
    """What is known: polynomials that are not negative."""

    def __init__(self, facts: Iterable[Polynomial]) -> None:
        self.lower: dict[int, list[tuple[int, Polynomial]]] = {}
        self.upper: dict[int, list[tuple[int, Polynomial]]] = {}
        self._eliminate([fact for fact in facts if fact])
        self._known: dict[frozenset[tuple[tuple[int, ...], int]], bool] = {}
        self._steps = 0

    def _eliminate(self, facts: list[Polynomial]) -> None:
        waiting = facts[:_FACTS]
        for number in sorted({v for fact in facts for monomial in fact for v in monomial}):
            own = [fact for fact in waiting if any(number in monomial for monomial in fact)]
            waiting = [fact for fact in waiting if fact not in own]
            linear = [fact for fact in own if sum(number in monomial for monomial in fact) == 1]
            bounds: dict[bool, list[tuple[int, Polynomial]]] = {True: [], False: []}
            for fact in linear:
                if factor := fact.get((number,), 0):
                    bounds[factor > 0].append((abs(factor), _rest(fact, number)))
            self.lower[number] = [(factor, added({}, rest, -1)) for factor, rest in bounds[True]]
            self.upper[number] = bounds[False]
            for below, low in self.lower[number]:
                for above, high in self.upper[number]:
                    between = added(added({}, high, below), low, -above)
                    if between not in waiting and any(between) and len(waiting) < _FACTS:
                        waiting.append(between)

    def never_negative(self, polynomial: Polynomial) -> bool:
        """Whether a polynomial is at least zero wherever the facts hold; False where that is not known."""
        self._steps = _STEPS
        return self._least(polynomial)

    def _least(self, polynomial: Polynomial) -> bool:
        if not any(polynomial):  # a number, or none
            return polynomial.get((), 0) >= 0
        key = frozenset(polynomial.items())
        if key not in self._known:
            self._steps -= 1
            if self._steps < 0:
                return False
            self._known[key] = self._bounded(polynomial)
        return self._known[key]

    def _bounded(self, polynomial: Polynomial) -> bool:
        number = min(monomial[0] for monomial in polynomial if monomial)
        factor: Polynomial = {}
        rest: Polynomial = {}
        for monomial, coefficient in polynomial.items():
            if number in monomial:
                factor[monomial[1:]] = coefficient  # sorted: the least number is the first
            else:
                rest[monomial] = coefficient
        for sign, bounds in ((1, self.lower), (-1, self.upper)):
            if bounds.get(number) and self._least(added({}, factor, sign)):
                return any(self._least(added(multiplied(factor, bound), rest, by)) for by, bound in bounds[number])
        return False


def _rest(fact: Polynomial, number: int) -> Polynomial:
    return {monomial: coefficient for monomial, coefficient in fact.items() if number not in monomial}
