"""Lists of Numba, whose first words are integers in front of floats."""

from __future__ import annotations

from typing import Any

import numba
import numba_idioms
import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.loaders.numba_members import typed_members


@pytest.mark.parametrize(("function", "signature", "args"), fast(2, numba_idioms.LISTS))
def test_lists(function: Any, signature: str, args: tuple[Any, ...]) -> None:
    kernel = irgrad.from_numba(function, signature)
    np.testing.assert_allclose(kernel(*args), function(*args), rtol=1e-12)
    assert engine.check(kernel, *args).ok


def test_only_integers_are_marked_and_numba_is_as_before() -> None:
    def length(x: Any) -> Any:
        made = [x]
        made.append(2 * x)
        return len(made)

    from numba.core.cgutils import _StructProxy as Structure

    before = Structure.__getitem__, Structure.__setitem__
    with typed_members():
        marked = numba.njit(length)
        marked(2.0)
    assert (Structure.__getitem__, Structure.__setitem__) == before
    text = marked.inspect_llvm()[(numba.float64,)]
    assert "irgrad members of Numba" in text
    assert not any("!tbaa" in row and "double" in row for row in text.splitlines())
    plain = numba.njit(lambda x: length(x))
    assert marked(3.0) == 2 and "irgrad" not in str(plain.inspect_llvm())
