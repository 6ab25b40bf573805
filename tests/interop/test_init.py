"""The packages of the top floor come by their names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import irgrad
from irgrad import interop


def test_the_bridge_is_imported_when_it_is_asked_for() -> None:
    """In a process that has called no kernel, as one that only deserializes."""
    code = (
        "import sys; from irgrad import interop; before = 'jax' in sys.modules; "
        "interop.jax.deserialize; interop.loaders.load; print(before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"'irgrad\.interop' has no attribute 'numpy'"):
        interop.numpy  # noqa: B018
    assert {"jax", "loaders"} <= set(dir(interop))


def test_what_the_engine_has_is_at_the_top_as_well() -> None:
    assert set(irgrad.engine.__all__) <= set(irgrad.__all__)
    assert irgrad.grad is irgrad.engine.grad
    assert irgrad.check is irgrad.engine.check
