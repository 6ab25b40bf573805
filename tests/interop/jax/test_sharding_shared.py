"""Batches of which some arguments are shared, on four devices: nothing is gathered, whatever the order of the axes,
on meshes with automatic and with explicit axes. In a process of its own, since it needs four devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest

CODE = """
import json
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, irgrad
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

kernel = irgrad.load('''#include <math.h>
double f(const double *x, const double *w, double a, long n, long m) {
  double s = 0; for (long i = 0; i < m; i++) s += w[i] * sin(a * x[i % n]); return s; }''').kernel(
  "f", "f64(f64[n] x, f64[m] w, f64 a, i64 n, i64 m)")
reference = lambda x, w, a: jnp.sum(w * jnp.sin(a * x[jnp.arange(w.shape[0]) % x.shape[0]]))
out = {}
x, w, a = np.linspace(-1, 2, 40).reshape(8, 5), np.cos(np.arange(700.0)), np.float64(1.3)
grads = lambda k: jax.grad(k, (0, 1))
both = lambda first, second: lambda k: jax.vmap(jax.vmap(k, first), second)
X, W = (0, None, None), (None, 0, None)
CASES = {
    "large weights": (lambda k: jax.vmap(k, X), P("i"), x, w),
    "large weights, odd": (lambda k: jax.vmap(k, X), P(None), x[:7], w),
    "grad, large weights": (lambda k: jax.vmap(grads(k), X), P("i"), x, w),
    "shared axis in front": (both(X, W), P("i"), x, np.stack([w] * 6)),
    "grad, shared in front": (lambda k: both(X, W)(grads(k)), P("i"), x, np.stack([w] * 6)),
    "shared axis behind": (both(W, X), P("i"), x, np.stack([w] * 6)),
    "second of two": (both(X, (0, 0, None)), P(None, "i"), np.stack([x, x + 1, -x]), np.stack([w] * 3)),
    "hessian": (lambda k: jax.vmap(jax.hessian(k), X), P("i"), x, w),
    "jvp": (lambda k: lambda x, w, a: jax.vmap(lambda x: jax.jvp(lambda x: k(x, w, a), (x,), (x,)))(x), P("i"), x, w),
    "weights": (lambda k: jax.grad(lambda x, w, a: jax.vmap(k, X)(x, w, a).sum(), 1), P("i"), x, w),
}
for kind in ("Auto", "Explicit"):
    mesh = jax.make_mesh((4,), ("i",), axis_types=(getattr(AxisType, kind),))
    with jax.set_mesh(mesh):
        for name, (h, spec, *given) in CASES.items():
            put = lambda value, spec: jax.device_put(jnp.asarray(value), NamedSharding(mesh, spec))
            args = (put(given[0], spec), put(given[1], P()), put(a, P()))
            run = jax.jit(h(kernel))
            got, wanted = (jax.tree.map(np.asarray, g(*args)) for g in (run, h(reference)))
            pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
            right = all(u.shape == v.shape and np.allclose(u, v, rtol=1e-9, atol=1e-9) for u, v in pairs)
            out[f"{kind}: {name}"] = [right, "all-gather" in run.lower(*args).compile().as_text()]
        if kind == "Explicit":
            try:
                jax.jit(kernel)(put(x[0, :4], P("i")), put(w, P()), put(a, P()))
            except irgrad.ShapeError as error:
                out["a sharded sample"] = error.because
print(json.dumps(out))
"""
NAMES = ["large weights", "grad, large weights", "shared axis in front", "grad, shared in front", "shared axis behind",
         "second of two", "hessian", "jvp", "weights"]  # fmt: skip


@cache
def _results() -> dict[str, list[bool]]:
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=False,
                          timeout=600)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


@pytest.mark.long
@pytest.mark.xdist_group("sharding_shared")
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", [*NAMES, "large weights, odd"])
def test_results_are_right_and_nothing_is_gathered(name: str, kind: str) -> None:
    right, gathered = _results()[f"{kind}: {name}"]
    assert right
    assert not gathered


@pytest.mark.long
@pytest.mark.xdist_group("sharding_shared")
def test_a_sample_that_is_cut_is_refused_where_types_say_so() -> None:
    because = str(_results()["a sharded sample"])
    assert "axis 0 is sharded over 'i'" in because and "no axis of the batch" in because
