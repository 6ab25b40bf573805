"""JAX's persistent compilation cache: a second process finds the compiled program and the kernel behind its target."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, irgrad
from jax import monitoring  # what JAX itself says of its cache
hits = []
monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
kernel = irgrad.load("double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i]; "
                     "return s; }").kernel("f", "f64(f64[n] x, i64 n)")
value, gradient = jax.jit(jax.value_and_grad(kernel))(jnp.arange(4.0))
print(float(value), gradient.tolist(), len(hits))
"""


@pytest.mark.long
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "IRGRAD_CACHE_DIR": str(tmp_path / "irgrad"),
    }
    command = [sys.executable, "-c", CODE]
    told = []
    for _ in range(2):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        told.append(done.stdout.split())
    assert told[0][:-1] == told[1][:-1] == ["14.0", "[0.0,", "2.0,", "4.0,", "6.0]"]
    assert int(told[0][-1]) < int(told[1][-1])
