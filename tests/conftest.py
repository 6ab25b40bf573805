"""Shared fixtures: `--long` and `--slow` for tests that take time, `--part` and `--minutes` for some of them, `--gpu`
for those on a device, and a disk cache of its own for every run."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from small_chunks import small_chunks

_BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", default=False, help="run the tests marked long as well")
    parser.addoption("--part", default="0/1", metavar="K/N", help="of the long tests part K modulo N, by their names")
    parser.addoption("--minutes", type=float, metavar="M", help="begin no test marked long after M minutes of a run")
    parser.addoption("--slow", action="store_true", default=False, help="run the tests marked slow as well")
    parser.addoption("--gpu", action="store_true", default=False, help="run the tests that need a GPU as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect (not skip) the long and the slow tests, and those of a GPU, unless asked for: the closing line counts
    them as deselected. Long tests come last, file by file, in another order for every `--part`: those for which
    `--minutes` leave no time are not the same ones every day."""
    wanted = config.option.markexpr or ""
    kinds = ("long", "slow", "gpu")
    without = [name for name in kinds if not config.getoption(f"--{name}") and name not in wanted]
    part, parts = map(int, str(config.getoption("--part")).split("/"))
    dropped = [item for item in items if any(item.get_closest_marker(name) for name in without)
               or (item.get_closest_marker("long") and (zlib.crc32(item.nodeid.encode()) - part) % parts)]  # fmt: skip
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]
    long = {item: zlib.crc32(f"{part} {item.path}".encode()) for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (item in long, long.get(item, 0)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A long test begins within `--minutes`; the closing summary counts those that did not."""
    minutes = item.config.getoption("--minutes")
    if minutes is not None and item.get_closest_marker("long") and time.monotonic() - _BEGAN > 60 * minutes:
        pytest.skip(f"no time left for it: the {minutes:g} minutes in which long tests begin were over")


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither read nor fill the user's cache; an explicit IRGRAD_CACHE_DIR is respected."""
    if "IRGRAD_CACHE_DIR" not in os.environ:
        os.environ["IRGRAD_CACHE_DIR"] = str(tmp_path_factory.mktemp("irgrad-cache"))
    small_chunks(tmp_path_factory.mktemp("irgrad-costs"))  # whatever the user measured
    os.environ.setdefault("IRGRAD_VERIFY", "1")  # a pass that leaves a broken module is named at once


@pytest.fixture(autouse=True)
def _numbers_of_this_test(request: pytest.FixtureRequest) -> None:
    """What a module's generators draw in a test depends on the test's name alone, not on the tests that this worker
    ran before it."""
    start = np.random.default_rng(zlib.crc32(request.node.nodeid.encode())).bit_generator.state
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = start


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[1]
