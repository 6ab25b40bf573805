"""Two processes of two devices each (`jax.distributed`, on the loopback interface): values and gradients on both."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

CODE = """
import sys, jax, numpy as np
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
rank, port = int(sys.argv[1]), sys.argv[2]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=rank)
import jax.numpy as jnp, irgrad
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

kernel = irgrad.load('''#include <math.h>
double f(const double *x, const double *w, long n) {
  double s = 0; for (long i = 0; i < n; i++) s += w[i] * sin(x[i]) * x[i]; return s; }''').kernel(
  "f", "f64(f64[n] x, f64[n] w, i64 n)")
mesh = Mesh(np.array(jax.devices()), ("i",))
X, w = np.linspace(-1, 2, 40).reshape(8, 5), np.arange(5.0) + 1
local = lambda X, w: jax.lax.psum(jax.vmap(kernel, (0, None))(X, w).sum(), "i")
total = jax.shard_map(local, mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
XX = jax.make_array_from_callback(X.shape, NamedSharding(mesh, P("i")), lambda at: X[at])
ww = jax.make_array_from_callback(w.shape, NamedSharding(mesh, P()), lambda at: w[at])
value, (dx, dw) = jax.jit(jax.value_and_grad(total, (0, 1)))(XX, ww)
ok = len(jax.devices()) == 4 and len(jax.local_devices()) == 2
ok &= bool(np.allclose(value.addressable_data(0), (w * np.sin(X) * X).sum(), rtol=1e-12))
for shard in dx.addressable_shards:
    ok &= bool(np.allclose(shard.data, (w * (np.cos(X) * X + np.sin(X)))[shard.index], rtol=1e-11, atol=1e-12))
ok &= bool(np.allclose(dw.addressable_data(0), (np.sin(X) * X).sum(0), rtol=1e-11))
print("right" if ok else "wrong", flush=True)
"""


def test_both_ranks_have_the_right_gradient() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    ranks = [
        subprocess.Popen([sys.executable, "-c", CODE, str(rank), port], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(2)
    ]  # fmt: skip
    try:
        results = [rank.communicate(timeout=300) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    told = "\n".join(error[-2000:] for _, error in results)
    assert [out.split()[-1:] for out, _ in results] == [["right"], ["right"]], told
