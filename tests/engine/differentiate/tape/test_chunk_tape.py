"""Tapes of the caller's of kernels whose loops threads share: what is kept on threads, and given back on threads."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.team_cases import CASES, SOURCE

import irgrad
from irgrad.engine.kernel.tapes import tape_of
from irgrad.rules.errors import OneThread


@pytest.fixture(scope="module")
def lib() -> Any:
    return irgrad.load(SOURCE, flags=["-fopenmp"])


def _active(kernel: Any) -> list[int]:
    return [n for n, slot in enumerate(kernel.primal.slots) if slot.differentiable]


def _results(kernel: Any, args: tuple[Any, ...], *, batch: bool = False) -> list[Any]:
    """Values and gradients under `jax.jit`, where the primal keeps a tape for the reverse sweep."""
    floats = [n for n, a in enumerate(args) if np.asarray(a).dtype.kind == "f"]

    def of_floats(*given: Any) -> Any:
        whole = list(args)
        for n, a in zip(floats, given, strict=True):
            whole[n] = a
        return kernel(*whole)

    def both(*given: Any) -> Any:
        out, pullback = jax.vjp(of_floats, *given)
        return out, pullback(jax.tree.map(lambda o: jnp.cos(jnp.arange(o.size)).reshape(o.shape).astype(o.dtype), out))

    given = [args[n] for n in floats]
    if batch:
        return [np.asarray(a)[1] for a in jax.tree.leaves(jax.jit(jax.vmap(both))(*[np.stack([a] * 3) for a in given]))]
    return [np.asarray(a) for a in jax.tree.leaves(jax.jit(both)(*given))]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n not in ("gather", "in_place")))
                                  for n in CASES])  # fmt: skip
def test_same_bits_on_any_number_of_threads(lib: Any, name: str) -> None:
    signature, args, _ = CASES[name]
    kernels = {t: lib.kernel(name, signature, tape="store", threads=t) for t in (1, 2, 4, 16)}
    found = tape_of(kernels[2].primal, _active(kernels[2]))
    assert found.room is not None, found.because
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        results = {t: _results(kernel, tuple(args)) for t, kernel in kernels.items()}
        batch = _results(kernels[2], tuple(args), batch=True)
        again = _results(lib.kernel(name, signature, tape="recompute", threads=2), tuple(args))
        plain = _results(lib.kernel(name, signature), tuple(args))
    for made in (*results.values(), batch):
        for a, b, c, d in zip(made, results[1], plain, again, strict=True):
            if made is not batch:
                np.testing.assert_array_equal(a, b)
            for other in (c, d):
                np.testing.assert_allclose(a, other, rtol=2e-5 if a.dtype == np.float32 else 1e-10, atol=1e-12)


def test_both_sweeps_run_on_threads(lib: Any) -> None:
    """Each half has a job of the team; the tape is that of one thread, and what sixteen chunks round up."""
    signature = CASES["gather"][0]
    kernel, plain = lib.kernel("gather", signature, threads=2), lib.kernel("gather", signature)
    for made in (kernel.primal.forward_with_tape(_active(kernel)), kernel.primal.reverse_from_tape(_active(kernel))):
        assert "\ndefine internal ptr @irgrad.team." in made.ir
    n, m = ([slot.name for slot in kernel.primal.slots].index(name) for name in "nm")
    size, whole = (tape_of(k.primal, _active(k)).bytes({n: 500, m: 3000}) for k in (kernel, plain))
    assert size is not None and whole is not None and whole <= size <= 2 * whole + 64 * 16


LAYER = r"""
#include <math.h>
double layer(const double *x, const double *w, double *y, long n, long m) {
    double s = 0;
    #pragma omp parallel for reduction(+:s)
    for (long i = 0; i < n; i++) {
        double a = 0;
        for (long j = 0; j < m; j++) a = sin(a + x[i * m + j] * w[j]);
        y[i] = tanh(a);
        s += y[i] * y[i];
    }
    return s;
}
void each_longer(const double *x, double *y, long n) {
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double a = x[i];
        for (long j = 0; j < i; j++) a = sin(a) * x[j];
        y[i] = a;
    }
}
"""
SIGNATURE = "f64(f64[n,m] x, f64[m] w, out f64[n] y, i64 n, i64 m)"


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
def test_sizes_around_those_of_chunks(n: int) -> None:
    lib = irgrad.load(LAYER, flags=["-fopenmp"])
    x, w = np.random.default_rng(n).normal(size=(n, 5)), np.linspace(0.1, 1.0, 5)
    with jax.enable_x64(True):
        found = [jax.jit(jax.value_and_grad(lambda x, w, k=k: k(x, w)[0], argnums=(0, 1)))(x, w)
                 for k in (lib.kernel("layer", SIGNATURE, tape="store", threads=2), lib.kernel("layer", SIGNATURE))]
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.long
def test_derivatives_of_derivatives() -> None:
    lib = irgrad.load(LAYER, flags=["-fopenmp"])
    x, w = np.random.default_rng(0).normal(size=(40, 5)), np.linspace(0.1, 1.0, 5)

    def of(kernel: Any) -> list[Any]:
        def loss(w: Any) -> Any:
            s, y = kernel(x, w)
            return s + jnp.sum(jnp.sin(y))

        twice = jax.grad(lambda w: jnp.sum(jax.grad(loss)(w) ** 2))
        return [jax.jit(f)(w) for f in (jax.hessian(loss), twice, jax.jacrev(lambda w: kernel(x, w)[1]))]

    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        plain = of(lib.kernel("layer", SIGNATURE))
        found = {t: of(lib.kernel("layer", SIGNATURE, tape="store", threads=t)) for t in (1, 2, 16)}
    for made in found.values():
        for a, b, c in zip(made, found[1], plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-12)


def test_why_there_is_none() -> None:
    lib = irgrad.load(LAYER, flags=["-fopenmp"])
    kernel = lib.kernel("each_longer", "void(f64[n] x, out f64[n] y, i64 n)", threads=2)
    assert "only known inside of the loop around it" in str(irgrad.explain_tape(kernel))
