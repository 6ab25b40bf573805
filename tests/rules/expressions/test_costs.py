"""What operations and the tape cost."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.opcodes import OPCODES
from irgrad.rules import effects
from irgrad.rules.expressions.costs import GPU, LIBRARY_CALL, OPERATIONS, SHIPPED, Costs


def test_without_measurements_everything_costs_what_it_says() -> None:
    assert SHIPPED.tape == 28 and SHIPPED.call == LIBRARY_CALL and SHIPPED.waits
    assert [SHIPPED.of("exp", 20), SHIPPED.of("anything", 7)] == [20, 7]
    assert GPU.tape > SHIPPED.tape and not GPU.waits


def test_measured_costs_go_before_shipped_ones() -> None:
    costs = Costs(10, measured=(("exp", 42), ("call", 30)))
    assert [costs.of("exp", 20), costs.of("gamma", 20), costs.of("fadd", 1)] == [42, 30, 1]


def test_reading_is_a_third_of_the_traffic_of_a_tape() -> None:
    assert Costs(42).read(8) == 14 and Costs(42).read(4) == 7 and Costs(1).read(8) == 1


def test_functions_cost_less_than_the_tape_only_where_they_do() -> None:
    """By `irgrad tune`: exp, sin and log take two thirds of what a number on tape costs, pow three times as much."""
    dear = ("atan2", "tanh", "acosh", "pow", "tgamma", "frem")
    assert all(OPERATIONS[name] > SHIPPED.tape for name in dear)
    assert all(OPERATIONS[name] < SHIPPED.tape for name in ("exp", "log", "sin", "cos", "atan"))


@pytest.mark.parametrize("name", ["fdiv", "frem"])
def test_opcodes_cost_what_the_table_says(name: str) -> None:
    assert OPCODES[name].cost == OPERATIONS[name]


def test_calls_cost_what_was_measured_under_every_spelling() -> None:
    costs = Costs(measured=(("exp", 42), ("sqrt", 9)))
    for symbol in ("exp", "expf", "llvm.exp.f64", "__exp_finite"):
        assert effects.cost(symbol, costs) == 42
    assert effects.cost("llvm.sqrt.f64", costs) == 9 and effects.cost("llvm.sqrt.f64") == 4
    assert effects.cost("llvm.smax.i64", costs) == 1
