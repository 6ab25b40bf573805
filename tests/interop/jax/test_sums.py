"""Gradients of shared arguments, summed where they are made: rows of threads on the host against rows of samples, and
all rules of JAX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import on_grid

import irgrad
from irgrad.interop.jax import sums

from .test_device import _device, needs_library, needs_plugin

pytestmark = pytest.mark.long
jax.config.update("jax_enable_x64", True)

LIBRARY = irgrad.load(r"""
#include <math.h>
double swing(const double *x, const double *p, long n) {
  double y = x[0], v = x[1];
  for (long i = 0; i < n; i++) { double a = -p[0] * sin(y) - p[1] * v; v += 0.01 * a; y += 0.01 * v; }
  return y * y + v;
}
void layer(const double *x, const double *w, double *y, long n, long m) {
  for (long i = 0; i < m; i++) { double s = 0; for (long j = 0; j < n; j++) s += w[i*n+j] * x[j]; y[i] = tanh(s); }
}
""")
SWING = LIBRARY.kernel("swing", "f64(f64[2] x, f64[2] p, i64 n)")
LAYER = LIBRARY.kernel("layer", "void(f64[n] x, f64[m,n] w, out f64[m] y, i64 n, i64 m)")
RNG = np.random.default_rng(5)
X, P = RNG.normal(size=(50, 2)), np.array([0.3, 0.4])
V, W = RNG.normal(size=(30, 9)), RNG.normal(size=(7, 9))  # 504 bytes of weights: no array of a thread's own


def _swings(x: Any, p: Any) -> Any:
    return jax.vmap(lambda x, p: SWING(x, p, 20), (0, None))(x, p).sum()


def _layers(x: Any, w: Any) -> Any:
    return (jax.vmap(LAYER, (0, None))(x, w) ** 2).sum()


def _words(f: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    both = jax.grad(f, (0, 1))
    return {
        "gradients": both,
        "shared alone": jax.grad(f, 1),
        "value and gradients": jax.value_and_grad(f, (0, 1)),
        "forward over reverse": lambda x, p: jax.jvp(both, (x, p), (x, p)),
        "reverse over reverse": lambda x, p: jax.grad(lambda p: (jax.grad(f, 1)(x, p) ** 2).sum())(p),
        "a batch of them": lambda x, p: jax.vmap(lambda q: jax.grad(f, 1)(x, q))(jnp.stack([p, 2 * p])),
        "more than there are threads": lambda x, p: jax.vmap(both)(jnp.stack([x * k for k in range(9)]),
                                                                   jnp.stack([p * k for k in range(9)])),
        "batches of batches": lambda x, p: jax.vmap(lambda x: jax.vmap(lambda q: both(x, q))(jnp.stack([p, -p])),
                                                    1)(jnp.stack([x, 2 * x, x + 1], 1)),
    }


CASES = [(f, args, word) for f, args in ((_swings, (X, P)), (_layers, (V, W))) for word in _words(f)]


@pytest.fixture
def summed() -> Iterator[None]:
    """As where JAX's devices are GPUs."""
    sums.ROWS_OF_THREADS.append(True)
    jax.clear_caches()
    yield
    sums.ROWS_OF_THREADS.pop()
    jax.clear_caches()


@pytest.mark.parametrize(("f", "args", "word"), CASES, ids=lambda value: getattr(value, "__name__", str(value)[:20]))
def test_rows_of_threads(f: Any, args: Any, word: str) -> None:
    """Against rows of samples, by the CPU's code and by a device's."""
    function = _words(f)[word]
    wanted = jax.jit(function)(*args)
    sums.ROWS_OF_THREADS.append(True)
    try:
        jax.clear_caches()
        plain = jax.jit(function)(*args)
        assert "foreign_sums" in str(jax.make_jaxpr(function)(*args))
        with on_grid(7) as made:
            threaded = jax.jit(function)(*args)
    finally:
        sums.ROWS_OF_THREADS.pop()
        jax.clear_caches()
    assert made
    for got in (plain, threaded):
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * float(jnp.abs(b).max()))


