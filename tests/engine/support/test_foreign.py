"""Bridges are found by the values, without importing anything."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from irgrad.engine.support.foreign import bridge_for


def test_numpy_and_python_values_have_no_bridge() -> None:
    assert bridge_for([1, 2.0, [1], np.ones(2), np.float64(1), "text", None]) is None


def test_jax_values_have_one() -> None:
    import jax.numpy as jnp

    assert bridge_for([np.ones(2), jnp.ones(2)]) is not None


def test_calling_a_kernel_does_not_import_jax() -> None:
    code = ("import irgrad, sys; k = irgrad.load('double f(double x) { return x; }').kernel('f'); k(1.0); "
            "assert 'jax' not in sys.modules")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
