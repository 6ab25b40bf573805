"""Every composition of JAX's transformations with every kind of kernel, against the same function in jax.numpy; and how
many native calls each makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.test_util import check_grads

import irgrad
from irgrad.interop.jax import export

pytestmark = pytest.mark.long

jax.config.update("jax_enable_x64", True)

LIBRARY = irgrad.load("""
#include <math.h>
double scalar(double x, double a) { return sin(a * x) * x + a * a * x; }
double energy(const double *x, double a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += sin(a * x[i]) * x[(i + 1) % n] * x[i];
  return s;
}
void field(const double *x, double a, double *y, long n) {
  for (long i = 0; i < n; i++) y[i] = exp(-a * x[i]) * x[(i + 1) % n] + a * x[i] * x[i];
}
void step(double *x, double a, long n) { for (long i = 1; i < n; i++) x[i] += a * sin(x[i - 1]); }
double parts(const double *x, double a, double *y, double *z, long n) {
  double s = 0;
  z[0] = z[1] = 0;
  for (long i = 0; i < n; i++) { y[i] = a * x[i] * x[i]; s += y[i] * x[i]; z[i % 2] += cos(a * x[i]); }
  return s;
}
void single(const float *x, float a, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = a * x[i] * x[(i + 1) % n] + sinf(x[i]);
}
void picked(const double *x, double a, const int *which, int power, double *y, long n) {
  for (long i = 0; i < n; i++) { double p = 1; for (int k = 0; k < power; k++) p *= x[which[i]]; y[i] = a * p + x[i]; }
}
""")
N, WHICH = 4, np.array([2, 0, 3, 3], np.int32)


@dataclass(frozen=True)
class Subject:
    """One kind of kernel as `f(x, a)`, its twin in jax.numpy, and whether it has one scalar result."""

    kernel: Any
    twin: Callable[[Any, Any], Any]
    x: Any
    scalar: bool = False
    tolerance: float = 1e-10

    @property
    def a(self) -> Any:
        return jnp.asarray(0.7, self.x.dtype)

    @property
    def rows(self) -> Any:
        return jnp.stack([self.x, 0.5 * self.x, self.x - 0.25])

    @property
    def scales(self) -> Any:
        return jnp.asarray([0.7, 0.2, -0.4], self.x.dtype)


def _step(x: Any, a: Any) -> Any:
    return jnp.stack(reduce(lambda rows, i: [*rows, x[i] + a * jnp.sin(rows[-1])], range(1, N), [x[0]]))


def _parts(x: Any, a: Any) -> Any:
    y = a * x * x
    return jnp.sum(y * x), y, jnp.cos(a * x).reshape(-1, 2).sum(0)


PICKED = LIBRARY.kernel("picked", "void(f64[n] x, f64 a, i32[n] which, i32 power, out f64[n] y, i64 n)")
X = jnp.linspace(0.1, 1.2, N)
SUBJECTS = {
    "scalar": Subject(LIBRARY.kernel("scalar"), lambda x, a: jnp.sin(a * x) * x + a * a * x, jnp.float64(0.6), True),
    "energy": Subject(LIBRARY.kernel("energy", "f64(f64[n] x, f64 a, i64 n)"),
                      lambda x, a: jnp.sum(jnp.sin(a * x) * jnp.roll(x, -1) * x), X, True),
    "field": Subject(LIBRARY.kernel("field", "void(f64[n] x, f64 a, out f64[n] y, i64 n)"),
                     lambda x, a: jnp.exp(-a * x) * jnp.roll(x, -1) + a * x * x, X),
    "inout": Subject(LIBRARY.kernel("step", "void(inout f64[n] x, f64 a, i64 n)"), _step, X),
    "several outputs": Subject(
        LIBRARY.kernel("parts", "f64(f64[n] x, f64 a, out f64[n] y, out f64[2] z, i64 n)"), _parts, X),
    "f32": Subject(LIBRARY.kernel("single", "void(f32[n] x, f32 a, out f32[n] y, i64 n)"),
                   lambda x, a: a * x * jnp.roll(x, -1) + jnp.sin(x), X.astype(jnp.float32), tolerance=3e-5),
    "integers": Subject(lambda x, a: PICKED(x, a, WHICH, 3), lambda x, a: a * x[WHICH] ** 3 + x, X),
}  # fmt: skip


def _loss(k: Any) -> Any:
    return lambda x, a: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(k(x, a)))


def _first(k: Any) -> Any:
    """The first result, as an array like x: what loops carry."""
    return lambda x, a: jnp.broadcast_to(jax.tree.leaves(k(x, a))[0], x.shape)


def _over(loop: str) -> Callable[[Any, Subject], Any]:
    def run(k: Any, s: Subject) -> Any:
        f = _first(k)
        if loop == "while":
            test = lambda c: jnp.logical_and(c[0] < 5, jnp.sum(jnp.abs(c[1])) < 50.0)  # noqa: E731
            body = lambda c: (c[0] + 1, 0.3 * f(c[1], s.a))  # noqa: E731
            return jax.jvp(lambda x: jax.lax.while_loop(test, body, (0, x))[1], (s.x,), (s.x,))
        if loop == "fori":
            return jax.grad(lambda x: jnp.sum(jax.lax.fori_loop(0, 4, lambda _, c: 0.3 * f(c, s.a), x)))(s.x)
        scan = lambda x, a: jax.lax.scan(lambda c, _: (0.3 * f(c, a), jnp.sum(c)), x, None, length=4)  # noqa: E731
        return jax.value_and_grad(lambda x, a: sum(jnp.sum(y) for y in scan(x, a)), (0, 1))(s.x, s.a)

    return run


def _around(k: Any, s: Subject) -> Any:
    """custom_jvp around it, with a rule that calls the kernel's own."""
    f = jax.custom_jvp(_loss(k))
    f.defjvp(lambda p, t: (_loss(k)(*p), 2 * jax.jvp(_loss(k), p, t)[1]))
    return jax.value_and_grad(f, (0, 1))(s.x, s.a)


