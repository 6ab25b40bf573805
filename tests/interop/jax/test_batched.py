"""Calls with batch axes: rows, samples, shared operands, lanes and loops, against single calls."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

from irgrad.engine.batches.unit import block_ir, strategy_of
from irgrad.engine.codegen.llvm import parse
from irgrad.interop.jax.batched import batch_strategy, batched_layout, batched_text, uses_of
from irgrad.interop.programs.algebra import Spec, operand_numbers, program_of, result_numbers

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("n", [1, 9, 130])
def test_rows_and_samples(n: int) -> None:
    """Two batch axes; each operand varies along one of them, both or none."""
    kernel = sample("product")
    x, y = RNG.normal(size=3), RNG.normal(size=n)
    wanted = x[:, None] * np.sin(y)
    outer = jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))
    np.testing.assert_allclose(jax.jit(outer)(x, y), wanted, rtol=1e-13)
    inner = jax.vmap(jax.vmap(kernel, (0, None)), (None, 0))
    np.testing.assert_allclose(jax.jit(inner)(x, y), wanted.T, rtol=1e-13)
    both = jax.vmap(jax.vmap(jax.grad(kernel, (0, 1)), (0, None)), (0, 0))
    dx, dy = jax.jit(both)(np.broadcast_to(x, (n, 3)), y)
    np.testing.assert_allclose(dx, np.broadcast_to(np.sin(y)[:, None], (n, 3)), rtol=1e-13)
    np.testing.assert_allclose(dy, np.cos(y)[:, None] * x, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 20])
def test_arrays_and_shared_arrays(n: int) -> None:
    """Lanes and single samples give the same; the shared operand's gradient is summed by JAX."""
    kernel = sample("energy")
    pos, mass = RNG.normal(size=(n, 4, 3)), RNG.uniform(1, 2, size=4)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(kernel), (0, None)))(pos, mass)
    np.testing.assert_allclose(value, [kernel(p, mass) for p in pos], rtol=1e-12)
    total = jax.jit(jax.grad(lambda m: jax.vmap(kernel, (0, None))(jnp.asarray(pos), m).sum()))(mass)
    h = 1e-6
    for i in range(4):
        step = h * np.eye(4)[i]
        change = sum(kernel(p, mass + step) - kernel(p, mass - step) for p in pos) / (2 * h)
        assert total[i] == pytest.approx(change, rel=1e-6)
    for k in range(3):  # a common shift changes nothing
        np.testing.assert_allclose(slope[:, :, k].sum(1), 0, atol=1e-9)


def test_inout_and_integers() -> None:
    x = jnp.asarray(RNG.normal(size=(17, 3)))
    moved, squares = jax.jit(jax.vmap(sample("scale"), (0, None)))(x, 2.0)
    np.testing.assert_array_equal(moved, 2 * x)
    np.testing.assert_array_equal(squares, 4 * x * x)
    index = jnp.asarray(RNG.integers(0, 3, size=(17, 5)), jnp.int32)
    gathered = jax.jit(jax.vmap(jax.grad(sample("gather")), (None, 0)))(x[0], index)
    assert gathered.shape == (17, 3)
    np.testing.assert_allclose(gathered, np.stack([2 * x[0] * np.bincount(i, minlength=3) for i in index]), rtol=1e-13)


def _spec(name: str, shared: list[bool], n: int) -> tuple[Any, Any]:
    spec = Spec(sample(name), (0, 1), wanted=(sample(name).output_positions[0],))
    program = program_of(spec)
    constants = {2: n} if name == "cubes" else {}
    uses = uses_of(program, operand_numbers(spec), result_numbers(spec), tuple(constants), shared)
    sizes = {"n": n}
    strategy = batch_strategy(program, uses, sizes, 100)
    words = batched_layout(program, strategy, uses, sizes, operand_numbers(spec), result_numbers(spec), constants, 1)
    return (program, strategy, uses), words


def test_strategies_are_those_of_the_engine() -> None:
    (_, scalars, uses), words = _spec("product", [False, True], 1)
    assert scalars.name == "scalars" and uses == (("each", False), ("one", False), ("zero", True))
    assert words[:2] == (1, 3) and words[4] == scalars.lanes
    (_, lanes, uses), words = _spec("cubes", [False, True], 3)
    assert lanes.name == "lanes" and uses[2] == ("one", False) and words[-1] == 3
    assert _spec("cubes", [False, True], 100_000)[0][1].name == "loop"


def test_llvm_accepts_it() -> None:
    program = sample("product").primal
    uses = ("in each", "in each", "zero out")
    text = batched_text("h.x", block_ir(program, strategy_of(program, uses), uses))
    assert "h.x" in {f.name for f in parse(text).functions if not f.is_declaration}
