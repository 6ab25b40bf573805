"""What a wrong call under JAX says, while it is traced: every message names the argument and the way out."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine

jax.config.update("jax_enable_x64", True)

POS, MASS = jnp.ones((4, 3)), jnp.ones(4)
Case = tuple[Callable[[Any], Any], Any, type[Exception], str, str]


def energy(pos: Any, mass: Any = MASS) -> Any:
    return sample("energy")(pos, mass)


def case(function: Callable[[Any], Any], argument: Any, kind: str, what: str, fix: str = "") -> Case:
    return function, argument, getattr(irgrad, kind), what, fix


CASES: dict[str, Case] = {
    "dtype f32": case(energy, POS.astype(jnp.float32), "DTypeError", "`pos` has dtype float32, wanted float64",
                      "pos.astype(jnp.float64)"),
    "dtype f64": case(lambda x: sample("halves")(x), MASS, "DTypeError", "`x` has dtype float64, wanted float32",
                      "x.astype(jnp.float32)"),
    "dtype int": case(energy, POS.astype(int), "DTypeError", "`pos` has dtype int64, wanted float64"),
    "dtype bool": case(energy, POS > 0, "DTypeError", "`pos` has dtype bool, wanted float64"),
    "dtype complex": case(energy, POS + 1j, "DTypeError", "`pos` has dtype complex128, wanted float64"),
    "dtype of indices": case(lambda x: sample("gather")(x, jnp.array([0, 1])), MASS, "DTypeError",
                             "`index` has dtype int64, wanted int32", "index.astype(jnp.int32)"),
    "dtype of a flag": case(lambda x: sample("flip")(x, 3), jnp.int32(1), "DTypeError", "`a` has dtype int32"),
    "dtype of an integer": case(lambda k: sample("power")(2.0, k), jnp.int64(3), "DTypeError",
                                "`k` has dtype int64, wanted int32", "k.astype(jnp.int32)"),
    "range": case(lambda a: sample("flip")(a, 300), True, "DTypeError", "`b` = 300 does not fit into u8"),
    "no integer": case(lambda x: sample("power")(x, 2.5), 2.0, "DTypeError", "`k` is a float64, wanted int32"),
    "rank": case(energy, MASS, "ShapeError", "`pos` has rank 1, wanted rank 2", "reshape it to [n, 3]"),
    "extent": case(lambda m: energy(POS, m), MASS[:3], "ShapeError", "`mass` has extent 3 on axis 0, wanted 4"),
    "array for a scalar": case(lambda x: sample("power")(x, 2), MASS, "ShapeError",
                               "`x` is an array of shape (4,), wanted a scalar", "jax.vmap over it"),
    "ragged": case(lambda x: energy([x[0], x[1, :2]], MASS[:2]), POS, "ShapeError", "`pos` is no array"),
    "traced extent": case(lambda n: sample("ramp")(n, 2), 3, "ShapeError", "`n` is traced", "static_argnums"),
    "None": case(lambda x: energy(x, None), POS, "DTypeError", "`mass` is not an array of numbers"),
    "text": case(lambda x: energy(x, "mass"), POS, "DTypeError", "`mass` is not an array of numbers"),
    "missing": case(lambda x: sample("energy")(x), POS, "SignatureError", "argument `mass` is missing"),
    "unknown": case(lambda x: sample("energy")(x, mas=MASS), POS, "SignatureError", "there is no argument `mas`",
                    "did you mean `mass`?"),
    "NumPy's grad": case(engine.grad(sample("cubes"), wrt="a"), 1.0, "SignatureError", "argument `a` is missing"),
    "NumPy's batch": case(lambda x: engine.batch(sample("energy"))(x, MASS), POS[None], "SignatureError",
                          "`pos` is traced by JAX", "jax.vmap(kernel)"),
    "NumPy's jvp": case(lambda x: engine.jvp(sample("product"), (x, 1.0), (x, 1.0)), 1.0, "SignatureError",
                        "`x` is traced by JAX", "jax.grad(kernel)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_errors_at_trace_time(name: str) -> None:
    function, argument, kind, what, fix = CASES[name]
    with pytest.raises(kind, match=re.escape(what)) as caught:
        jax.eval_shape(function, argument)
    assert isinstance(caught.value, irgrad.IRGradError) and fix in caught.value.fix


def test_the_same_under_transformations() -> None:
    for transform in (jax.grad, jax.jacfwd, jax.hessian, jax.value_and_grad, jax.jit):
        with pytest.raises(irgrad.ShapeError, match="`mass` has extent 3 on axis 0, wanted 4"):
            transform(energy)(POS, MASS[:3])
    with pytest.raises(irgrad.ShapeError, match="`pos` has rank 1, wanted rank 2"):
        jax.vmap(energy, (0, None))(POS, MASS)


def test_what_has_no_derivative_names_the_argument() -> None:
    source = "double bessel(double); double f(double x, double y) { return y * bessel(x); }"
    kernel = irgrad.load(source).kernel("f")
    rows: list[tuple[Callable[..., Any], Any]] = [
        (jax.grad(kernel), 1.0),
        (lambda x, y: jax.jvp(kernel, (x, y), (1.0, 0.0)), 1.0),
        (jax.vmap(jax.grad(kernel)), jnp.ones(2)),
    ]
    for derivative, argument in rows:
        with pytest.raises(irgrad.MissingRuleError) as caught:
            jax.jit(derivative).lower(argument, argument)
        assert "argument `x`" in caught.value.because and "bessel" in caught.value.which


def test_integers_and_flags_have_no_derivative_and_harm_none() -> None:
    x, index = jnp.arange(4.0), jnp.array([1, 1, 3], jnp.int32)
    got = jax.grad(sample("gather"), argnums=(0, 1), allow_int=True)(x, index)
    assert got[0].tolist() == [0, 4, 0, 6] and got[1].dtype == jax.dtypes.float0
    _, pullback = jax.vjp(sample("gather"), x, index)
    assert pullback(1.0)[1].dtype == jax.dtypes.float0
    _, moved = jax.jvp(sample("gather"), (x, index), (x, np.zeros(3, jax.dtypes.float0)))
    assert moved == 2 * sample("gather")(x, index)
    assert jax.vmap(sample("flip"))(jnp.array([True, False]), jnp.array([3, 200], jnp.uint8)).tolist() == [True, True]
    assert jax.vmap(sample("power"), (None, 0))(2.0, jnp.arange(4, dtype=jnp.int32)).tolist() == [1, 2, 4, 8]
    np.testing.assert_array_equal(jax.jit(sample("ramp"), static_argnames=("n",))(n=4, k=2), [0, 2, 4, 6])


def test_lists_of_jax_values_are_stacked() -> None:
    got = jax.jit(lambda x: energy([x[0], x[1]], MASS[:2]))(POS)
    np.testing.assert_allclose(got, energy(POS[:2], MASS[:2]))


@pytest.mark.long
@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("bodies", [0, 3])
def test_empty_arrays_under_every_derivative(samples: int, bodies: int) -> None:
    pos, mass = jnp.arange(3.0 * bodies).reshape(bodies, 3), jnp.ones(bodies)
    many = jnp.zeros((samples, bodies, 3)) + pos
    if not bodies:
        assert energy(pos, mass) == 0 and jax.hessian(energy)(pos, mass).shape == (0, 3, 0, 3)
        assert [a.shape for a in jax.jacrev(sample("scale"))(mass, 2.0)] == [(0, 0), (0, 0)]
    rows = jax.jit(jax.vmap(jax.grad(energy), (0, None)))(many, mass)
    assert rows.shape == many.shape
    for row in rows:
        np.testing.assert_allclose(row, jax.grad(energy)(pos, mass))
    assert jax.vmap(energy, (0, None))(many, mass).shape == (samples,)


@pytest.mark.long
def test_without_x64_every_message_names_what_is_wide() -> None:
    code = """