def _chosen(k: Any, s: Subject) -> Any:
    return jax.grad(lambda x: jax.lax.cond(jnp.sum(x) > 0, lambda x: _loss(k)(x, s.a), jnp.sum, x))(s.x)


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:1]), ("i",))


def _sharded(k: Any, s: Subject, check: bool) -> Any:
    rows = lambda x, a: jax.vmap(jax.grad(_loss(k), (0, 1)), (0, None))(x, a)  # noqa: E731
    specs = (PartitionSpec("i"), PartitionSpec())
    return jax.shard_map(rows, mesh=_mesh(), in_specs=specs, out_specs=PartitionSpec("i"), check_vma=check)(s.rows, s.a)


def _placed(k: Any, s: Subject) -> Any:
    rows = jax.device_put(s.rows, NamedSharding(_mesh(), PartitionSpec("i")))
    return jax.jit(jax.vmap(jax.value_and_grad(_loss(k)), (0, None)))(rows, s.a)


ALL = jax.checkpoint_policies.everything_saveable
Composition = Callable[[Any, Subject], Any]
# name: (composition, native calls in the compiled program: of a kernel with one scalar result, and of any other)
MATRIX: dict[str, tuple[Composition, int, int]] = {
    "eager": (lambda k, s: k(s.x, s.a), 1, 1),
    "jit": (lambda k, s: jax.jit(k)(s.x, s.a), 1, 1),
    "jvp": (lambda k, s: jax.jvp(k, (s.x, s.a), (s.x, s.a)), 1, 1),
    "jvp in one argument": (lambda k, s: jax.jvp(lambda a: k(s.x, a), (s.a,), (s.a,)), 1, 1),
    "vjp": (lambda k, s: jax.vjp(k, s.x, s.a)[1](k(s.x, s.a)), 2, 2),
    "grad": (lambda k, s: jax.grad(_loss(k))(s.x, s.a), 1, 2),
    "grad in the scalar": (lambda k, s: jax.grad(_loss(k), 1)(s.x, s.a), 1, 2),
    "value_and_grad": (lambda k, s: jax.value_and_grad(_loss(k), (0, 1))(s.x, s.a), 1, 2),
    "linearize": (lambda k, s: jax.linearize(k, s.x, s.a)[1](s.x, s.a), 1, 1),
    "vmap 0, None": (lambda k, s: jax.vmap(k, (0, None))(s.rows, s.a), 1, 1),
    "vmap None, 0": (lambda k, s: jax.vmap(k, (None, 0))(s.x, s.scales), 1, 1),
    "vmap 0, 0": (lambda k, s: jax.vmap(k)(s.rows, s.scales), 1, 1),
    "vmap -1, 0, out -1": (lambda k, s: jax.vmap(k, (-1, 0), -1)(jnp.moveaxis(s.rows, 0, -1), s.scales), 1, 1),
    "vmap of vmap": (lambda k, s: jax.vmap(jax.vmap(k, (None, 0)), (0, None))(s.rows, s.scales), 1, 1),
    "vmap of vmap, both of x": (
        lambda k, s: jax.vmap(jax.vmap(k, (0, None)), (0, None))(jnp.stack([s.rows] * 2), s.a), 1, 1),
    "vmap(grad)": (lambda k, s: jax.vmap(jax.grad(_loss(k), (0, 1)), (0, None))(s.rows, s.a), 1, 2),
    "vmap(value_and_grad)": (lambda k, s: jax.vmap(jax.value_and_grad(_loss(k), (0, 1)))(s.rows, s.scales), 1, 2),
    "grad(vmap)": (lambda k, s: jax.grad(_loss(jax.vmap(k, (0, None))), (0, 1))(s.rows, s.a), 1, 2),
    "vmap(jvp)": (lambda k, s: jax.vmap(lambda t: jax.jvp(lambda x: k(x, s.a), (s.x,), (t,)))(s.rows), 1, 1),
    "jacfwd": (lambda k, s: jax.jacfwd(k, (0, 1))(s.x, s.a), 1, 1),
    "jacrev": (lambda k, s: jax.jacrev(k, (0, 1))(s.x, s.a), 1, 1),
    "vmap(jacrev)": (lambda k, s: jax.vmap(jax.jacrev(k), (0, None))(s.rows, s.a), 1, 1),
    "jacfwd(vmap)": (lambda k, s: jax.jacfwd(lambda x: jax.vmap(k, (0, None))(x, s.a))(s.rows), 1, 1),
    "hessian": (lambda k, s: jax.hessian(k)(s.x, s.a), 1, 1),
    "hessian, two arguments": (lambda k, s: jax.hessian(k, (0, 1))(s.x, s.a), 1, 1),
    "jacfwd(jacrev)": (lambda k, s: jax.jacfwd(jax.jacrev(k))(s.x, s.a), 1, 1),
    "jacrev(jacfwd)": (lambda k, s: jax.jacrev(jax.jacfwd(k))(s.x, s.a), 1, 1),
    "jacrev(jacrev)": (lambda k, s: jax.jacrev(jax.jacrev(k))(s.x, s.a), 1, 1),
    "jvp(grad)": (lambda k, s: jax.jvp(jax.grad(_loss(k)), (s.x, s.a), (s.x, s.a)), 3, 4),
    "grad(jvp)": (lambda k, s: jax.grad(lambda x: jax.jvp(_loss(k), (x, s.a), (s.x, s.a))[1])(s.x), 3, 3),
    "third derivative": (lambda k, s: jax.jacfwd(jax.jacfwd(jax.jacfwd(k)))(s.x, s.a), 1, 1),
    "third, reverse inside": (lambda k, s: jax.jacfwd(jax.hessian(k))(s.x, s.a), 1, 1),
    "grad of scan": (_over("scan"), 1, 2),
    "while_loop": (_over("while"), 1, 1),
    "grad of fori_loop": (_over("fori"), 1, 2),
    "cond": (_chosen, 1, 2),
    "checkpoint": (lambda k, s: jax.grad(jax.checkpoint(_loss(k)), (0, 1))(s.x, s.a), 1, 2),
    "checkpoint, all saved": (lambda k, s: jax.grad(jax.checkpoint(_loss(k), policy=ALL))(s.x, s.a), 2, 2),
    "custom_jvp around": (_around, 2, 2),
    "shard_map": (partial(_sharded, check=True), 1, 2),
    "shard_map, no check_vma": (partial(_sharded, check=False), 1, 2),
    "sharded batch": (_placed, 1, 2),
}  # fmt: skip


