"""The programs of benchmarks/blas.py have the right gradients."""

from __future__ import annotations

import pytest

from benchmarks.blas import error, gaussian, network
from irgrad.engine import grad, hessian

pytestmark = pytest.mark.long


@pytest.mark.parametrize("make", [lambda: gaussian(90), lambda: network(20, 8)])
def test_gradients(make) -> None:  # type: ignore[no-untyped-def]
    kernel, argnums, args, expected = make()
    assert error(grad(kernel, argnums=argnums)(*args), expected) < 1e-10


def test_hessian_of_the_likelihood() -> None:
    """Calls in rules are differentiated by rules."""
    import numpy as np

    kernel, _, (p, x, y), _ = gaussian(20)
    found = hessian(kernel, argnums=0)(p, x, y)
    h = 1e-5
    columns = []
    for i in range(3):
        step = h * np.eye(3)[i]
        columns.append((grad(kernel, argnums=0)(p + step, x, y) - grad(kernel, argnums=0)(p - step, x, y)) / (2 * h))
    np.testing.assert_allclose(found, np.array(columns), rtol=1e-6, atol=1e-6)
