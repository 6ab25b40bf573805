"""The tables of kernels under JAX: everything is right at reduced sizes, and a wrong result has no time."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from benchmarks import jax_bridge

pytestmark = pytest.mark.long


def test_calls_and_threads_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert jax_bridge.main(["calls", "threads", "--quick"]) == 0
    text = capsys.readouterr().out
    assert text.count(" us") == 15 and "0 wrong" in text


@pytest.mark.parametrize("name", ["ba", "rk4"])
def test_gradients_are_right(name: str) -> None:
    (case,) = (c for c in jax_bridge.select([name]) if c.name == name)
    ours, theirs = jax_bridge.both(case, quick=True)
    assert jax_bridge._same(ours(), theirs())


def test_a_wrong_result_has_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert not jax_bridge._report("one", lambda: jnp.ones(2), lambda: jnp.ones(2) + 1e-6, 0.0)
    assert "WRONG" in capsys.readouterr().out


def test_unknown_tables(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        jax_bridge.main(["call"])
    assert "no such table: call" in capsys.readouterr().err
