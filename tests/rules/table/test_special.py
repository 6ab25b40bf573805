"""Rows of `special`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from oracle.rule_checks import rows_of

from irgrad.rules.expressions.expr import Arg
from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.table.special import digamma

from .contract import ContractWithKinks

ROWS = rows_of("special")


class TestRows(ContractWithKinks):
    """The contract of every row."""


@pytest.mark.parametrize("low", [-20.0, -3.0, 0.0, 1.0, 20.0, 1e5])
def test_digamma_everywhere(low: float) -> None:
    """Positive, reflected and large arguments, to 1e-14 of the size of psi and of its condition number."""
    rng = np.random.default_rng(int(low) % 97)
    for x in rng.uniform(low, low + abs(low) + 1.5, 200):
        want = mp.digamma(mp.mpf(float(x)))
        got = float(evaluate(digamma(Arg(0)), [np.float64(x)]))
        assert abs(got - want) <= 1e-14 * (1 + abs(want)), x


def test_digamma_next_to_a_pole() -> None:
    for x in (-2.0 + 2.0**-40, -5.0 - 2.0**-30, 2.0**-60, -(2.0**-60)):
        want = mp.digamma(mp.mpf(x))
        got = float(evaluate(digamma(Arg(0)), [np.float64(x)]))
        assert abs(got - want) <= 1e-14 * abs(want), x
