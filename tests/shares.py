"""Lists of cases of which the fast set runs the first ones, `--long` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["fast"]


def fast(count: int, cases: Iterable[Any]) -> list[Any]:
    """The cases for `parametrize`, those behind the first `count` marked long."""
    out: list[Any] = []
    for n, case in enumerate(cases):
        row = case if isinstance(case, tuple) else (case,)
        out.append(case if n < count else pytest.param(*row, marks=pytest.mark.long))
    return out
