"""C++17 programs with the standard library: reverse and forward against differences of the function's own values."""

from __future__ import annotations

import pytest
from cpp_programs import GROUPS, PROGRAMS

import irgrad as ig


def _check(group: str, name: str, level: str | None) -> None:
    kernel = ig.load(GROUPS[group], language="c++", opt=level).kernel(name)
    x, h = 1.3, 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    value, gradient = ig.engine.value_and_grad(kernel)(x)
    assert value == pytest.approx(kernel(x), rel=1e-12)
    assert gradient == pytest.approx(want, rel=1e-8, abs=1e-7)
    assert gradient != 0
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize(("group", "name"), PROGRAMS[::2])
def test_program(group: str, name: str) -> None:
    _check(group, name, None)


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize(("group", "name"), PROGRAMS)
def test_program_at_every_level(group: str, name: str, level: str | None) -> None:
    _check(group, name, level)


def test_the_table_is_broad() -> None:
    assert len(PROGRAMS) >= 40
    assert len({name for _, name in PROGRAMS}) == len(PROGRAMS)
