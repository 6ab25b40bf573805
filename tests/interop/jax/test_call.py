"""Kernels called with JAX values: results, constants, errors at trace time."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

import irgrad

jax.config.update("jax_enable_x64", True)


def test_eager_and_jit_agree_with_numpy() -> None:
    x = np.array([0.5, 1.0, 2.0])
    wanted = sample("two")(x)
    for call in (sample("two"), jax.jit(sample("two"))):
        for a, b in zip(call(jnp.asarray(x)), wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_python_integers_are_constants() -> None:
    assert sample("power")(jnp.float64(2.0), 5) == 32
    assert jax.jit(lambda k: sample("ramp")(4, k))(3).tolist() == [0, 3, 6, 9]


def test_inout_does_not_change_its_argument() -> None:
    x = jnp.ones(3)
    moved, _ = sample("scale")(x, 2.0)
    assert x.tolist() == [1, 1, 1] and moved.tolist() == [2, 2, 2]


def test_errors_are_raised_while_tracing() -> None:
    with pytest.raises(irgrad.ShapeError, match="`mass` has extent 3 on axis 0, wanted 4"):
        jax.jit(sample("energy"))(jnp.ones((4, 3)), jnp.ones(3))
    with pytest.raises(irgrad.DTypeError, match="`pos` has dtype float32, wanted float64"):
        jax.jit(sample("energy"))(jnp.ones((4, 3), jnp.float32), jnp.ones(4))
    with pytest.raises(irgrad.ShapeError, match="`n` is traced"):
        jax.jit(lambda n: sample("ramp")(n, 2))(3)


def test_without_x64_the_error_names_the_switch() -> None:
    code = """
import irgrad, jax.numpy as jnp
k = irgrad.load("double f(double x) { return x; } float g(float x) { return x; }")
assert k.kernel("g")(jnp.float32(2)) == 2
try:
    k.kernel("f")(jnp.float32(2))
except irgrad.DTypeError as error:
    assert "jax_enable_x64" in error.fix
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)


def test_the_kernel_sees_the_arrays_themselves() -> None:
    """Nothing is copied on the way in or out, eager or compiled: the addresses are those of JAX's buffers."""
    source = """void f(const double *x, double *y, long *at, long n) {
      at[0] = (long)x; at[1] = (long)y; y[n - 1] = x[0]; }"""
    kernel = irgrad.load(source).kernel("f", "void(f64[n] x, out f64[n] y, out i64[2] at, i64 n)")
    x = jnp.arange(1000.0)
    for function in (kernel, jax.jit(kernel)):
        y, at = function(x)
        assert at.tolist() == [x.unsafe_buffer_pointer(), y.unsafe_buffer_pointer()]
        assert y[-1] == x[0]
