"""Trees and structs of arguments under JAX: functions of pytrees under every transformation, against pure JAX."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from samples import sample
from shares import fast

import irgrad

jax.config.update("jax_enable_x64", True)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Bodies:
    pos: Any
    mass: Any


SOURCE = r"""
#include <math.h>
struct body { double pos[3]; double mass; int kind; };
double energy(const struct body *b, long n) {
    double e = 0;
    for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) {
        double r = 0.01;
        for (int k = 0; k < 3; k++) { double d = b[i].pos[k] - b[j].pos[k]; r += d * d; }
        if (b[i].kind != 7) e -= b[i].mass * b[j].mass / sqrt(r);
    }
    return e;
}
void kick(struct body *b, double dt, int n) { for (int i = 0; i < n; i++) b[i].pos[0] += dt * b[i].mass * b[i].mass; }
"""
BODY = "struct body { f64[3] pos; f64 mass; i32 kind; };"
POS, MASS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3))), jnp.arange(1.0, 5.0)
KIND = jnp.array([0, 1, 7, 3], jnp.int32)


@cache
def kernel(name: str) -> Any:
    arguments = {"energy": "f64(body[n] bodies, i64 n)", "kick": "void(inout body[n] b, f64 dt, i32 n)"}[name]
    return irgrad.load(SOURCE).kernel(name, BODY + arguments)


def reference(floats: Any, kind: Any = KIND) -> Any:
    r = 0.01 + ((floats["pos"][:, None] - floats["pos"][None]) ** 2).sum(-1)
    pairs = jnp.outer(floats["mass"], floats["mass"]) / jnp.sqrt(r)
    return -(jnp.tril(pairs, -1) * (kind != 7)[:, None]).sum()


def ours(floats: Any, kind: Any = KIND) -> Any:
    return kernel("energy")({**floats, "kind": kind})


FLOATS = {"pos": POS, "mass": MASS}
MANY = {"pos": jnp.stack([POS, 2 * POS, POS + 1]), "mass": jnp.stack([MASS, MASS, 3 * MASS])}
TRANSFORMS: dict[str, Any] = {
    "value": lambda f: f(FLOATS),
    "jit": lambda f: jax.jit(f)(FLOATS),
    "grad": lambda f: jax.grad(f)(FLOATS),
    "jit(value_and_grad)": lambda f: jax.jit(jax.value_and_grad(f))(FLOATS),
    "hessian": lambda f: jax.jit(jax.hessian(f))(FLOATS),
    "vmap": lambda f: jax.vmap(f)(MANY),
    "vmap(grad)": lambda f: jax.jit(jax.vmap(jax.grad(f)))(MANY),
    "grad(vmap)": lambda f: jax.grad(lambda t: jax.vmap(f)(t).sum())(MANY),
    "in_axes": lambda f: jax.vmap(f, ({"pos": 0, "mass": None},))({"pos": MANY["pos"], "mass": MASS}),
    "jvp": lambda f: jax.jvp(f, (FLOATS,), (jax.tree.map(jnp.ones_like, FLOATS),)),
}


@pytest.mark.parametrize("name", fast(2, TRANSFORMS))
def test_structs_under_every_transformation(name: str) -> None:
    got, wanted = TRANSFORMS[name](ours), TRANSFORMS[name](reference)
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.long
def test_check_grads_of_structs() -> None:
    check_grads(ours, (FLOATS,), order=2)


def test_inout_structs_in_a_scan() -> None:
    def run(mass: Any) -> Any:
        def body(state: Any, _: None) -> Any:
            moved = kernel("kick")(state, 0.5)
            return moved, moved["pos"][:, 0].sum()

        return jax.lax.scan(body, {"pos": POS, "mass": mass, "kind": KIND}, None, length=3)

    state, sums = jax.jit(run)(MASS)
    np.testing.assert_allclose(state["pos"][:, 0], POS[:, 0] + 1.5 * MASS**2)
    assert state["kind"].dtype == jnp.int32 and sums.shape == (3,)
    np.testing.assert_allclose(jax.grad(lambda m: run(m)[1].sum())(MASS), 2 * MASS * 0.5 * 6)


def test_a_dataclass_that_jax_knows() -> None:
    f = sample("energy").tree(Bodies)
    gradient = jax.jit(jax.grad(f))(Bodies(POS, MASS))
    assert isinstance(gradient, Bodies)
    np.testing.assert_allclose(gradient.mass, jax.grad(sample("energy"), 1)(POS, MASS))
    rows = jax.vmap(f)(Bodies(MANY["pos"], MANY["mass"]))
    np.testing.assert_allclose(rows[1], sample("energy")(2 * POS, MASS))
    step = sample("scale").tree({"x": "x"}, "dt", returns={"x": "x", "o": ["o"]})
    out = jax.jit(step)({"x": MASS}, 2.0)
    np.testing.assert_array_equal(out["o"][0], (2 * MASS) ** 2)
