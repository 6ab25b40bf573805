"""Axes to draw on, and what is said without matplotlib."""

from __future__ import annotations

import sys

import pytest

from irgrad.engine.support.axes import axes
from irgrad.rules.errors import IRGradError


def test_axes_given_are_returned() -> None:
    given = object()
    assert axes(given) is given


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(IRGradError, match=r"irgrad\[plots\]"):
        axes()