import irgrad, numpy as np, jax, jax.numpy as jnp
lib = irgrad.load('''float f(const float *x, long k, int n) { return x[0] * k; }
void g(const float *x, double *y, int n) { y[0] = x[0]; }
void h(const float *x, const long *i, float *y, int n) { y[0] = x[i[0]]; }
double r(float x) { return x; }''')
x = jnp.ones(3, jnp.float32)
f = lib.kernel("f", "f32(f32[n] x, i64 k, i32 n)")
assert f(x, 3) == 3 and f(x, np.int64(2)) == 2 and jax.grad(f)(x, 3).tolist() == [3, 0, 0]
for call, wide in (
    (lambda: jax.jit(lambda k: f(x, k))(3), "`i64 k` is 64 bits wide"),
    (lambda: f(x, jnp.int32(3)), "`i64 k` is 64 bits wide"),
    (lambda: jax.vmap(f, (None, 0))(x, jnp.arange(3)), "`i64 k` is 64 bits wide"),
    (lambda: lib.kernel("g", "void(f32[n] x, out f64 y, i32 n)")(x), "`out f64[] y` is 64 bits wide"),
    (lambda: lib.kernel("h", "void(f32[n] x, i64[1] i, out f32 y, i32 n)")(x, np.array([1])), "`i64[1] i` is 64 bits"),
    (lambda: lib.kernel("r")(jnp.float32(1)), "the return type `f64` is 64 bits wide"),
):
    try:
        call()
    except irgrad.DTypeError as error:
        assert wide in error.because and "jax_enable_x64" in error.fix, error
    else:
        raise SystemExit(f"no error: {wide}")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)
