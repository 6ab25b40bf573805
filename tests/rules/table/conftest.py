"""Hands each row of a module's `ROWS` to its tests: all as `row`, those with kinks as `kinked`."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    rows = getattr(metafunc.module, "ROWS", [])
    for name, chosen in (("row", rows), ("kinked", [row for row in rows if row.kinks])):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, chosen, ids=lambda row: row.key)
