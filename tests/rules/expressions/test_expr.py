"""The expression algebra: interning, simplification, and what a reading is asked for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from irgrad.rules.expressions.expr import ZERO, Arg, Const, Expr, Result, call, const, cost, emit, needs, nodes, where
from irgrad.rules.expressions.functions import eq, exp, integer, powi, sin, sqrt

x, y = Arg(0), Result(0)


class Recorder:
    """A reading that writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def const(self, value: float) -> str:
        return repr(value)

    def op(self, name: str, *args: str) -> str:
        self.asked.append(name)
        return f"{name}({', '.join(args)})"

    def cmp(self, pred: str, a: str, b: str) -> str:
        self.asked.append(pred)
        return f"{pred}({a}, {b})"

    def where(self, condition: str, a: str, b: str) -> str:
        self.asked.append("where")
        return f"where({condition}, {a}, {b})"


def test_equal_expressions_are_one_object() -> None:
    assert sin(x * 2.0) is sin(Arg(0) * 2.0)
    assert Arg(0) is not Arg(1)
    assert Arg(0) is not Result(0)
    assert Const(0.0) is not Const(-0.0)
    assert Const(float("nan")) is Const(float("nan"))


def test_simplification_keeps_every_bit() -> None:
    assert x * 1.0 is x
    assert 1.0 * x is x
    assert x / 1.0 is x
    assert -(-x) is x  # noqa: B002
    assert x * -1.0 is -x
    assert x - (-y) is x + y
    assert x + (-y) is x - y
    assert const(2) * 3 is Const(6.0)
    assert const(1) / 3 is call("div", const(1), const(3))  # 1/3 is no double: left to the machine


def test_what_ieee_forbids_is_left_alone() -> None:
    zero = Const(0.0)
    assert x * 0.0 is not zero  # x may be infinite
    assert x + 0.0 is not x  # -0.0 + 0.0 is +0.0
    assert (x + 1e16) - 1e16 is not x
    assert x - x is not zero


def test_the_structural_zero_absorbs_and_vanishes() -> None:
    infinite = 1.0 / (x - x)
    assert ZERO * infinite is ZERO
    assert infinite * ZERO is ZERO
    assert ZERO + x is x
    assert x - ZERO is x
    assert ZERO - x is -x
    assert ZERO / x is ZERO
    assert -ZERO is ZERO
    assert where(x > 0, ZERO, ZERO) is ZERO
    with pytest.raises(ZeroDivisionError, match="structural zero"):
        x / ZERO


def test_a_condition_is_no_truth_value() -> None:
    with pytest.raises(TypeError, match="where"):
        bool(x > 0)


def test_shared_parts_are_emitted_once() -> None:
    shared = sin(x)
    recorder = Recorder()
    memo: dict[Expr, str] = {}
    emit(shared * shared, recorder, ["a"], memo=memo)
    emit(exp(sin(x)), recorder, ["a"], memo=memo)
    assert recorder.asked == ["sin", "mul", "exp"]


def test_emission_text() -> None:
    text = emit(where(eq(x, 0.0), 1.0, y / x), Recorder(), {0: "a"}, {0: "r"})
    assert text == "where(oeq(a, 0.0), 1.0, div(r, a))"
    assert emit(powi(x, call("isub1", Arg(1))) * integer(Arg(1)), Recorder(), ["a", "n"]) == (
        "mul(powi(a, isub1(n)), sitofp(n))"
    )


def test_needs_and_cost() -> None:
    assert needs(y * y) == {y}
    assert needs(Arg(1) * sin(x)) == {x, Arg(1)}
    assert needs(ZERO) == frozenset()
    assert cost(sin(x) * sin(x)) == 21
    assert cost(1.0 / x) == 4
    assert cost(sqrt(x), sqrt(x) + 1.0) == 5


def test_depth_is_no_limit() -> None:
    deep: Expr = x
    for _ in range(20_000):
        deep = deep * 0.5 + x
    assert len(nodes(deep)) == 40_002
    assert len(needs(deep)) == 1


def test_numpy_functions_build_expressions() -> None:
    assert np.sin(x) is sin(x)  # type: ignore[call-overload]
    assert np.float64(2.0) * x is 2.0 * x
    assert np.power(x, 2.5) is x**2.5  # type: ignore[call-overload]
    assert x**2 is x * x
    with pytest.raises(TypeError, match=r"numpy\.spacing"):
        np.spacing(x)  # type: ignore[call-overload]


def test_exact_constants() -> None:
    third = const(Fraction(1, 3))
    assert isinstance(third, Const)
    assert (third.value, third.exact) == (1 / 3, Fraction(1, 3))
    assert const(Fraction(1, 4)) is Const(0.25)
    assert const("pi") is not Const(3.141592653589793)


def test_text() -> None:
    assert repr(where(x < 0.0, -x, sin(y) / 2.0)) == "where((x0 < 0), -x0, (sin(y0) / 2))"
    assert repr(ZERO) == "0"
