"""The mathematics of reduce, scan, map and scatter against central differences, zeros and ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irgrad.rules import current, layer, reduce, rule, scan
from irgrad.rules.constructs import OPERATIONS, derivative, general
from irgrad.rules.definitions.definition import Key
from irgrad.rules.errors import RuleError

X = np.array([0.5, -1.5, 2.0, 0.25, -0.75])
WITH_ZEROS = [X, X * [1, 0, 1, 1, 1], X * [1, 0, 1, 0, 1], X * 0]
SMOOTH = general(lambda a, b: np.sin(a) * b + b, lambda a, b: (np.cos(a) * b, np.sin(a) + 1))
ORACLES: dict[tuple[str, str], Any] = {
    ("reduce", "sum"): np.sum, ("reduce", "product"): np.prod, ("reduce", "min"): np.min, ("reduce", "max"): np.max,
    ("scan", "sum"): np.cumsum, ("scan", "product"): np.cumprod, ("scan", "min"): np.minimum.accumulate,
    ("scan", "max"): np.maximum.accumulate,
}  # fmt: skip


def _jacobian(function: Any, x: np.ndarray) -> np.ndarray:
    """Central differences: exact to rounding for these, which are linear in each element (or locally)."""
    h = 1e-5
    columns = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = h
        columns.append((np.atleast_1d(function(x + e)) - np.atleast_1d(function(x - e))) / (2 * h))
    return np.stack(columns, -1)


def _check(made: Any, x: np.ndarray, wanted: np.ndarray, rtol: float = 1e-9) -> None:
    for k, unit in enumerate(np.eye(x.size)):
        np.testing.assert_allclose(np.atleast_1d(made.forward(x, unit)), wanted[:, k], rtol=rtol, atol=1e-9)
    rows = np.eye(len(wanted)) if np.ndim(made.value(x)) else [1.0]
    for k, unit in enumerate(rows):
        np.testing.assert_allclose(made.reverse(x, unit), wanted[k], rtol=rtol, atol=1e-9)


@pytest.mark.parametrize(("construct", "op"), sorted(ORACLES))
def test_reductions_and_scans(construct: str, op: str) -> None:
    made, oracle = derivative(construct, op), ORACLES[construct, op]
    for x in WITH_ZEROS if op in ("sum", "product") else [X]:
        np.testing.assert_allclose(made.value(x), oracle(x))
        _check(made, x, _jacobian(oracle, x))


def test_a_product_with_one_zero_has_one_slope() -> None:
    made = derivative("reduce", "product")
    np.testing.assert_array_equal(made.reverse(np.array([2.0, 0.0, 3.0]), 1.0), [0, 6, 0])
    np.testing.assert_array_equal(made.reverse(np.array([2.0, 0.0, 0.0]), 1.0), [0, 0, 0])


@pytest.mark.parametrize("construct", ["reduce", "scan"])
def test_ties_go_to_the_first(construct: str) -> None:
    for op in ("min", "max"):
        made, x = derivative(construct, op), np.array([1.0, 1.0, 1.0])
        seed = 1.0 if construct == "reduce" else np.array([0.0, 0.0, 1.0])
        np.testing.assert_array_equal(made.reverse(x, seed), [1, 0, 0])


def test_general_operations_are_recurrences() -> None:
    def folded(x: np.ndarray) -> Any:
        y = x[0]
        for v in x[1:]:
            y = np.sin(y) * v + v
        return y

    _check(derivative("reduce", SMOOTH), X, _jacobian(folded, X), 1e-7)
    _check(derivative("scan", SMOOTH), X, _jacobian(derivative("scan", SMOOTH).value, X), 1e-7)
    _check(derivative("map", general(np.sin, np.cos)), X, np.diag(np.cos(X)))


@pytest.mark.parametrize("op", OPERATIONS)
def test_scatters_with_duplicate_indices(op: str) -> None:
    ufunc = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}[op]
    made, base, index = derivative("scatter", op), np.array([0.1, -0.2, 0.0, 0.4]), np.array([2, 0, 2, 3, 2])

    def oracle(both: np.ndarray) -> np.ndarray:
        y = both[:4].copy()
        ufunc.at(y, index, both[4:])
        return y

    both = np.concatenate([base, X])
    np.testing.assert_allclose(made.value(base, index, X), oracle(both))
    wanted = _jacobian(oracle, both)
    for k, unit in enumerate(np.eye(9)):
        np.testing.assert_allclose(made.forward(base, index, X, unit[:4], unit[4:]), wanted[:, k], atol=1e-9)
    for k, unit in enumerate(np.eye(4)):
        np.testing.assert_allclose(np.concatenate(made.reverse(base, index, X, unit)), wanted[k], atol=1e-9)


def test_what_was_there_before_wins_a_tie_of_a_scatter() -> None:
    base_bar, x_bar = derivative("scatter", "max").reverse(np.ones(1), np.array([0, 0]), np.ones(2), np.ones(1))
    assert (base_bar.tolist(), x_bar.tolist()) == ([1.0], [0.0, 0.0])


def test_operations_are_keys_of_their_own() -> None:
    with layer():

        @rule(reduce, op="sum", mode="reverse")
        def _(ctx: Any, xs: Any, y: Any) -> None: ...

        @rule(reduce, op="product", mode="reverse")
        def _(ctx: Any, xs: Any, y: Any) -> None: ...

        @rule(scan, op="sum", mode="reverse")
        def _(ctx: Any, xs: Any, y: Any) -> None: ...

        keys = set(current().layers[0].rules)
    assert keys == {Key("reduce", "sum"), Key("reduce", "product"), Key("scan", "sum")}


def test_unknown_operations_say_so() -> None:
    with pytest.raises(RuleError, match="`scatter` has no operation 'xor'"):
        derivative("scatter", "xor")
