"""Arguments of a call become operands and constants."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

from irgrad import DTypeError, ShapeError
from irgrad.interop.programs.arguments import Values, bound_call, extents_of

VALUES = Values(
    lambda value: isinstance(value, np.ndarray), lambda value, p: np.asarray(value), lambda value, p: int(value), "map"
)


def test_sizes_and_integers_are_constants() -> None:
    call = bound_call(sample("scale"), [np.ones(3), 0.5], VALUES)
    assert call.sizes == (("n", 3),) and call.constants == ((1, 3),)
    assert call.spec.inputs == (0, 2) and call.spec.results == (0, 3)
    assert extents_of(sample("scale")) == {"n"}


def test_an_integer_of_the_framework_is_an_operand_unless_it_determines_shapes() -> None:
    call = bound_call(sample("power"), [np.array(2.0), np.array(3, np.int32)], VALUES)
    assert call.spec.inputs == (0, 1) and call.constants == ()
    call = bound_call(sample("ramp"), [np.array(3), np.array(2)], VALUES)
    assert call.spec.inputs == (1,) and call.constants == ((0, 3),)


def test_negative_constants_keep_their_bits() -> None:
    assert bound_call(sample("power"), [np.array(2.0), -3], VALUES).constants == ((1, 2**32 - 3),)


def test_shapes_are_checked() -> None:
    with pytest.raises(ShapeError, match="wanted a scalar") as caught:
        bound_call(sample("scale"), [np.ones(3), np.ones(2)], VALUES)
    assert caught.value.fix == "map over it, or pass a number"
    with pytest.raises(ShapeError):
        bound_call(sample("energy"), [np.ones((3, 3)), np.ones(2)], VALUES)
    with pytest.raises(DTypeError, match="does not fit"):
        bound_call(sample("power"), [np.array(2.0), 2**40], VALUES)
