"""Exported programs run in a process that has never seen the kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad
from irgrad.interop.jax import deserialize, export, serialize

jax.config.update("jax_enable_x64", True)

SOURCE = """
#include <math.h>
double waves(const double *x, double a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += sin(a * x[i]);
  return s;
}
"""
READ = """
import sys, jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from irgrad.interop.jax import deserialize
program = deserialize(open(sys.argv[1], "rb").read())
x = jnp.arange(8.0).reshape(2, 4)
value, gradient = program.call(x, 1.5)
second = jax.grad(lambda x: program.call(x, 1.5)[1].sum())(x)
print(bool(jnp.allclose(value, jnp.sin(1.5 * x).sum(1), atol=1e-12)),
      bool(jnp.allclose(gradient, 1.5 * jnp.cos(1.5 * x), atol=1e-12)),
      bool(jnp.allclose(second, -2.25 * jnp.sin(1.5 * x), atol=1e-12)))
"""


def test_another_process_with_an_open_batch_size(tmp_path: Path) -> None:
    kernel = irgrad.load(SOURCE).kernel("waves", "f64(f64[n] x, f64 a, i64 n)")
    (size,) = jax.export.symbolic_shape("b")
    batched = jax.jit(jax.vmap(jax.value_and_grad(kernel), (0, None)))
    program = export(batched)(jax.ShapeDtypeStruct((size, 4), jnp.float64), 1.5)
    x = jnp.ones((3, 4))
    np.testing.assert_allclose(program.call(x, 1.5)[1], 1.5 * np.cos(1.5) * np.ones((3, 4)), rtol=1e-12)
    path = tmp_path / "program"
    path.write_bytes(serialize(program, vjp_order=1))
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == ["True"] * 3, done.stderr


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(irgrad.LoadError, match="no exported program"):
        deserialize(b"PK nothing")
