"""Axes to draw on; matplotlib is an extra."""

from __future__ import annotations

from typing import Any

from irgrad.rules.errors import IRGradError

__all__ = ["axes"]


def axes(given: Any = None, size: tuple[float, float] = (7.0, 4.0)) -> Any:
    """The axes given, or those of a new figure. Raises IRGradError where matplotlib is not installed."""
    if given is not None:
        return given
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise IRGradError("there is no picture without matplotlib", because="it is not installed",
                          fix='pip install "irgrad[plots]"') from None  # fmt: skip
    return plt.subplots(figsize=size, layout="constrained")[1]
