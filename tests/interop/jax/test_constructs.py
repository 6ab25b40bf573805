"""Parallel constructs under JAX, against jnp and `jax.lax.associative_scan`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad as ig

jax.config.update("jax_enable_x64", True)
LIB = ig.load(r"""
#include <math.h>
double add(double a, double b) { return a + b; }
double mul(double a, double b) { return a * b; }
double largest(double a, double b) { return a > b ? a : b; }
float addf(float a, float b) { return a + b; }
void linear(double a0, double b0, double a1, double b1, double *a, double *b) { *a = a0 * a1; *b = b0 * a1 + b1; }
void product(const double *a, const double *b, double *c) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++) c[2 * i + j] += a[2 * i + k] * b[2 * k + j];
}
double wave(double x, double a) { return sin(a * x); }
""")
P = ig.parallel
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(2, 7))
M = RNG.normal(size=(7, 2, 2))
AT = RNG.integers(0, 4, size=7)
LINEAR = LIB.kernel("linear", "void(f64 a0, f64 b0, f64 a1, f64 b1, out f64 a, out f64 b)")
PRODUCT = LIB.kernel("product", "void(f64[2,2] a, f64[2,2] b, out f64[2,2] c)")
ADD, MUL, LARGEST = (LIB.kernel(name) for name in ("add", "mul", "largest"))


def _composed(a: Any, b: Any) -> Any:
    return a[0] * b[0], a[1] * b[0] + b[1]


def _scanned(function: Any, **options: Any) -> Any:
    return lambda *x: jax.lax.associative_scan(function, x if len(x) > 1 else x[0], **options)


def _last(function: Any) -> Any:
    return lambda *x: jax.tree.map(lambda row: row[-1], _scanned(function)(*x))


CASES: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "sum": (P.reduce(ADD, 0.0), jnp.sum, (X,)),
    "product": (P.reduce(MUL, 1.0), jnp.prod, (X,)),
    "largest": (P.reduce(LARGEST, -np.inf), jnp.max, (X,)),
    "linear": (P.reduce(LINEAR, (1.0, 0.0)), _last(_composed), (X, Y)),
    "matrices": (P.reduce(PRODUCT, np.eye(2)), _last(jnp.matmul), (M,)),
    "sums": (P.scan(ADD), jnp.cumsum, (X,)),
    "products": (P.scan(MUL), jnp.cumprod, (X,)),
    "linears": (P.scan(LINEAR), _scanned(_composed), (X, Y)),
    "all matrices": (P.scan(PRODUCT), _scanned(jnp.matmul), (M,)),
    "back": (P.scan(PRODUCT, reverse=True), _scanned(jnp.matmul, reverse=True), (M,)),
    "bins": (P.histogram(ADD, 0.0, 4), lambda at, x: jnp.zeros(4).at[at].add(x), (AT, X)),
    "bins of products": (P.histogram(MUL, 1.0, 4),
                         lambda at, x: jnp.stack([jnp.prod(jnp.where(at == b, x, 1.0)) for b in range(4)]), (AT, X)),
    "bins of maxima": (P.histogram(LARGEST, -9.0, 4), lambda at, x: jnp.full(4, -9.0).at[at].max(x), (AT, X)),
    "scatter": (P.scatter(), lambda t, at, x: t.at[at].set(x), (np.zeros(40), RNG.permutation(40)[:7], X)),
    "map": (P.map(LIB.kernel("wave"), in_axes=(0, None)), lambda x, a: jnp.sin(a * x), (X, 0.7)),
}
SOME = ("bins", "map")
TWICE = ("product", "linears", "all matrices", "bins of products", "map")
"""Cases whose second derivatives are compared: JAX compiles those of `associative_scan` for many seconds."""


def _floats(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(i for i, value in enumerate(arguments) if np.asarray(value).dtype.kind == "f")


def _energy(function: Any) -> Any:
    """One number of all results: weights and squares, so that second derivatives are not zero."""
    def whole(*arguments: Any) -> Any:
        rows = jax.tree.leaves(function(*arguments))
        return sum((jnp.cos(jnp.arange(row.size)).reshape(row.shape) * (row + row * row / 3)).sum() for row in rows)

    return whole


def _close(got: Any, want: Any) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in SOME else pytest.mark.long) for name in CASES])  # fmt: skip
def test_values_and_derivatives(name: str) -> None:
    ours, theirs, arguments = CASES[name]
    given = tuple(map(jnp.asarray, arguments))
    argnums = _floats(arguments)
    _close(jax.jit(ours)(*given), theirs(*given))
    _close(jax.jit(jax.grad(_energy(ours), argnums))(*given), jax.grad(_energy(theirs), argnums)(*given))
    along = tuple(np.ones_like(v) if i in argnums else np.zeros(np.shape(v), jax.dtypes.float0)
                  for i, v in enumerate(arguments))  # fmt: skip
    _close(jax.jvp(ours, given, along), jax.jvp(theirs, given, along))


@pytest.mark.long
@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_and_batches(name: str) -> None:
    ours, theirs, arguments = CASES[name]
    first = _floats(arguments)[0]
    hessians = [jax.jit(jax.jacfwd(jax.grad(_energy(f), first), first))(*map(jnp.asarray, arguments))
                for f in (ours, theirs)]  # fmt: skip
    _close(*hessians)
    axes = tuple(0 if i == first else None for i in range(len(arguments)))
    many = [np.stack([v, 2 * v, v - 1]) if i == first else v for i, v in enumerate(arguments)]
    _close(jax.vmap(ours, axes)(*many), jax.vmap(theirs, axes)(*many))
    gradients = [jax.jit(jax.vmap(jax.grad(_energy(f), first), axes))(*map(jnp.asarray, many))
                 for f in (ours, theirs)]  # fmt: skip
    _close(*gradients)


def test_adjoints_of_linear_constructs() -> None:
    """<y, A x> is <A' y, x>, with the transpose that JAX makes of the tangent map."""
    for kernel, arguments in ((P.scan(PRODUCT), (M,)), (P.histogram(MUL, 1.0, 4), (jnp.asarray(AT), X))):
        floats = _floats(arguments)[0]

        def of(x: Any, kernel: Any = kernel, arguments: Any = arguments, floats: int = floats) -> Any:
            return kernel(*arguments[:floats], x)

        x = jnp.asarray(arguments[floats])
        value, pushed = jax.linearize(of, x)
        tangent, cotangent = RNG.normal(size=x.shape), RNG.normal(size=value.shape)
        (back,) = jax.vjp(of, x)[1](jnp.asarray(cotangent))
        np.testing.assert_allclose(jnp.vdot(back, tangent), jnp.vdot(cotangent, pushed(tangent)), rtol=1e-12)


def test_single_precision_without_x64() -> None:
    with jax.enable_x64(False):
        total = P.reduce(LIB.kernel("addf"), 0.0)
        np.testing.assert_allclose(jax.grad(lambda x: total(x) ** 2)(jnp.ones(5)), 10.0)
        bins = P.histogram(LIB.kernel("addf"), 0.0, 2, index="i32")
        np.testing.assert_allclose(bins(jnp.array([0, 1, 1]), jnp.ones(3)), [1.0, 2.0])


def test_axes_of_map_by_name_and_by_shape() -> None:
    wave = LIB.kernel("wave")
    for axes in (None, {"x": 0}, (0, None)):
        np.testing.assert_allclose(P.map(wave, in_axes=axes)(jnp.asarray(X), 0.7), np.sin(0.7 * X), rtol=1e-14)
    np.testing.assert_allclose(P.map(wave, in_axes=0)(jnp.asarray(X), jnp.asarray(Y)), np.sin(X * Y), rtol=1e-13)