@pytest.mark.usefixtures("summed")
def test_the_sum_is_transposed() -> None:
    """It is linear in the cotangents of the samples: its transpose is the tangent of each along the shared argument."""

    def of_samples(p: Any) -> Any:
        return jax.vmap(lambda x: SWING(x, p, 20))(X)

    def shared(w: Any) -> Any:
        return jax.vjp(of_samples, P)[1](w)[0]

    direction = np.array([0.2, -0.7])
    assert "foreign_sums" in str(jax.make_jaxpr(shared)(jnp.ones(50)))
    (got,) = jax.linear_transpose(shared, jnp.ones(50))(direction)
    np.testing.assert_allclose(got, jax.jvp(of_samples, (P,), (direction,))[1], rtol=1e-12)


def test_on_the_cpu_nothing_changes() -> None:
    text = str(jax.make_jaxpr(jax.grad(_swings, (0, 1)))(X, P))
    assert "foreign_sums" not in text and "foreign_call" in text


@needs_library
@pytest.mark.usefixtures("summed")
@pytest.mark.parametrize("samples", [10**6, 10**7])
def test_memory_does_not_grow_with_samples(samples: int) -> None:
    """The gradient of shared arguments has a row for each thread, whatever the number of samples."""
    shapes = jax.ShapeDtypeStruct((samples, 2), np.float64), jax.ShapeDtypeStruct((2,), np.float64)
    text = str(jax.jit(jax.grad(_swings, 1)).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text())
    calls = [line for line in text.splitlines() if "custom_call" in line]
    made = [re.findall(r"tensor<([0-9x]+)xf64>", line.rpartition("->")[2]) for line in calls]
    assert made[-1] == ["135168x1x2"], "rows of all threads"
    assert not [shape for row in made for shape in row if shape.startswith(str(samples)) and shape.endswith("x2")]


@needs_library
@pytest.mark.usefixtures("summed")
def test_threads_are_shared_out_among_groups() -> None:
    """Under a second vmap: 8 gradients, each with an eighth of the threads, in one kernel."""
    shapes = jax.ShapeDtypeStruct((10**6, 2), np.float64), jax.ShapeDtypeStruct((8, 2), np.float64)
    function = jax.vmap(jax.grad(_swings, 1), (None, 0))
    text = str(jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text())
    calls = [line.rpartition("->")[2] for line in text.splitlines() if "custom_call" in line]
    (each,) = re.findall(r"tensor<8x(\d+)x1x2xf64>", calls[-1])
    assert 1000 < int(each) <= 132 * 2048 // 8, "rows of all threads, not of samples"


@needs_plugin
@pytest.mark.usefixtures("summed")
def test_what_xla_reserves_does_not_grow_with_samples() -> None:
    """But for the cotangents of the samples, a number for each."""

    def reserved(samples: int) -> int:
        sharding = jax.sharding.SingleDeviceSharding(_device())
        shapes = jax.ShapeDtypeStruct((samples, 2), np.float64), jax.ShapeDtypeStruct((2,), np.float64)
        traced = jax.jit(jax.grad(_swings, 1), in_shardings=sharding).trace(*shapes)
        memory = traced.lower(lowering_platforms=("cuda",)).compile().memory_analysis()
        return int(memory.temp_size_in_bytes)

    few, many = reserved(10**6), reserved(2 * 10**6)
    assert many - few <= 8 * 10**6 + 4096 < 24 * 10**6


@pytest.mark.usefixtures("summed")
def test_values_that_vary_along_a_mesh_have_rows_of_samples() -> None:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = (jax.P("i"), jax.P())
    inside = jax.shard_map(lambda x, p: jax.lax.psum(_swings(x, p), "i"), mesh=mesh, in_specs=specs, out_specs=jax.P())
    text = str(jax.make_jaxpr(jax.grad(inside, 1))(X, P))
    assert "foreign_sums" not in text
