"""The adapter for hijax primitives: the same results as pure JAX under every transformation, where JAX has them."""

from __future__ import annotations

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from samples import sample

import irgrad
from irgrad.interop.jax import hijax

jax.config.update("jax_enable_x64", True)

AVAILABLE = hasattr(importlib.import_module("jax.experimental.hijax"), "HiPrim")
needed = pytest.mark.skipif(not AVAILABLE, reason="hijax primitives came with jax 0.11")

POS, MASS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3))), jnp.arange(1.0, 5.0)
MANY = jnp.stack([POS, 2 * POS, POS + 1])
BATCH = (0, None)


def reference(pos: Any, mass: Any) -> Any:
    r = 0.01 + ((pos[:, None] - pos[None]) ** 2).sum(-1)
    return -jnp.tril(jnp.outer(mass, mass) / jnp.sqrt(r), -1).sum()


def scanned(f: Any) -> Any:
    def body(x: Any, _: None) -> Any:
        return x + 0.1 * jnp.sin(f(x, MASS)), f(x, MASS)

    return jax.grad(lambda x: jax.lax.scan(body, x, None, length=3)[1].sum())(POS)


TRANSFORMS: dict[str, Any] = {
    "eager": lambda f: f(POS, MASS),
    "jit": lambda f: jax.jit(f)(POS, MASS),
    "grad": lambda f: jax.grad(f, (0, 1))(POS, MASS),
    "jit(value_and_grad)": lambda f: jax.jit(jax.value_and_grad(f))(POS, MASS),
    "jvp": lambda f: jax.jvp(f, (POS, MASS), (POS, MASS)),
    "linearize": lambda f: jax.linearize(f, POS, MASS)[1](POS, MASS),
    "jacfwd": lambda f: jax.jacfwd(f)(POS, MASS),
    "jacrev": lambda f: jax.jacrev(f)(POS, MASS),
    "hessian": lambda f: jax.hessian(f)(POS, MASS),
    "jacrev(jacrev)": lambda f: jax.jacrev(jax.jacrev(f))(POS, MASS),
    "third derivative": lambda f: jax.jacfwd(jax.hessian(f))(POS, MASS),
    "vmap": lambda f: jax.vmap(f, BATCH)(MANY, MASS),
    "vmap(grad)": lambda f: jax.jit(jax.vmap(jax.grad(f), BATCH))(MANY, MASS),
    "grad(vmap)": lambda f: jax.grad(lambda x: jax.vmap(f, BATCH)(x, MASS).sum())(MANY),
    "vmap(hessian)": lambda f: jax.vmap(jax.hessian(f), BATCH)(MANY, MASS),
    "grad(scan)": scanned,
    "fori_loop": lambda f: jax.lax.fori_loop(0, 3, lambda _, x: 0.5 * x + f(x, MASS), POS),
    "grad(cond)": lambda f: jax.grad(lambda x: jax.lax.cond(x[0, 0] > 0, f, lambda x, m: 2 * f(x, m), x, MASS))(POS),
    "grad(checkpoint)": lambda f: jax.grad(jax.checkpoint(f))(POS, MASS),
}


@needed
@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transformation(name: str) -> None:
    with hijax():
        got = TRANSFORMS[name](lambda pos, mass: sample("energy")(pos, mass))
    wanted = TRANSFORMS[name](reference)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@needed
def test_several_outputs_inout_and_integers() -> None:
    x, index = jnp.array([0.5, 1.0, 2.0]), jnp.array([1, 1, 2], jnp.int32)
    with hijax():
        check_grads(sample("two"), (x,), order=2)
        check_grads(lambda x, dt: sample("scale")(x, dt), (x, 1.5), order=2)
        check_grads(lambda x: sample("gather")(x, index), (x,), order=2)
        assert sample("count")(x) == 3


@needed
def test_values_are_computed_once_and_dead_code_is_gone() -> None:
    with hijax():
        text = str(jax.make_jaxpr(jax.value_and_grad(sample("energy")))(POS, MASS))
        assert text.count("ForeignCall[") == 1 and "G0+values" in text and "foreign_call" not in text
        dead = jax.make_jaxpr(lambda x: sample("two")(x)[0])(jnp.ones(3))
    compiled = jax.jit(lambda x: sample("two")(x)[0]).lower(jnp.ones(3)).as_text()
    assert len(dead.eqns) >= 1 and compiled.count("irgrad.two") == 1


@pytest.mark.skipif(AVAILABLE, reason="this JAX has hijax primitives")
def test_a_jax_without_them_is_named() -> None:
    with pytest.raises(irgrad.Unsupported, match="this JAX has no hijax primitives") as caught, hijax():
        raise AssertionError("not reached")
    assert jax.__version__ in caught.value.which and "0.11" in caught.value.fix
