"""Compositions of JAX's transformations over a kernel agree with the same over jnp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample
from shares import fast

import irgrad

jax.config.update("jax_enable_x64", True)

POINT = (3.0, 0.5)
XS, YS = np.linspace(1, 2, 4), np.linspace(0, 1, 4)

COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda k: jax.jit(k)(*POINT),
    "grad": lambda k: jax.grad(k, (0, 1))(*POINT),
    "grad of one": lambda k: jax.grad(k, 1)(*POINT),
    "jit(grad)": lambda k: jax.jit(jax.grad(k))(*POINT),
    "value_and_grad": lambda k: jax.value_and_grad(k)(*POINT),
    "jvp": lambda k: jax.jvp(k, POINT, (1.0, 2.0)),
    "vjp": lambda k: jax.vjp(k, *map(jnp.float64, POINT))[1](jnp.float64(2.0)),
    "linearize": lambda k: jax.linearize(k, *POINT)[1](1.0, 2.0),
    "vmap, one": lambda k: jax.vmap(k, (0, None))(XS, 0.5),
    "vmap, both": lambda k: jax.vmap(k)(XS, YS),
    "vmap(vmap)": lambda k: jax.vmap(jax.vmap(k, (None, 0)), (0, None))(XS, YS),
    "vmap(grad)": lambda k: jax.vmap(jax.grad(k, (0, 1)), (None, 0))(3.0, YS),
    "vmap(grad), one": lambda k: jax.vmap(jax.grad(k, (0, 1)), (0, None))(XS, 0.5),
    "grad(vmap)": lambda k: jax.grad(lambda x: jax.vmap(k, (None, 0))(x, YS).sum())(3.0),
    "hessian": lambda k: jax.hessian(k, (0, 1))(*POINT),
    "jacrev(jacrev)": lambda k: jax.jacrev(jax.jacrev(k, (0, 1)), (0, 1))(*POINT),
    "jacrev(jacfwd)": lambda k: jax.jacrev(jax.jacfwd(k, (0, 1)), (0, 1))(*POINT),
    "jacfwd(jacfwd)": lambda k: jax.jacfwd(jax.jacfwd(k, (0, 1)), (0, 1))(*POINT),
    "third order": lambda k: jax.grad(jax.grad(jax.grad(k, 1), 1), 1)(*POINT),
    "vmap(grad(grad))": lambda k: jax.vmap(jax.grad(jax.grad(k, 1), 1), (None, 0))(3.0, YS),
    "scan": lambda k: jax.grad(lambda x: jax.lax.scan(lambda c, y: (k(c, y), c), x, YS)[0])(3.0),
    "checkpoint": lambda k: jax.grad(jax.checkpoint(k), 1)(*POINT),
    "jit(vmap(hessian))": lambda k: jax.jit(jax.vmap(jax.hessian(k, 1)))(XS, YS),
}


def product(x: Any, y: Any) -> Any:
    return x * jnp.sin(y)


@pytest.mark.parametrize("name", fast(2, COMPOSITIONS))
def test_scalar_kernel(name: str) -> None:
    kernel = sample("product")
    got = jax.tree.leaves(COMPOSITIONS[name](lambda x, y: kernel(jnp.asarray(x), jnp.asarray(y))))
    wanted = jax.tree.leaves(COMPOSITIONS[name](product))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


X = np.array([0.5, -1.0, 2.0])
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda k: jax.grad(k, (0, 1))(X, 2.0),
    "jit(grad)": lambda k: jax.jit(jax.grad(k))(X, 2.0),
    "hessian": lambda k: jax.hessian(k)(X, 2.0),
    "vmap(grad)": lambda k: jax.vmap(jax.grad(k), (0, None))(np.stack([X, 2 * X]), 2.0),
    "vmap(grad), axis 1": lambda k: jax.vmap(jax.grad(k), (1, 0))(np.stack([X, 2 * X], 1), np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array_kernel(name: str) -> None:
    kernel = sample("cubes")
    got = jax.tree.leaves(ARRAYS[name](lambda x, a: kernel(jnp.asarray(x), jnp.asarray(a))))
    wanted = jax.tree.leaves(ARRAYS[name](lambda x, a: a * jnp.sum(x**3)))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_several_outputs_and_inout() -> None:
    kernel, x = sample("scale"), jnp.asarray(X)
    for jacobian in (jax.jacfwd, jax.jacrev):
        moved, squares = jacobian(kernel)(x, 3.0)
        np.testing.assert_allclose(moved, 3 * np.eye(3), atol=1e-14)
        np.testing.assert_allclose(squares, np.diag(18 * X), atol=1e-13)


def test_integer_arguments_have_no_gradient() -> None:
    kernel, index = sample("gather"), jnp.array([0, 0, 2], jnp.int32)
    np.testing.assert_allclose(jax.grad(kernel)(jnp.asarray(X), index), [2.0, 0.0, 4.0], rtol=1e-14)


def test_single_precision() -> None:
    x = jnp.array([1.0, 2.0], jnp.float32)
    gradient = jax.jit(jax.grad(sample("halves")))(x)
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(gradient, x, rtol=1e-6)


def test_a_batch_is_one_call() -> None:
    kernel = sample("product")
    text = str(jax.make_jaxpr(jax.vmap(jax.grad(kernel), (0, None)))(XS, jnp.float64(0.5)))
    assert text.count("foreign_call") == 1


MATRIX = irgrad.load("""
void product(const double *a, const double *x, double *y, long n) {
  for (long i = 0; i < n; i++) { y[i] = 0; for (long j = 0; j < n; j++) y[i] += a[i * n + j] * x[j]; }
}
double square(const double *x, double *y, long n) { *y = 1; return x[0] * x[0]; }
""")
PRODUCT = MATRIX.kernel("product", "void(f64[n,n] a, f64[n] x, out f64[n] y, i64 n)")
A = jnp.array([[4.0, 1.0, 0.5], [2.0, 5.0, -1.0], [0.0, 1.0, 3.0]])


def test_linear_kernels_are_transposed() -> None:
    transposed = jax.linear_transpose(lambda x: PRODUCT(A, x), X)
    for call in (transposed, jax.jit(transposed), jax.linear_transpose(jax.jit(lambda x: PRODUCT(A, x)), X)):
        np.testing.assert_allclose(call(X)[0], A.T @ X, rtol=1e-14)
    np.testing.assert_allclose(jax.vmap(transposed)(jnp.eye(3))[0], A, rtol=1e-14)
    np.testing.assert_allclose(jax.linear_transpose(lambda a: PRODUCT(a, X), A)(X)[0], np.outer(X, X), rtol=1e-14)
    rows = jax.linear_transpose(lambda x: jax.vmap(PRODUCT, (None, 0))(A, jnp.broadcast_to(x, (2, 3))), X)
    np.testing.assert_allclose(rows(jnp.stack([X, 2 * X]))[0], A.T @ (3 * X), rtol=1e-14)
    length = lambda a, f: jnp.sum(f(a) ** 2)  # noqa: E731
    got = jax.grad(length)(A, lambda a: jax.linear_transpose(lambda x: PRODUCT(a, x), X)(X)[0])
    np.testing.assert_allclose(got, jax.grad(length)(A, lambda a: a.T @ X), rtol=1e-13)


@pytest.mark.long
def test_a_kernel_in_custom_linear_solve() -> None:
    def norm(a: Any, b: Any, product: Any) -> Any:
        solve = lambda mv, b: jnp.linalg.solve(jax.jacfwd(mv)(b), b)  # noqa: E731
        return jnp.sum(jax.lax.custom_linear_solve(lambda x: product(a, x), b, solve, solve) ** 2)

    for derivative in (jax.grad(norm, (0, 1)), jax.jacfwd(norm, (0, 1))):
        got, wanted = derivative(A, X, PRODUCT), derivative(A, X, jnp.matmul)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)


def test_what_is_not_known_to_be_linear_is_not_transposed() -> None:
    square = MATRIX.kernel("square", "f64(f64[n] x, out f64 y, i64 n)")
    cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "linear in `a`, `x`": (PRODUCT, (A, X)),
        "linear in `x`": (lambda x: square(x)[0], (X,)),
        "`product`.*in `x`": (lambda x: jax.jvp(lambda x: PRODUCT(A, x), (x,), (x,))[1], (X,)),
    }
    for message, (function, point) in cases.items():
        with pytest.raises(irgrad.Unsupported, match=message):
            jax.linear_transpose(function, *point)(jax.tree.map(jnp.ones_like, function(*point)))
    np.testing.assert_allclose(  # as the message says: the derivative is linear
        jax.linear_transpose(jax.linearize(lambda x: square(x)[0], X)[1], X)(1.0)[0], [2 * X[0], 0, 0])  # fmt: skip
