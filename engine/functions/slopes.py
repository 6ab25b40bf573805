"""Slopes of a scalar function by extrapolated central differences, with an estimate of their error.

Ridders' method (C. J. F. Ridders, Advances in Engineering Software 4, 1982; Numerical Recipes, section 5.7): central
differences over a geometric sequence of steps, extrapolated to step 0, of which the estimate with the least error is
taken. The error of an estimate is the distance to its two neighbours in the table plus the rounding of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["EVALUATIONS", "Slope", "slope"]

_RATIO, _STEPS, _COLUMNS, _SAFETY = 3.0, 14, 4, 10.0
EVALUATIONS = 3 * 2 * _STEPS + 1  # of one element, at most: three sequences of steps, and the value itself


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope, the estimate of its error (infinite: not known), and whether the two sides have different slopes."""

    value: float
    error: float
    kink: bool = False
    flat: bool = False  # all differences are within the rounding of the values

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
    centre = function(x)
    own = abs(x) or scale
    best = Slope(0.0, float("inf"))
    for start in (0.1 * own, 0.07 * scale, 0.0013 * min(own, 1.0)):
        found = _sequence(function, x, start, centre, rounding, lambda s: s.confirms(wanted, tolerance, least))
        if found.confirms(wanted, tolerance, least):
            return found
        if found.error < best.error or (found.kink and not best.kink and best.contradicts(wanted, tolerance)):
            best = found
    return best


def _sequence(
    function: Callable[[float], tuple[float, float, float]], x: float, start: float,
    centre: tuple[float, float, float], rounding: float, enough: Callable[[Slope], bool],
) -> Slope:
    best, before, jumps, flat = Slope(0.0, float("inf")), list[float](), list[float](), True
    kink = False
    for k in range(_STEPS):
        h = start / _RATIO**k
        low, high = function(x - h), function(x + h)
        below, above = centre[0] - low[0], high[0] - centre[0]
        if not (below > 0 and above > 0 and np.isfinite([low[1], high[1], low[2], high[2]]).all()):
            before = []
            continue
        noise = rounding * max(low[2], high[2], centre[2]) / min(below, above)
        jumps.append(abs((high[1] - centre[1]) / above - (centre[1] - low[1]) / below))
        flat = flat and abs(high[1] - low[1]) <= _SAFETY * noise * min(below, above)
        # the sides differ as much as at the step before: a kink or a jump within the step, or steps of rounding
        rough = len(jumps) > 1 and jumps[-1] > max(
            0.6 * jumps[-2], _SAFETY * noise, 1e-5 * abs(high[1] - low[1]) / (high[0] - low[0]))
        kink = kink or rough
        row = [(high[1] - low[1]) / (high[0] - low[0])]
        for j in range(min(len(before), _COLUMNS)):
            factor = _RATIO ** (2 * (j + 1))
            row.append(row[j] + (row[j] - before[j]) / (factor - 1))
            error = max(abs(row[j + 1] - row[j]), abs(row[j + 1] - before[j])) + noise
            if enough(Slope(row[j + 1], error)):
                return Slope(row[j + 1], error)
            # values that no longer change, though they did at larger steps: rounded away, or really constant
            if error < best.error and (flat or low[1] != high[1]):
                best, kink = Slope(row[j + 1], error), rough  # and at the steps below
        before = row
    return replace(best, flat=flat, kink=kink)
