"""Slopes of a scalar function by extrapolated central differences, with an estimate of their error.

Ridders' method (C. J. F. Ridders, Advances in Engineering Software 4, 1982; Numerical Recipes, section 5.7): central
differences over a geometric sequence of steps, extrapolated to step 0, of which the estimate with the least error is
taken. The error of an estimate is the distance to its two neighbours in the table plus the rounding of the values, as
follows from their size, or as differences at much smaller steps show it where that is more: a value that was rounded on
the way, as (x + 1e15) - 1e15, moves in steps of its own. At the edge of a domain the differences are one-sided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["EVALUATIONS", "Slope", "slope"]

_RATIO, _STEPS, _COLUMNS, _SAFETY = 3.0, 14, 4, 10.0
_FAR = 27.0  # steps so much smaller than that of an estimate tell the rounding of the values, not the curvature
_FINE, _AGREE = 28, 3  # steps below those of an estimate, of which so many in a row tell treads of stairs
_STRIDES = (10.0, 1e2, 1e3, 1e4)  # of |x|: steps that go over stairs
EVALUATIONS = 3 * 3 * _STEPS + 2 * len(_STRIDES) + 2 * _FINE + 1
"""The most of one element: three sequences from two sides, three from one side, strides, finer steps, the value."""


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope, the estimate of its error (infinite: not known), and whether the two sides have different slopes."""

    value: float
    error: float
    kink: bool = False
    flat: bool = False  # all differences are within the rounding of the values
    step: float = 0.0  # the least of those that the estimate is made of

    def contradicts(self, wanted: float, tolerance: float) -> bool:
        """Whether the distance is above the tolerance, relative to the slope, and far above the error."""
        size = max(abs(self.value), abs(wanted))
        return not self.kink and not abs(self.value - wanted) <= tolerance * size + _SAFETY * self.error

    def confirms(self, wanted: float, tolerance: float, least: float = 0.0) -> bool:
        """Whether error and distance are within the tolerance, relative to the slope, or to `least` if 0 is wanted."""
        size = tolerance * max(abs(self.value), abs(wanted), least if wanted == 0 else 0.0)
        return abs(self.value - wanted) <= size and self.error <= size


def slope(
    function: Callable[[float], tuple[float, float, float]], x: float, scale: float, wanted: float, tolerance: float,
    rounding: float, least: float = 0.0,
) -> Slope:
    """The slope of `function` at x.

    function:  of x; returns the x that was used (of fewer digits, perhaps), the value, and the size of its terms
    scale:     a length of x besides |x|, not 0
    wanted:    the derivative to compare with: the search ends at the first estimate that confirms it
    rounding:  of a value, relative to the size of its terms
    least:     a slope so much smaller than this that it is below the tolerance counts as 0, if 0 is wanted

    At most EVALUATIONS calls of `function`. A step at which a value is NaN or infinite is left out.
    """
    search = _Search(function, x, rounding, lambda s: s.confirms(wanted, tolerance, least))
    own = abs(x) or scale
    starts = (0.1 * own, 0.07 * scale, 0.0013 * min(own, 1.0))
    best = Slope(0.0, float("inf"))
    for start in starts:
        found = search.from_two_sides(start)
        if found.confirms(wanted, tolerance, least):
            return found
        if found.error < best.error or (found.kink and not best.kink and best.contradicts(wanted, tolerance)):
            best = found
    side = search.open_side
    if side and np.isinf(best.error):
        for start in starts:
            found = search.from_one_side(start, side)
            if found.confirms(wanted, tolerance, least):
                return found
            best = min(best, found, key=lambda s: s.error)
    best = search.with_noise(best)
    if best.contradicts(wanted, tolerance):
        rough = search.fine_stairs(best, wanted) or (best.flat and search.stairs(own, wanted))
        return replace(best, kink=rough)
    return best


