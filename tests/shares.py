"""Lists of cases of which the fast set runs the first ones, `--long` more, `--long --slow` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["fast"]


def fast(count: int, cases: Iterable[Any], most: int | None = None) -> list[Any]:
    """The cases for `parametrize`, those behind the first `count` marked long, those behind the first `most` slow."""
    out: list[Any] = []
    for n, case in enumerate(cases):
        row = case if isinstance(case, tuple) else (case,)
        mark = pytest.mark.long if most is None or n < most else pytest.mark.slow
        out.append(case if n < count else pytest.param(*row, marks=mark))
    return out
