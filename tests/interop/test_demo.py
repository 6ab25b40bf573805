"""The demo runs, and its checks pass."""

from __future__ import annotations

import pytest

from irgrad.interop.demo import run_demo


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(bodies=8, batch=3)
    out = capsys.readouterr().out
    for part in ("its gradient", "times one energy", "the derivatives agree", "jax.jit(jax.grad(energy))"):
        assert part in out
