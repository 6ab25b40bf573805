"""Shared fixtures: `--slow` for the long tests, and a disk cache of its own for every run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", default=False, help="run the tests marked slow as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect (not skip) the slow tests unless asked for: the closing line counts them as deselected."""
    if config.getoption("--slow") or "slow" in (config.option.markexpr or ""):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither read nor fill the user's cache; an explicit IRGRAD_CACHE_DIR is respected."""
    if "IRGRAD_CACHE_DIR" not in os.environ:
        os.environ["IRGRAD_CACHE_DIR"] = str(tmp_path_factory.mktemp("irgrad-cache"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[1]
