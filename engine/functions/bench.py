"""`bench`: what a derivative costs beside its function, measured in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irgrad.engine.functions.gradients import grad
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.trees import TreeKernel
from irgrad.engine.support.axes import axes

__all__ = ["Bench", "bench"]

_LEAST = 1e-4  # seconds of one measurement: a call that takes less is repeated
_FEWEST = 5  # measurements


@dataclass(frozen=True, slots=True)
class Bench:
    """Seconds of single calls, in the order in which they were measured; the figures are those of the fastest."""

    title: str
    values: tuple[float, ...]
    derivatives: tuple[float, ...]

    @property
    def value(self) -> float:
        """Seconds of the function."""
        return min(self.values)

    @property
    def derivative(self) -> float:
        """Seconds of the derivative."""
        return min(self.derivatives)

    @property
    def ratio(self) -> float:
        """How many values one derivative takes."""
        return self.derivative / self.value

    def __str__(self) -> str:
        rows = [f"bench of {self.title}"]
        for name, times in (("value", self.values), ("derivative", self.derivatives)):
            middle = sorted(times)[len(times) // 2]
            rows.append(f"  {name:<10}  {_time(min(times)):>9}   median {_time(middle)} of {len(times)}")
        return "\n".join([*rows, f"  derivative / value  {self.ratio:.2f}"])

    def plot(self, ax: Any = None) -> Any:
        """Draw every measurement, on axes given or new ones, which are returned. Raises IRGradError without
        matplotlib."""
        ax = axes(ax)
        for name, times in (("value", self.values), ("derivative", self.derivatives)):
            ax.semilogy([1e6 * t for t in times], ".", label=f"{name}: {_time(min(times))}")
        ax.set(xlabel="measurement", ylabel="microseconds a call", title=f"{self.title}: {self.ratio:.2f} values")
        ax.legend()
        return ax


def bench(
    kernel: Kernel | TreeKernel[Kernel], *args: Any, derivative: Callable[..., Any] | None = None, seconds: float = 1.0
) -> Bench:
    """Time a kernel and a derivative of it at these arguments, in turns, so that both meet the same machine.

    derivative: a function of the same arguments, `grad(kernel)` by default
    seconds:    for all measurements; there are five at least

    Calls from Python are timed, with the checks of arguments and fresh results; both run once before. Raises as the
    kernel does.

        >>> irgrad.bench(total, np.ones(1000), seconds=0.01).ratio > 0
        True
    """
    derivative = grad(kernel) if derivative is None else derivative
    name = kernel.name if isinstance(kernel, Kernel) else kernel.kernel.name
    functions: tuple[Callable[..., Any], ...] = (kernel, derivative)
    counts = []
    for function in functions:
        function(*args)
        counts.append(max(1, math.ceil(_LEAST / max(1e-9, _seconds(function, args, 1)))))
    taken: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while len(taken[0]) < _FEWEST or time.perf_counter() < end:
        for function, count, times in zip(functions, counts, taken, strict=True):
            times.append(_seconds(function, args, count))
    return Bench(name, tuple(taken[0]), tuple(taken[1]))


def _seconds(function: Callable[..., Any], args: tuple[Any, ...], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        function(*args)
    return (time.perf_counter() - begin) / count


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
