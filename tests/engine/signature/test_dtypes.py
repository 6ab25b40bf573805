"""Element types agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from irgrad.engine.signature.dtypes import DTYPES, HINTS


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_size_and_bounds_are_numpys(name: str) -> None:
    dtype = DTYPES[name]
    assert dtype.numpy.itemsize == dtype.size
    assert dtype.is_float == (dtype.kind == "f")
    if dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        assert dtype.bounds == (info.min, info.max)


def test_bool_is_a_byte_in_memory() -> None:
    assert (DTYPES["bool"].ir, DTYPES["bool"].memory, DTYPES["bool"].bounds) == ("i1", "i8", (0, 1))


def test_hints_name_known_types() -> None:
    assert set(HINTS.values()) <= set(DTYPES)
