"""The tape as an array: how often the primal runs, and every composition that carries it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec
from jax.test_util import check_grads
from shares import fast

import irgrad
from irgrad.interop.jax import deserialize, export, serialize

jax.config.update("jax_enable_x64", True)

SOURCE = """
#include <math.h>
void chain(const double *x, const double *p, double *y, long n) {
  double s = p[0];
  for (long i = 0; i < n; i++) { s = sin(s * x[i]) + p[1] * x[i]; y[i] = s; }
}
void flow(double *x, double h, long n, long steps) {
  for (long k = 0; k < steps; k++)
    for (long i = 1; i < n; i++) x[i] += h * sin(x[i - 1] * x[i]);
}
void newton(const double *x, double *y, long n) {
  for (long i = 0; i < n; i++) {
    double s = x[i];
    while (fabs(s * s - x[i]) > 1e-13 * x[i]) s = 0.5 * (s + x[i] / s);
    y[i] = s;
  }
}
"""
LIBRARY = irgrad.load(SOURCE)
CHAIN = LIBRARY.kernel("chain", "void(f64[n] x, f64[2] p, out f64[n] y, i64 n)")
FLOW = LIBRARY.kernel("flow", "void(inout f64[n] x, f64 h, i64 n, i64 steps)")
NEWTON = LIBRARY.kernel("newton", "void(f64[n] x, out f64[n] y, i64 n)")
X, P = jnp.linspace(0.1, 1.2, 5), jnp.array([0.3, 0.9])
W = jnp.cos(jnp.arange(5.0))
XS, WS = jnp.stack([X, 2 * X, X - 1]), jnp.stack([W, W * W, -W])


def chain(x: Any, p: Any) -> Any:
    def step(s: Any, v: Any) -> tuple[Any, Any]:
        s = jnp.sin(s * v) + p[1] * v
        return s, s

    return jax.lax.scan(step, p[0], x)[1]


def flow(x: Any, h: Any, steps: int = 3) -> Any:
    for _ in range(steps):
        rows = [x[0]]
        for i in range(1, x.shape[0]):
            rows.append(x[i] + h * jnp.sin(rows[-1] * x[i]))
        x = jnp.stack(rows)
    return x


FILL, USE = "forward_with_tape", "reverse_from_tape"


def _programs(f: Callable[..., Any], *args: Any) -> Counter[str]:
    """The calls that are left when XLA has compiled `f`, by what they compute."""
    lowered = jax.jit(f).lower(*args)
    compiled = lowered.compile().as_text()
    assert compiled is not None
    names = re.findall(r'custom_call_target="(irgrad\.[\w.]+)"', compiled)
    from irgrad.interop.jax.handler import TARGETS

    return Counter(_kind(TARGETS[name].text) for name in names)


def _kind(text: str) -> str:
    """Which derivative a module computes, "primal" for none."""
    called = re.findall(r"call void @(\w+)\.normal(?:\.([a-z_]+)[\w.]*)?\(", text)
    return called[-1][1].rstrip("_") or "primal"


def _loss_of_scan(k: Any, x: Any, p: Any) -> Any:
    return jax.lax.scan(lambda c, _: (k(c, p) * 0.3, c.sum()), x, None, length=6)[0].sum()


def _three(k: Any, x: Any, p: Any) -> Any:
    y, pull = jax.vjp(k, x, p)
    return y, pull(y), pull(2 * y), pull(y * y)


def _value_and_jacobian(k: Any, x: Any, p: Any) -> Any:
    y, pull = jax.vjp(k, x, p)
    return y, jax.vmap(pull)(jnp.eye(5))


def _saved(k: Any, x: Any, p: Any, policy: Any) -> Any:
    return jax.value_and_grad(lambda x: jax.checkpoint(lambda y: k(k(y, p), p), policy=policy)(x).sum())(x)


SAVE, DROP = jax.checkpoint_policies.everything_saveable, jax.checkpoint_policies.nothing_saveable
COUNTED: dict[str, tuple[Callable[[Any, Any, Any], Any], dict[str, int]]] = {
    "value and three pullbacks": (_three, {FILL: 1, USE: 3}),
    "reverse over scan": (lambda k, x, p: jax.value_and_grad(_loss_of_scan, (1, 2))(k, x, p), {FILL: 1, USE: 1}),
    "value and Jacobian": (lambda k, x, p: _value_and_jacobian(k, x, p), {FILL: 1, USE: 1}),
    "Jacobian alone": (lambda k, x, p: jax.jacrev(k, (0, 1))(x, p), {"pullback": 1}),
    "gradient alone": (lambda k, x, p: jax.grad(lambda x: k(x, p)[-1])(x), {"pullback": 1}),
    "value and gradient": (lambda k, x, p: jax.value_and_grad(lambda x: (k(x, p) ** 2).sum())(x), {FILL: 1, USE: 1}),
    "value and linear part": (lambda k, x, p: jax.linearize(lambda x: k(x, p), x)[1](W), {"jvp_only": 1}),
    "checkpoint, saved": (lambda k, x, p: _saved(k, x, p, SAVE), {FILL: 2, USE: 2}),
    # twice forwards; then the first call again with a tape, and the second, whose value nobody reads, in one piece
    "checkpoint, dropped": (lambda k, x, p: _saved(k, x, p, DROP), {"primal": 2, FILL: 1, "pullback": 1, USE: 1}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_primal_runs_once(name: str) -> None:
    composition, wanted = COUNTED[name]
    got, reference = (jax.tree.leaves(composition(k, X, P)) for k in (CHAIN, chain))
    jitted = jax.tree.leaves(jax.jit(lambda x, p: composition(CHAIN, x, p))(X, P))
    for a, b, c in zip(got, reference, jitted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(c, b, rtol=1e-10, atol=1e-12)
    assert _programs(lambda x, p: composition(CHAIN, x, p), X, P) == wanted


COMPOSED: dict[str, Callable[[Any], Any]] = {
    "vmap of a pullback": lambda k: jax.vmap(jax.vjp(k, X, P)[1])(WS),
    "vmap of vjp": lambda k: jax.vmap(lambda x, w: jax.vjp(k, x, P)[1](w))(XS, WS),
    "vmap of jit of vjp": lambda k: jax.vmap(jax.jit(lambda x, w: jax.vjp(k, x, P)[1](w)))(XS, WS),
    "vmap of vmap": lambda k: jax.vmap(jax.jit(lambda x: jax.vmap(jax.vjp(k, x, P)[1])(WS)))(XS),
    "vmap of scan": lambda k: jax.vmap(lambda x: jax.grad(_loss_of_scan, 1)(k, x, P))(XS),
    "hvp": lambda k: jax.jvp(jax.grad(lambda x: (k(x, P) ** 2).sum()), (X,), (W,)),
    "reverse over reverse": lambda k: jax.grad(lambda x: (jax.grad(lambda x: (k(x, P) ** 2).sum())(x) ** 2).sum())(X),
    "hessian": lambda k: jax.hessian(lambda x, p: (k(x, p) ** 2).sum(), (0, 1))(X, P),
    "transposed twice": lambda k: jax.linear_transpose(lambda w: jax.vjp(k, X, P)[1](w), W)((X, P)),
    "only some outputs": lambda k: jax.jacrev(lambda x: k(x, P)[1:3])(X),
    "cond": lambda k: jax.grad(lambda x: jax.lax.cond(x[0] > 0, lambda x: k(x, P), lambda x: x, x).sum())(X),
    "custom_vjp": lambda k: jax.grad(lambda x: _own_rule(k)(x).sum())(X),
}


def _own_rule(k: Any) -> Any:
    f = jax.custom_vjp(lambda x: k(x, P))
    f.defvjp(lambda x: jax.vjp(lambda x: k(x, P), x), lambda pull, w: pull(w))
    return f


@pytest.mark.parametrize("choice", fast(0, ["store", "auto"]))
def test_compositions(choice: str) -> None:
    kernel = LIBRARY.kernel("chain", CHAIN.signature, tape=choice)
    for name, composition in COMPOSED.items():
        got, wanted = (jax.tree.leaves(jax.jit(lambda k=k, f=composition: f(k))()) for k in (kernel, chain))
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, err_msg=name)


def test_samples_have_a_tape_each() -> None:
    kernel = LIBRARY.kernel("chain", CHAIN.signature, tape="store")
    f = lambda x, w: jax.vmap(jax.jit(lambda x, w: _first(kernel, x, w)))(x, w)  # noqa: E731
    assert _programs(f, XS, WS) == {FILL: 1, USE: 1}


def _first(k: Any, x: Any, w: Any) -> Any:
    y, pull = jax.vjp(lambda x: k(x, P), x)
    return y, pull(w)


def test_inout_arguments_and_donation() -> None:
    def loss(k: Any, x: Any) -> Any:
        return (k(x) ** 2).sum()

    kernel = lambda x: FLOW(x, 0.1, steps=3)  # noqa: E731
    wanted = jax.value_and_grad(lambda x: loss(lambda x: flow(x, 0.1), x))(X)
    got = jax.jit(jax.value_and_grad(lambda x: loss(kernel, x)), donate_argnums=0)(X + 0.0)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert _programs(jax.value_and_grad(lambda x: loss(kernel, x)), X) == {FILL: 1, USE: 1}


def test_loops_that_cannot_be_counted_run_again() -> None:
    def both(x: Any) -> Any:
        y, pull = jax.vjp(NEWTON, x)
        return y, pull(y)

    value, (gradient,) = jax.jit(both)(X)
    np.testing.assert_allclose(value, jnp.sqrt(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, 0.5 * jnp.ones(5), rtol=1e-9)
    assert _programs(both, X) == {"primal": 1, "pullback": 1}


def test_traced_sizes_run_again() -> None:
    """A number of steps that is only known at run time leaves the size of the tape open."""
    f = lambda x, steps: jax.value_and_grad(lambda x: (FLOW(x, 0.1, steps=steps) ** 2).sum())(x)  # noqa: E731
    for a, b in zip(jax.jit(f)(X, 3), jax.value_and_grad(lambda x: (flow(x, 0.1) ** 2).sum())(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert _programs(f, X, 3) == {"primal": 1, "pullback": 1}


@pytest.mark.parametrize("check", [True, False])
def test_shard_map(check: bool) -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))

    def total(x: Any) -> Any:
        part = jax.shard_map(lambda x: CHAIN(x[0], P)[None] ** 2, mesh=mesh, in_specs=PartitionSpec("i"),
                             out_specs=PartitionSpec("i"), check_vma=check)  # fmt: skip
        return part(x).sum()

    wanted = jax.value_and_grad(lambda x: (chain(x[0], P) ** 2).sum())(X[None])
    for a, b in zip(jax.jit(jax.value_and_grad(total))(X[None]), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_threads_have_tapes_of_their_own() -> None:
    f = jax.jit(lambda x: _three(CHAIN, x, P))
    rows = [X * (1 + 0.1 * k) for k in range(8)]
    wanted = [jax.tree.map(np.asarray, f(x)) for x in rows]

    def work(k: int) -> bool:
        got = (jax.tree.map(np.asarray, f(rows[k])) for _ in range(50))
        return all(jax.tree.all(jax.tree.map(np.array_equal, one, wanted[k])) for one in got)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8


def test_check_grads_and_export() -> None:
    check_grads(CHAIN, (X, P), order=2, atol=1e-5, rtol=1e-5)
    f = jax.jit(lambda x: jax.vmap(jax.jit(lambda x: _first(CHAIN, x, W)))(x))
    (n,) = jax.export.symbolic_shape("n")  # type: ignore[no-untyped-call]
    made = export(f)(jax.ShapeDtypeStruct((n, 5), jnp.float64))
    for a, b in zip(jax.tree.leaves(deserialize(serialize(made)).call(XS)), jax.tree.leaves(f(XS)), strict=True):
        np.testing.assert_array_equal(a, b)
