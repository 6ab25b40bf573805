"""Analyses of functions by key: `get(Loops, fn)`.

Each is made when it is asked for first, of those that it `needs`, and is the same one as long as the control flow is
what it was made of. That is compared, not told: a pass that changes the blocks or their edges has nothing to
invalidate, and one that changes only instructions keeps what the passes before it found out.
"""

from __future__ import annotations

from typing import Any, TypeVar

from irgrad.engine.ir.model import Function

__all__ = ["get"]

T = TypeVar("T")


def get(analysis: type[T], fn: Function) -> T:
    """The analysis (a class with `needs`, the analyses that it is made of) of the function as it is now."""
    edges = [(block, *block.successors) for block in fn.blocks]
    kept = fn.analyses
    if kept is None or kept[0] != edges:
        kept = fn.analyses = (edges, {})
    return _made(analysis, fn, kept[1])  # type: ignore[no-any-return]


def _made(analysis: Any, fn: Function, kept: dict[Any, Any]) -> Any:
    if analysis not in kept:
        parts = [_made(need, fn, kept) for need in analysis.needs]
        kept[analysis] = analysis(*parts) if parts else analysis(fn)
    return kept[analysis]
