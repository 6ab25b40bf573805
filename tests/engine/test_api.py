"""The engine hands on the API, and the names are functions (no module hides one)."""

from __future__ import annotations

from irgrad import engine
from irgrad.engine import api


def test_every_name_is_handed_on() -> None:
    for name in api.__all__:
        if name in engine.__all__:
            assert getattr(engine, name) is getattr(api, name)
            assert callable(getattr(engine, name)) and getattr(engine, name).__doc__
