"""Numbers and pointers of rules: what Python says about numbers holds for the code that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad
from irgrad.engine.differentiate.custom_rules.symbols import ir_type
from irgrad.rules import layer, rule
from irgrad.rules.errors import RuleError

SOURCE = "double probe(double x, int n) { return x * n; }\ndouble fixed(double x) { return probe(x, 6); }\n"


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("symbols") / "probe.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def _value(kernel: Any, args: tuple[Any, ...], function: Callable[..., Any]) -> float:
    """What the function computes inside of a reverse body."""
    with layer():

        @rule("probe", mode="reverse")
        def _(ctx, x, n):  # type: ignore[no-untyped-def]
            x.d += ctx.result.d * function(x, n)

        return float(grad(kernel)(*args))


FUNCTIONS: list[Callable[..., Any]] = [
    lambda x, n: 2 * x + n / 3 - x / n,
    lambda x, n: (n * 7 + 1) // 2 - n % 4 + (n - 9),
    lambda x, n: np.where(x > 0.5, np.exp(x), -x) + np.where((n == 5) | (x < 0), 1.0, 2.0),
    lambda x, n: np.where((n >= 5) & ~(x != x), np.sqrt(np.abs(x)), 0.0) + abs(-x) + abs(n - 8),
    lambda x, n: x**3 + x**1.5 + np.hypot(x, 2) + np.float64(3.0) * x - np.int64(2) * n,
    lambda x, n: np.maximum(x, 0.4) + np.square(x) + np.power(x, 2.0) + np.logaddexp(x, 0.0) + np.sign(x),
    lambda x, n: np.sin(n) + np.exp(n / 4),
    lambda x, n: -n + (+x) - 1,
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
@pytest.mark.parametrize("name", ["probe", "fixed"])
def test_code_computes_what_python_does(lib: Any, number: int, name: str) -> None:
    function = FUNCTIONS[number]
    kernel = lib.kernel(name)
    for x in (0.25, 0.75):
        n = 5 if name == "probe" else 6  # in `fixed` a literal: folded
        args = (x, n) if name == "probe" else (x,)
        assert _value(kernel, args, function) == pytest.approx(float(function(np.float64(x), n)), rel=1e-14)


def test_literals_are_decided_when_the_rule_is_written(lib: Any) -> None:
    def function(x: Any, n: Any) -> Any:
        assert n.known
        assert not x.known
        assert (n == 6) is True
        assert int(n) == 6
        return x if n > 5 else 0 * x

    assert _value(lib.kernel("fixed"), (0.5,), function) == 0.5


def test_types() -> None:
    assert str(ir_type(np.dtype("float32"))) == "float"
    assert str(ir_type("i32")) == "i32"
    with pytest.raises(RuleError, match="no element of memory"):
        ir_type("f63")


def test_integer_division_is_for_integers(lib: Any) -> None:
    with pytest.raises(RuleError, match="`//` is for integers"):
        _value(lib.kernel("probe"), (0.5, 5), lambda x, n: x // 2)


def test_strings_are_no_numbers(lib: Any) -> None:
    with pytest.raises(TypeError):
        _value(lib.kernel("probe"), (0.5, 5), lambda x, n: x + "1")
