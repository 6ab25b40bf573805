"""Shapes of results."""

from __future__ import annotations

import jax
import pytest
from samples import sample

from irgrad.interop.jax.algebra import Spec
from irgrad.interop.jax.primitive import bind, result_avals
from irgrad.rules.errors import IRGradError

jax.config.update("jax_enable_x64", True)


def test_batch_axes_stand_in_front() -> None:
    spec = Spec(sample("two"), (0,), wanted=(4, 2, 3))
    rows = result_avals(spec, (("n", 3),), (5, 2))
    assert [row.shape for row in rows] == [(5, 2), (5, 2, 3), (5, 2)]


def test_operands_are_checked() -> None:
    spec = Spec(sample("two"), (0,), wanted=(4, 2, 3))
    with pytest.raises(IRGradError, match="does not fit"):
        jax.jit(lambda x: bind(spec, [x], (("n", 3),), ((1, 3),), ()))(jax.numpy.ones(4))