class _Search:
    """Differences of a function about a point.

    enough: whether an estimate ends the search
    """

    __slots__ = ("_enough", "_finite", "_rounding", "_seen", "centre", "function", "x")

    def __init__(self, function: Callable[[float], tuple[float, float, float]], x: float, rounding: float,
                 enough: Callable[[Slope], bool]) -> None:  # fmt: skip
        self.function, self.x, self._rounding, self._enough = function, x, rounding, enough
        self.centre = function(x)
        self._finite = {-1: False, 1: False}  # whether there are values on that side
        self._seen: list[tuple[float, float]] = []  # steps, differences

    @property
    def open_side(self) -> int:
        """The side that has values where the other has none: 1 above, -1 below; 0 where that is not so."""
        return self._finite[1] - self._finite[-1]

    def from_two_sides(self, start: float) -> Slope:
        """The slope by central differences from this step on."""
        table, centre = _Table(2, self._enough), self.centre
        jumps, flat, kink = list[float](), True, False
        for k in range(_STEPS):
            h = start / _RATIO**k
            low, high = self._at(-h), self._at(h)
            below, above = centre[0] - low[0], high[0] - centre[0]
            if not (below > 0 and above > 0 and np.isfinite([low[1], high[1], low[2], high[2]]).all()):
                table.restart()
                continue
            noise = self._rounding * max(low[2], high[2], centre[2]) / min(below, above)
            difference = (high[1] - low[1]) / (high[0] - low[0])
            self._seen.append((h, difference))
            jumps.append(abs((high[1] - centre[1]) / above - (centre[1] - low[1]) / below))
            flat = flat and abs(high[1] - low[1]) <= _SAFETY * noise * min(below, above)
            # the sides differ as much as at the step before: a kink or a jump within the step, or steps of rounding
            rough = len(jumps) > 1 and jumps[-1] > max(0.6 * jumps[-2], _SAFETY * noise, 1e-5 * abs(difference))
            kink = kink or rough
            # values that no longer change, though they did at larger steps: rounded away, or really constant
            better, ended = table.add(difference, noise, h, counts=flat or low[1] != high[1])
            if ended:
                return table.best
            if better:
                kink = rough  # and at the steps below
        return replace(table.best, flat=flat, kink=kink)

    def from_one_side(self, start: float, side: int) -> Slope:
        """The slope by differences to the one side, 1 (above) or -1."""
        table, flat = _Table(1, self._enough), True
        for k in range(_STEPS):
            h = start / _RATIO**k
            there = self._at(side * h)
            width = there[0] - self.centre[0]
            if width == 0 or not np.isfinite([there[1], there[2]]).all():
                table.restart()
                continue
            noise = self._rounding * max(there[2], self.centre[2]) / abs(width)
            self._seen.append((h, (there[1] - self.centre[1]) / width))
            flat = flat and abs(there[1] - self.centre[1]) <= _SAFETY * noise * abs(width)
            if table.add(self._seen[-1][1], noise, h, counts=flat or there[1] != self.centre[1])[1]:
                return table.best
        return replace(table.best, flat=flat)

    def with_noise(self, best: Slope) -> Slope:
        """The estimate with the rounding of the values as differences at much smaller steps show it."""
        noise = max((abs(d - best.value) * h for h, d in self._seen if h * _FAR <= best.step), default=0.0)
        return replace(best, error=max(best.error, noise / best.step)) if best.step > 0 else best

    def stairs(self, own: float, wanted: float) -> bool:
        """Whether the function, flat near the point, moves about as much as is wanted in larger steps: rounding made
        stairs of it, too wide to tell."""
        if any(d != 0 and abs(d - wanted) <= abs(wanted) for _, d in self._seen):
            return True
        for stride in _STRIDES:
            low, high = self._at(-stride * own), self._at(stride * own)
            if abs((high[1] - low[1]) / (high[0] - low[0]) - wanted) <= 0.1 * abs(wanted):
                return True
        return False

    def fine_stairs(self, best: Slope, wanted: float) -> bool:
        """Whether the slope is the one that is wanted, and not that of the best estimate, in steps far below those that
        the estimate is made of: the function is a staircase with treads in between."""
        apart, agree = abs(best.value - wanted), 0
        for k in range(1, _FINE + 1):
            low, high = (self._at(side * best.step / _RATIO**k) for side in (-1, 1))
            width = high[0] - low[0]
            noise = self._rounding * max(low[2], high[2], self.centre[2]) / width if width > 0 else np.inf
            if not _SAFETY * noise <= apart:
                return False
            agree = agree + 1 if _SAFETY * abs((high[1] - low[1]) / width - wanted) <= apart else 0
            if agree == _AGREE:
                return True
        return False

    def _at(self, distance: float) -> tuple[float, float, float]:
        found = self.function(self.x + distance)
        side = 1 if distance > 0 else -1
        self._finite[side] = self._finite[side] or bool(np.isfinite(found[1:]).all())
        return found


class _Table:
    """Neville's table of differences whose errors are powers of the step, 1, 2, 3, ... times `order`."""

    __slots__ = ("_before", "_enough", "_order", "best")

    def __init__(self, order: int, enough: Callable[[Slope], bool]) -> None:
        self._order, self._enough = order, enough
        self._before: list[float] = []
        self.best = Slope(0.0, float("inf"))

    def restart(self) -> None:
        """There is no difference at the next step."""
        self._before = []

    def add(self, difference: float, noise: float, step: float, *, counts: bool) -> tuple[bool, bool]:
        """The difference at the next step; whether an estimate is the best so far, and whether it ends the search.

        counts: whether estimates with this difference may be the best
        """
        row, before, better = [difference], self._before, False
        for j in range(min(len(before), _COLUMNS)):
            factor = _RATIO ** (self._order * (j + 1))
            row.append(row[j] + (row[j] - before[j]) / (factor - 1))
            error = max(abs(row[j + 1] - row[j]), abs(row[j + 1] - before[j])) + noise
            estimate = Slope(row[j + 1], error, step=step)
            if self._enough(estimate):
                self.best = estimate
                return True, True
            if error < self.best.error and counts:
                self.best, better = estimate, True
        self._before = row
        return better, False
