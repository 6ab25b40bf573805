"""`Kernel.tree`: kernels over dicts, lists, named tuples, dataclasses; gradients; what does not fit is refused."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.kernel.trees import leaves_of


@dataclasses.dataclass
class Bodies:
    pos: Any
    mass: Any


@dataclasses.dataclass(frozen=True)
class World:
    bodies: Any
    name: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


POS, MASS = np.random.default_rng(0).normal(size=(5, 3)), np.arange(1.0, 6.0)
VALUE = sample("energy")(POS, MASS)
FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "dict": ([{"x": "pos", "m": "mass"}], [{"m": MASS, "x": POS}]),
    "nested": ([{"a": [{"x": "pos"}], "b": ("mass",)}], [{"a": [{"x": POS}], "b": (MASS,)}]),
    "two": (["mass", ["pos"]], [MASS, (POS,)]),
    "named tuple": ([Pair("pos", "mass")], [Pair(POS, MASS)]),
    "dataclass": ([Bodies], [Bodies(POS, MASS)]),
    "dataclasses": ([World(Bodies("pos", "mass"))], [World(Bodies(POS, MASS), "ignored")]),
    "renamed": ([Bodies("pos", "mass")], [Bodies(POS, MASS)]),
}


@pytest.mark.parametrize("name", FORMS)
def test_values(name: str) -> None:
    templates, args = FORMS[name]
    assert sample("energy").tree(*templates)(*args) == VALUE


def test_gradients_are_trees() -> None:
    both = engine.grad(sample("energy"), wrt=("pos", "mass"))(POS, MASS)
    tree = sample("energy").tree(World(Bodies("pos", "mass")))
    value, gradient = engine.value_and_grad(tree)(World(Bodies(POS, MASS)))
    assert value == VALUE and isinstance(gradient, World) and gradient.name is None
    np.testing.assert_allclose(gradient.bodies.pos, both[0])
    np.testing.assert_allclose(gradient.bodies.mass, both[1])
    split = sample("energy").tree({"m": "mass"}, ["pos"])
    rows = engine.grad(split, argnums=(1, 0))({"m": MASS}, [POS])
    np.testing.assert_allclose(rows[0][0], both[0])
    np.testing.assert_allclose(rows[1]["m"], both[1])
    np.testing.assert_allclose(engine.grad(split, wrt="pos")({"m": MASS}, [POS]), both[0])


def test_leaves_without_a_derivative_are_none() -> None:
    tree = sample("gather").tree({"x": "x", "i": "index"})
    gradient = engine.grad(tree)({"x": np.arange(4.0), "i": np.array([1, 1, 3], np.int32)})
    assert gradient["i"] is None and gradient["x"].tolist() == [0, 4, 0, 6]


def test_results_take_the_shape_of_returns() -> None:
    tree = sample("two").tree(["x"], returns={"sum": "return", "rest": Pair("y", "z"), "none": None})
    out = tree([np.array([1.0, 2.0])])
    assert out["sum"] == 3 and out["rest"].second == 2 and out["none"] is None
    np.testing.assert_array_equal(out["rest"].first, np.sin([1.0, 2.0]))
    assert len(sample("two").tree(["x"])([np.ones(2)])) == 3


def test_fixed_arguments() -> None:
    tree = sample("scale").tree({"x": "x"}, returns={"x": "x"}, fixed={"dt": 3.0})
    assert tree({"x": np.ones(2)})["x"].tolist() == [3, 3]
    assert "dt" not in leaves_of(tree.templates[0])


@pytest.mark.parametrize(("templates", "options", "message"), [
    ([{"x": "pos"}], {}, "argument `mass` is missing"),
    ([{"x": "pos", "m": "maas"}], {}, "there is no argument `maas`"),
    ([{"x": "pos", "m": "mass", "again": "pos"}], {}, "argument `pos` is given twice"),
    ([{"x": "pos", "m": "mass"}], {"fixed": {"mass": MASS}}, "argument `mass` is given twice"),
    ([{"x": "pos", "m": 3.0}], {}, "3.0 is no template"),
    ([{"x": "pos", "m": "mass"}], {"returns": {"e": "energy"}}, "there is no output `energy`"),
])  # fmt: skip
def test_bad_templates_are_refused(templates: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(irgrad.SignatureError, match=message):
        sample("energy").tree(*templates, **options)


@pytest.mark.parametrize(("name", "args", "message"), [
    ("dict", [{"x": POS}], "argument 0 does not fit its template"),
    ("dict", [{"x": POS, "m": MASS, "v": POS}], "got a dict with the keys 'x', 'm', 'v', wanted a dict"),
    ("nested", [{"a": [{"x": POS, "y": 1}], "b": (MASS,)}], r"argument 0\['a'\]\[0\] does not fit"),
    ("nested", [{"a": [{"x": POS}], "b": MASS}], r"argument 0\['b'\] does not fit its template"),
    ("two", [MASS], "got 1 arguments, wanted 2"),
    ("dataclasses", [World(MASS)], "argument 0.bodies does not fit"),
])  # fmt: skip
def test_trees_that_do_not_fit_are_refused(name: str, args: list[Any], message: str) -> None:
    tree = sample("energy").tree(*FORMS[name][0])
    with pytest.raises(irgrad.SignatureError, match=message):
        tree(*args)


def test_bad_requests_for_gradients_are_refused() -> None:
    tree = sample("gather").tree({"i": "index"}, "x")
    with pytest.raises(irgrad.ActivityError, match="there is nothing to differentiate"):
        engine.grad(tree)
    with pytest.raises(irgrad.SignatureError, match="there is no argument 2"):
        engine.grad(tree, argnums=2)
    with pytest.raises(irgrad.SignatureError, match="both `wrt` and `argnums`"):
        engine.grad(tree, wrt=0, argnums=1)
    with pytest.raises(irgrad.SignatureError, match="a kernel over trees"):
        engine.jacrev(tree)


STRUCTS = """struct body { double pos[3]; double mass; };
double energy(const struct body *b, double soft, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) {
    double d = soft;
    for (int k = 0; k < 3; k++) { double t = b[i].pos[k] - b[j].pos[k]; d += t * t; }
    s += b[i].mass * b[j].mass / d;
  }
  return s;
}"""
BODIES = "struct body { f64[3] pos; f64 mass; }; f64(body[n] bodies, f64 soft, i64 n)"


def test_all_derivatives_of_trees() -> None:
    """Of structs: forward, reverse, second order, against the kernel of leaves; leaves without a tangent are fixed."""
    kernel = irgrad.load(STRUCTS).kernel("energy", BODIES)
    rng = np.random.default_rng(0)
    bodies, v = ({"pos": rng.normal(size=(4, 3)), "mass": rng.uniform(1, 2, 4)} for _ in range(2))
    names = [p.name for p in kernel.kernel.signature.arguments]
    plain = {"bodies_pos": bodies["pos"], "bodies_mass": bodies["mass"], "soft": 0.3}
    leaves = [plain[name] for name in names]
    gradient = irgrad.grad(kernel)(bodies, 0.3)
    along = sum((gradient[key] * v[key]).sum() for key in v)

    out, tangent = irgrad.jvp(kernel, (bodies, 0.3), (v, None))
    assert out == kernel(bodies, 0.3)
    assert tangent == pytest.approx(along)
    assert irgrad.jvp(kernel)((bodies, 0.3), ({"pos": v["pos"], "mass": None}, None))[1] == pytest.approx(
        (gradient["pos"] * v["pos"]).sum())
    out, pullback = irgrad.vjp(kernel, bodies, 0.3)
    first, soft = pullback(2.0)
    np.testing.assert_allclose(first["mass"], 2 * gradient["mass"])
    np.testing.assert_allclose(soft, 2 * irgrad.grad(kernel, wrt="soft")(bodies, 0.3))
    np.testing.assert_allclose(irgrad.vjp(kernel, wrt="bodies")(bodies, 0.3)[1](1.0)["pos"], gradient["pos"])
    second = irgrad.hvp(kernel, (bodies, 0.3), v)
    want = irgrad.hvp(kernel.kernel, leaves, (v["pos"], v["mass"]), wrt=("bodies_pos", "bodies_mass"))
    np.testing.assert_allclose(second["pos"], want[0])
    np.testing.assert_allclose(second["mass"], want[1])
    assert irgrad.check(kernel, bodies, 0.3).ok
    for bad in ([v], [v, None, None], [{"pos": v["pos"]}, None]):
        with pytest.raises(irgrad.IRGradError):
            irgrad.jvp(kernel, (bodies, 0.3), bad)
    with pytest.raises(irgrad.IRGradError, match="the tangent of `bodies_mass` is missing"):
        irgrad.hvp(kernel, (bodies, 0.3), {"pos": v["pos"], "mass": None})


def test_the_shape_of_results_holds_for_tangents_and_cotangents() -> None:
    source = "void f(const double *x, double *y, double *z) { y[0] = x[0] * x[1]; " \
             "z[0] = x[0] + x[1]; z[1] = x[0] * x[0]; }"
    kernel = irgrad.load(source).kernel("f", "void(f64[2] x, out f64[1] y, out f64[2] z)")
    tree = kernel.tree({"in": "x"}, returns={"a": "y", "b": ["z"]})
    x = np.array([2.0, 3.0])
    out, tangent = irgrad.jvp(tree, ({"in": x},), ({"in": np.array([1.0, 10.0])},))
    assert out["a"] == 6 and tangent["a"] == 23 and list(tangent["b"][0]) == [11, 4]
    _, pullback = irgrad.vjp(tree, {"in": x})
    (found,) = pullback({"a": np.array([1.0]), "b": [np.array([10.0, 100.0])]})
    np.testing.assert_allclose(found["in"], [3 + 10 + 400, 2 + 10])
