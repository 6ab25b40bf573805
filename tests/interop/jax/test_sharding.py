"""Several devices: shard_map with and without check_vma, and plain jit without an all-gather.

In a process of their own, since the number of devices is chosen before JAX starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest

CODE = """
import json, types
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, irgrad
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

kernel = irgrad.load('''#include <math.h>
double f(const double *x, const double *w, double a, long n) {
  double s = 0; for (long i = 0; i < n; i++) s += w[i] * sin(a * x[i]); return s; }''').kernel(
  "f", "f64(f64[n] x, f64[n] w, f64 a, i64 n)")
square = irgrad.load("double g(double x) { return x * x; }").kernel("g")
reference = lambda x, w, a: jnp.sum(w * jnp.sin(a * x))
mesh = Mesh(np.array(jax.devices()), ("i",))
X, w, a = jnp.linspace(-1, 2, 40).reshape(8, 5), jnp.arange(5.0) + 1, jnp.float64(1.3)
W = jnp.stack([w, 2 * w, w + 1])
out = {"devices": len(jax.devices())}

def same(got, wanted):
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
    return all(bool(jnp.allclose(u, v, rtol=1e-11, atol=1e-12)) for u, v in pairs)

def rows(k):
    return lambda X, w, a: jax.vmap(jax.value_and_grad(k, (0, 1, 2)), (0, None, None))(X, w, a)

def total(k, check):
    local = lambda X, w, a: jax.lax.psum(jax.vmap(k, (0, None, None))(X, w, a).sum(), "i")
    return jax.shard_map(local, mesh=mesh, in_specs=(P("i"), P(), P()), out_specs=P(), check_vma=check)

for check in (True, False):
    got, wanted = (jax.jit(jax.shard_map(rows(k), mesh=mesh, in_specs=(P("i"), P(), P()), out_specs=P("i"),
                                         check_vma=check))(X, w, a) for k in (kernel, reference))
    out[f"shard_map {check}"] = same(got, wanted)
got, wanted = (jax.jit(jax.grad(total(k, True), (0, 1, 2)))(X, w, a) for k in (kernel, reference))
out["grad of psum"] = same(got, wanted)

def nested(first, second):
    grad = lambda k: jax.grad(k, (0, 1))
    return lambda k: jax.vmap(jax.vmap(grad(k), first), second)

XX = jax.device_put(X, NamedSharding(mesh, P("i")))
for name, h, args in (
    ("shared operands", rows, (XX, w, a)),
    ("two axes", nested((None, 0, None), (0, None, None)), (XX, W, a)),
    ("second axis sharded", nested((0, None, None), (None, 0, None)), (XX, W, a)),
    ("scalars", lambda k: jax.vmap(jax.value_and_grad(square if k is kernel else lambda x: x * x)), (XX[:, 0],)),
    ("a sharded core", lambda k: jax.vmap(jax.grad(k), (1, None, None)), (XX, jnp.ones(8), a)),
):
    run = jax.jit(h(kernel))
    out[name] = same(run(*args), h(reference)(*args))
    out[name + ": all-gather"] = "all-gather" in run.lower(*args).compile().as_text()
print(json.dumps(out))
"""
RIGHT = ["shard_map True", "shard_map False", "grad of psum", "shared operands", "two axes", "second axis sharded",
         "scalars"]


@cache
def _results() -> dict[str, object]:
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


@pytest.mark.long
@pytest.mark.xdist_group("sharding")
@pytest.mark.parametrize("name", [*RIGHT, "a sharded core"])
def test_results_are_right(name: str) -> None:
    assert _results()["devices"] == 4
    assert _results()[name] is True


@pytest.mark.long
@pytest.mark.xdist_group("sharding")
@pytest.mark.parametrize("name", ["shared operands", "two axes", "scalars"])
def test_a_sharded_batch_is_not_gathered(name: str) -> None:
    assert _results()[name + ": all-gather"] is False