TAPED = ("field", "inout", "f32", "integers")
BESIDE = {(name, subject) for name in ("custom_jvp around", "jvp(grad)") for subject in TAPED}
"""One call more: the rule of a custom_jvp calls the kernel for its value, and again, with a tape, for its derivative;
forward over reverse pushes through the primal, through the primal with its tape, and through the reverse sweep."""
_ran: list[str] = []


@pytest.fixture(autouse=True)
def _bounded_memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """JAX keeps every compiled program, some 15 MB for each test here."""
    yield
    _ran.append(request.node.name)
    if len(_ran) % 16 == 0:
        jax.clear_caches()


def _same(got: Any, wanted: Any, tolerance: float) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def _cells() -> list[Any]:
    """All cells. By default every composition runs with a scalar and an array kernel, and with some of the others."""
    cells = []
    for row, name in enumerate(MATRIX):
        for column, subject in enumerate(SUBJECTS):
            now = subject in ("energy", "field") or (row + column) % 4 == 0
            cells.append(pytest.param(name, subject, marks=[] if now else [pytest.mark.slow]))
    return cells


@pytest.mark.parametrize(("name", "subject"), _cells())
def test_matrix(name: str, subject: str) -> None:
    composition, scalar, other = MATRIX[name]
    s = SUBJECTS[subject]
    compiled = jax.jit(lambda: composition(s.kernel, s)).lower().compile()
    text = compiled.as_text()
    assert text is not None
    _same(compiled(), composition(s.twin, s), s.tolerance)
    beside = (name, subject) in BESIDE
    assert text.count('custom_call_target="irgrad.') == (scalar if s.scalar else other) + beside


