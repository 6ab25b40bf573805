"""Kernels that report failure, under JAX: the message arrives from every transformation, and names the sample."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import irgrad

jax.config.update("jax_enable_x64", True)

SOURCE = r"""
int divide(const double *x, const double *y, double *q, int n) {
    for (int i = 0; i < n; i++) if (y[i] == 0) return 1;
    for (int i = 0; i < n; i++) q[i] = x[i] / y[i];
    return 0;
}
unsigned char narrow(double x, double *y) { *y = x * x; return x > 2 ? 200 : 0; }
long valid(double x) { return x < 0; }
"""
X, GOOD, BAD = jnp.array([1.0, 2.0]), jnp.array([2.0, 4.0]), jnp.array([2.0, 0.0])
MESSAGE = "`divide` failed with status 1: division by 0 %s \"\\ é"


@cache
def divide() -> Any:
    signature = "i32(f64[n] x, f64[n] y, out f64[n] q, i32 n)"
    return irgrad.load(SOURCE).kernel("divide", signature, errors={1: 'division by 0 %s "\\ é'})


def total(x: Any, y: Any) -> Any:
    return jnp.sum(divide()(x, y) ** 2)


def scanned(x: Any, y: Any) -> Any:
    return jax.lax.scan(lambda c, _: (divide()(c, y), None), x, None, length=3)[0]


SINGLE: dict[str, Callable[..., Any]] = {
    "eager": lambda x, y: divide()(x, y),
    "jit": jax.jit(lambda x, y: divide()(x, y)),
    "grad": jax.grad(total, argnums=1),
    "jit(value_and_grad)": jax.jit(jax.value_and_grad(total)),
    "jvp": lambda x, y: jax.jvp(divide(), (x, y), (x, y)),
    "linearize": lambda x, y: jax.linearize(divide(), x, y)[1](x, y),
    "jit(jacfwd)": jax.jit(lambda x, y: jax.jacfwd(divide())(x, y)),
    "jit(jacrev)": jax.jit(lambda x, y: jax.jacrev(divide())(x, y)),
    "jit(hessian)": jax.jit(jax.hessian(total)),
    "checkpoint": jax.jit(jax.grad(jax.checkpoint(total))),
    "scan": jax.jit(scanned),
    "grad(scan)": jax.jit(jax.grad(lambda x, y: jnp.sum(scanned(x, y)))),
}


@pytest.mark.parametrize("name", SINGLE)
def test_every_transformation_raises(name: str) -> None:
    function = SINGLE[name]
    for warm in (False, True):
        with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(MESSAGE)):
            jax.block_until_ready(function(X, BAD))
        if not warm:  # from here on jit answers from its C++ path
            for leaf in jax.tree.leaves(function(X, GOOD)):
                assert np.isfinite(leaf).all()


MANY = jnp.stack([GOOD, 2 * GOOD, BAD, GOOD, BAD])
TABLE = jnp.stack([MANY.at[2].set(GOOD).at[4].set(GOOD), MANY])
BATCHED: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "vmap": (jax.vmap(lambda x, y: divide()(x, y), (None, 0)), MANY, "(sample 2)"),
    "vmap(grad)": (jax.jit(jax.vmap(jax.grad(total), (None, 0))), MANY, "(sample 2)"),
    "vmap(jacfwd)": (jax.jit(jax.vmap(lambda x, y: jax.jacfwd(divide())(x, y), (None, 0))), MANY, "(sample 2)"),
    "vmap(hessian)": (jax.jit(jax.vmap(jax.hessian(total), (None, 0))), MANY, "(sample 2)"),
    "jacfwd(vmap)": (jax.jit(lambda x, y: jax.jacfwd(jax.vmap(divide(), (None, 0)), 1)(x, y)), MANY, "(sample 2)"),
    "vmap(vmap)": (jax.vmap(jax.vmap(lambda x, y: divide()(x, y), (None, 0)), (None, 0)), TABLE, "(sample [1, 2])"),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batches_name_the_first_sample_that_failed(name: str) -> None:
    function, rows, sample = BATCHED[name]
    good = jnp.where(rows == 0, 1, rows)
    jax.block_until_ready(function(X, good))
    with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(f"{MESSAGE} {sample}")):
        jax.block_until_ready(function(X, rows))


def test_long_batches_that_run_in_lanes_and_on_threads() -> None:
    y = jnp.ones((20_000, 2)).at[12_345, 1].set(0).at[17_000].set(0)
    np.testing.assert_array_equal(jax.vmap(divide(), (None, 0))(X, jnp.ones((20_000, 2)))[-1], X)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"\(sample 12345\)"):
        jax.block_until_ready(jax.vmap(divide(), (None, 0))(X, y))


def test_derivatives_are_right() -> None:
    check_grads(divide(), (X, GOOD), order=2)


def test_a_small_unsigned_status_without_a_message() -> None:
    kernel = irgrad.load(SOURCE).kernel("narrow", "status u8(f64 x, out f64 y)")
    assert jax.grad(kernel)(1.5) == 3.0
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"`narrow` failed with status 200$"):
        jax.block_until_ready(kernel(jnp.float64(3)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"`narrow` failed with status 200 \(sample 7\)"):
        jax.block_until_ready(jax.vmap(kernel)(jnp.full(9, 1.0).at[7].set(5)))


def test_a_kernel_without_results_is_refused() -> None:
    kernel = irgrad.load(SOURCE).kernel("valid", "status i64(f64 x)")
    with pytest.raises(irgrad.Unsupported, match="`valid` returns nothing but its status"):
        kernel(jnp.float64(1))


def test_messages_change_the_target() -> None:
    other = irgrad.load(SOURCE).kernel("divide", str(divide().signature), errors={1: "another message"})
    jax.block_until_ready(divide()(X, GOOD))
    with pytest.raises(jax.errors.JaxRuntimeError, match="another message"):
        jax.block_until_ready(other(X, BAD))


@pytest.mark.long
def test_several_devices() -> None:
    code = """
import jax, jax.numpy as jnp, numpy as np, irgrad
from jax.sharding import NamedSharding, PartitionSpec as P
jax.config.update("jax_enable_x64", True)
k = irgrad.load("int f(double x, double *y) { *y = x * x; return x < 0 ? 5 : 0; }").kernel(
    "f", "i32(f64 x, out f64 y)", errors={5: "negative"})
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("b",))
x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("b")))
for f in (jax.jit(jax.vmap(k)), jax.jit(jax.vmap(jax.grad(k))), jax.jit(jax.shard_map(jax.vmap(k), mesh=mesh,
          in_specs=P("b"), out_specs=P("b")))):
    f(x).block_until_ready()
    assert "all-gather" not in f.lower(x).compile().as_text()
    for bad in (x.at[5].set(-1), x.at[0].set(-2)):
        try:
            f(bad).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            assert "`f` failed with status 5: negative" in str(error), error
        else:
            raise SystemExit("no error")
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240, env={**os.environ, **flags})
