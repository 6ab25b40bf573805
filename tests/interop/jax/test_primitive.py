"""Shapes of results; evaluation where JAX is told to look at it closely."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

from irgrad.interop.jax.primitive import bind, result_avals
from irgrad.interop.programs.algebra import Spec
from irgrad.rules.errors import IRGradError

jax.config.update("jax_enable_x64", True)

NANS = """
import jax, numpy as np, irgrad
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_nans", True)
lib = irgrad.load("double square(double x) { return x * x; }"
                  "void bad(double *y, int n) { for (int i = 0; i < n; i++) y[i] = 0.0 * __builtin_inf(); }")
square, bad = lib.kernel("square"), lib.kernel("bad", "void(out f64[n] y, i32 n)")
assert jax.jit(jax.grad(square))(3.0) == 6.0
for call in (square, jax.jit(square), jax.grad(square), jax.jit(jax.grad(square)), lambda _: bad(jax.numpy.int32(2))):
    try:
        call(jax.device_put(np.float64(np.nan)))
    except FloatingPointError as error:
        print(error)
"""


def test_batch_axes_stand_in_front() -> None:
    spec = Spec(sample("two"), (0,), wanted=(4, 2, 3))
    rows = result_avals(spec, (("n", 3),), (5, 2))
    assert [row.shape for row in rows] == [(5, 2), (5, 2, 3), (5, 2)]


def test_operands_are_checked() -> None:
    spec = Spec(sample("two"), (0,), wanted=(4, 2, 3))
    with pytest.raises(IRGradError, match="does not fit"):
        jax.jit(lambda x: bind(spec, [x], (("n", 3),), ((1, 3),), ()))(jax.numpy.ones(4))


def test_without_jit() -> None:
    kernel, x = sample("cubes"), jnp.array([1.0, 2.0])
    with jax.disable_jit():
        np.testing.assert_allclose(kernel(x, 2.0), 18.0)
        np.testing.assert_allclose(jax.grad(kernel)(x, 2.0), 6 * x**2)
        np.testing.assert_allclose(jax.vmap(jax.hessian(kernel), (0, None))(x[None], 2.0)[0], np.diag(12 * x))
        loop = jax.grad(lambda x: jax.lax.scan(lambda s, _: (s + kernel(x, s), None), 1.0, None, length=2)[0])
        np.testing.assert_allclose(loop(x), 3 * x**2 * 2 * (1 + 9), rtol=1e-14)  # (1 + c)^2, where c = sum x^3 = 9


@pytest.mark.long
def test_debugging_of_nans() -> None:
    """In a process of its own: JAX does not look at the results of functions that ran before it was told to."""
    done = subprocess.run([sys.executable, "-c", NANS], capture_output=True, text=True, timeout=120, check=True)
    lines = [line.partition("invalid value (nan or inf) in a result of ")[2] for line in done.stdout.splitlines()]
    found = [line.partition(",")[0] for line in lines if line]
    assert found == ["`square`"] * 4 + ["`bad`"]
