"""Bridges are found by the values, without importing anything."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from irgrad.engine.support.foreign import BRIDGES, bridge_for, bridge_function
from irgrad.rules.errors import Unsupported


def test_numpy_and_python_values_have_no_bridge() -> None:
    assert bridge_for([1, 2.0, [1], np.ones(2), np.float64(1), "text", None]) is None


def test_jax_values_have_one() -> None:
    import jax.numpy as jnp

    assert bridge_for([np.ones(2), jnp.ones(2)]) is not None


def test_calling_a_kernel_does_not_import_jax() -> None:
    code = ("import irgrad, sys; k = irgrad.load('double f(double x) { return x; }').kernel('f'); k(1.0); "
            "assert 'jax' not in sys.modules")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_library_without_the_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        pass

    bridge = SimpleNamespace(owns=lambda value: isinstance(value, Tensor), call=max)
    monkeypatch.setitem(BRIDGES, "math", lambda: bridge)
    assert bridge_function([1.0, np.ones(2)], "broadcast") is None
    assert bridge_function([1.0, Tensor()], "call") is max
    with pytest.raises(Unsupported, match="`broadcast` does not take values of math"):
        bridge_function([Tensor()], "broadcast")