@pytest.mark.parametrize("subject", SUBJECTS)
def test_eager(subject: str) -> None:
    s = SUBJECTS[subject]
    for composition in (lambda k: k(s.x, s.a), lambda k: jax.grad(_loss(k), (0, 1))(s.x, s.a)):
        _same(composition(s.kernel), composition(s.twin), s.tolerance)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_export_with_an_open_batch_size(subject: str) -> None:
    s = SUBJECTS[subject]
    rows = lambda k: jax.vmap(jax.value_and_grad(_loss(k)), (0, None))  # noqa: E731
    (size,) = jax.export.symbolic_shape("b")
    shapes = (jax.ShapeDtypeStruct((size, *s.x.shape), s.x.dtype), jax.ShapeDtypeStruct((), s.x.dtype))
    program = export(jax.jit(rows(s.kernel)))(*shapes)
    for batch in (s.rows, s.rows[:1]):
        _same(program.call(batch, s.a), rows(s.twin)(batch, s.a), s.tolerance)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_donated_arguments(subject: str) -> None:
    s = SUBJECTS[subject]
    update = lambda k: lambda x, a: x - 0.1 * jax.grad(_loss(k))(x, a)  # noqa: E731
    wanted = update(s.twin)(s.x, s.a)
    _same(jax.jit(update(s.kernel), donate_argnums=0)(jnp.array(s.x), s.a), wanted, s.tolerance)


@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name != "f32"])
def test_check_grads(subject: str) -> None:
    s = SUBJECTS[subject]
    check_grads(s.kernel, (s.x, s.a), order=2, atol=1e-5, rtol=1e-5)


def test_check_grads_in_single_precision() -> None:
    s = SUBJECTS["f32"]
    check_grads(s.kernel, (s.x, s.a), order=2, atol=0.05, rtol=0.05, eps=1e-2)
