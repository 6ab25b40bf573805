"""Under JAX too, calls whose tape passes half of the free memory keep states in place of it, and say so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from steps import STEPS

import irgrad as ig
from irgrad.engine.differentiate.tape.long_tapes import WholeTape
from irgrad.engine.kernel.checkpoints import LongTape
from irgrad.interop.jax import tape_limit
from irgrad.interop.jax.exporting import deserialize, export, serialize

jax.config.update("jax_enable_x64", True)

SIGNATURE = "f64(f64[n] x, inout f64[n] y, i64 n, i64 steps)"
LONG, N = 20_000, 6
Kernel = Callable[..., Any]


def _library(number: int) -> ig.Library:
    """Of a program of its own: a handler is told its limit once in a process."""
    return ig.load(STEPS.replace("0.001", f"0.001{number}"))


def _gradient(kernel: Kernel) -> Kernel:
    return jax.grad(lambda x, y, steps: kernel(x, y, steps)[0], argnums=(0, 1))


def _pullback(kernel: Kernel) -> Kernel:
    return lambda x, y, steps: jax.vjp(lambda x, y: kernel(x, y, steps), x, y)[1]((1.0, y))


def _hessian(kernel: Kernel) -> Kernel:
    return jax.hessian(lambda x, y, steps: kernel(x, y, steps)[0])


def _batched(kernel: Kernel) -> Kernel:
    return jax.vmap(_gradient(kernel), in_axes=(0, None, None))


def _donated(kernel: Kernel) -> Kernel:
    call = jax.jit(_gradient(kernel), donate_argnums=(1,))
    return lambda x, y, steps: call(x, y + 0.0, steps)


WAYS = {
    "grad": _gradient, "jit(grad)": lambda kernel: jax.jit(_gradient(kernel)), "donated": _donated,
    "vjp": lambda kernel: jax.jit(_pullback(kernel)), "hessian": lambda kernel: jax.jit(_hessian(kernel)),
    "vmap": lambda kernel: jax.jit(_batched(kernel)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [None, 2])
def test_a_long_tape_becomes_states(way: str, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_limit, "free_memory", lambda: 1 << 20)
    library, rng = _library(10 + 2 * list(WAYS).index(way) + (threads is None)), np.random.default_rng(0)
    x = jax.numpy.asarray(rng.uniform(0.1, 0.9, (9, N) if way == "vmap" else N))
    y = jax.numpy.asarray(rng.uniform(0.1, 0.9, N))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = WAYS[way](library.kernel("f", SIGNATURE, tape_memory=None, threads=threads))
        bounded = WAYS[way](library.kernel("f", SIGNATURE, threads=threads))
    for steps, told in ((5, False), (LONG, True), (LONG, False), (7, False), (LONG, False)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            right, now = jax.block_until_ready((plain(x, y, steps), bounded(x, y, steps)))
        for a, b in zip(jax.tree.leaves(right), jax.tree.leaves(now), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-13)
        words = [str(one.message) for one in found if issubclass(one.category, LongTape)]
        assert len(words) == told and all("its loops keep states" in word for word in words)


def test_lanes_say_that_they_keep_their_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_limit, "free_memory", lambda: 1 << 20)
    x = np.linspace(0.1, 0.9, (40 * N)).reshape(40, N)
    plain, bounded = (jax.jit(_batched(_library(53).kernel("f", SIGNATURE, tape_memory=how))) for how in (None, "auto"))
    with pytest.warns(WholeTape, match="samples of a batch of `f` run as lanes of vectors under JAX"):
        found = jax.block_until_ready(bounded(x, x[0], LONG))
    assert all(map(np.array_equal, found, plain(x, x[0], LONG)))


def test_calls_are_remembered_by_their_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short call keeps its tape when a long one has not: to the bit what it was."""
    monkeypatch.setattr(tape_limit, "free_memory", lambda: 1 << 20)
    call = jax.jit(_gradient(_library(50).kernel("f", SIGNATURE)))
    x, y = np.linspace(0.1, 0.9, N), np.linspace(0.9, 0.2, N)
    before = [np.asarray(row) for row in call(x, y, 9)]
    with pytest.warns(LongTape):
        jax.block_until_ready(call(x, y, LONG))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for steps in (9, LONG, LONG + 1, 9):
            found = jax.block_until_ready(call(x, y, steps))
    assert all(map(np.array_equal, before, found))


def test_an_error_of_python_is_an_error_of_the_call(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tape_limit, "free_memory", lambda: 1 << 20)
    call = jax.jit(_gradient(_library(51).kernel("f", SIGNATURE)))
    x = np.linspace(0.1, 0.9, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LongTape)
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="there is no memory for the tape of `f`"):
            jax.block_until_ready(call(x, x, LONG))
    assert "with states in place of its tape" in capfd.readouterr().err
    np.testing.assert_allclose(call(x, x, 5)[0], jax.jit(_gradient(
        _library(51).kernel("f", SIGNATURE, tape_memory=None)))(x, x, 5)[0], rtol=1e-14)


@pytest.mark.long
def test_exported_programs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_limit, "free_memory", lambda: 1 << 20)
    call = jax.jit(_gradient(_library(52).kernel("f", SIGNATURE)))
    x = np.linspace(0.1, 0.9, N)
    again = deserialize(serialize(export(call)(x, x, 5)))
    for a, b in zip(again.call(x, x, 5), call(x, x, 5), strict=True):
        assert np.array_equal(a, b)
