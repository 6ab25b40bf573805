"""Strategies: what is found out about a program, kept on disk, and when samples must not run side by side."""

from __future__ import annotations

import pytest
from samples import sample

import irgrad
from irgrad.engine.batches import unit
from irgrad.engine.batches.unit import strategy_of, unit_of

USES = ("in each", "zero out")
KERNELS = {
    "double f(double x) { return x > 0 ? x : -2 * x; }": ("scalars", ""),
    "#include <math.h>\ndouble f(double x) { return sin(x); }": ("scalars", ""),
    "double f(double x) { while (x < 10) x *= x + 2; return x; }": ("lanes", "until the last sample has left"),
    "double f(double x) { while (x < 9) { if ((x += x) > 7) return x; x *= x; } return 1; }": ("loop", "different"),
    "double f(double x) { return x < 1 ? x : 2 * f(x / 3) * f(x / 2); }": ("loop", "`f` is called"),
    "double f(double x) { double s = x; for (int i = 0; i < 300; i++) s *= x + s; return s; }": ("lanes", "the same"),
    "double f(double x) { double s = x; for (int i = 0; i < 3; i++) s += s * x; return s; }": ("scalars", ""),
}


@pytest.mark.parametrize("source", KERNELS)
def test_strategies(source: str) -> None:
    name, why = KERNELS[source]
    strategy = strategy_of(irgrad.load(source).kernel("f").primal, USES)
    assert strategy.name == name and why in strategy.why and not strategy.serial


def test_a_strategy_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, uses in (("product", ("in each", *USES)), ("cubes", ("in each", "in each", "in one", "zero out"))):
        program = sample(name).primal
        found = strategy_of(program, uses)
        with monkeypatch.context() as context:
            context.setattr(unit, "_choose", lambda *_: pytest.fail("asked again"))
            again = strategy_of(program, uses)
        assert again == found and again.packed == found.packed


def test_units_are_shared_by_use() -> None:
    program, units = sample("product").primal, {}
    strategy = strategy_of(program, ("in each", *USES))
    one = unit_of(program, strategy, ("in each", "in each", "zero out"), units)
    assert unit_of(program, strategy, ("in each", "in each", "zero out"), units) is one
    assert unit_of(program, strategy, ("in each", "in one", "zero out"), units) is not one
    assert len(units) == 2
