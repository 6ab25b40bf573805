"""Kernels of functions with structs: values, derivatives against differences and by the adjoint identity, records."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad import engine

SOURCE = r"""
#include <math.h>
struct body { double pos[3]; double mass; int kind; };
double energy(const struct body *b, long n) {
    double e = 0;
    for (long i = 0; i < n; i++) {
        if (b[i].kind == 7) continue;
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) { double d = b[i].pos[k] - b[j].pos[k]; r += d * d; }
            e -= b[i].mass * b[j].mass / sqrt(r);
        }
    }
    return e;
}
struct par { float g; double dt; };
int step(struct body *b, const struct par *p, struct par *o, int n) {
    if (p->dt < 0) return 1;
    for (int i = 0; i < n; i++) for (int k = 0; k < 3; k++) b[i].pos[k] += p->dt * p->g * b[i].mass * b[i].pos[k];
    o->dt = p->dt * b[0].pos[0];
    return 0;
}
struct table { double c[5][4]; float scale; };
struct pair { struct table t[2]; _Bool on; };
double weigh(const struct pair *p, double x) {
    double s = 0;
    for (int t = 0; t < 2; t++) for (int i = 0; i < 5; i++) for (int j = 0; j < 4; j++)
        s += p->t[t].scale * p->t[t].c[i][j] * p->t[t].c[i][j] * cos(x + i - j);
    return p->on ? s : -s;
}
"""
BODY = "struct body { f64[3] pos; f64 mass; i32 kind; };"
PAIR = "struct table { f64[5,4] c; f32 scale; }; struct pair { table[2] t; bool on; };"
RNG = np.random.default_rng(1)
POS, MASS, KIND = RNG.normal(size=(6, 3)), RNG.uniform(1, 2, 6), np.array([0, 7, 0, 1, 2, 0], np.int32)


@cache
def kernel(name: str) -> Any:
    signature = {
        "energy": BODY + "f64(body[n] bodies, i64 n)",
        "step": BODY + "struct par { f32 g; f64 dt; }; i32(inout body[n] b, par[] p, out par[] o, i32 n)",
        "weigh": PAIR + "f64(pair[] p, f64 x)",
    }[name]
    return irgrad.load(SOURCE).kernel(name, signature, errors={1: "backwards"} if name == "step" else None)


def record() -> Any:
    made = np.zeros(6, kernel("energy").dtype("body"))
    made["pos"], made["mass"], made["kind"] = POS, MASS, KIND
    return made


def by_hand(pos: Any, mass: Any) -> float:
    total = 0.0
    for i in range(6):
        for j in range(i):
            if KIND[i] != 7:
                total -= mass[i] * mass[j] / np.sqrt(0.01 + ((pos[i] - pos[j]) ** 2).sum())
    return total


def differences(function: Any, x: Any) -> Any:
    out = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        h = np.zeros(x.shape)
        h[i] = 1e-5
        out[i] = (function(x + h) - function(x - h)) / 2e-5
    return out


def test_dicts_and_records() -> None:
    fields = {"pos": POS, "mass": MASS, "kind": KIND}
    assert kernel("energy")(fields) == pytest.approx(by_hand(POS, MASS), rel=1e-13)
    assert kernel("energy")(record()) == kernel("energy")(fields) == kernel("energy")(bodies=record())


def test_gradients_are_right() -> None:
    value, gradient = engine.value_and_grad(kernel("energy"))(record())
    assert value == pytest.approx(by_hand(POS, MASS), rel=1e-13) and gradient["kind"] is None
    np.testing.assert_allclose(gradient["pos"], differences(lambda x: by_hand(x, MASS), POS), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(gradient["mass"], differences(lambda m: by_hand(POS, m), MASS), rtol=1e-6, atol=1e-7)
    only = engine.grad(kernel("energy"), wrt="bodies_mass")(record())
    np.testing.assert_allclose(only, gradient["mass"], rtol=1e-14)


def test_inout_and_out_structs_come_back_as_they_went_in() -> None:
    moved, out = kernel("step")(record(), {"g": np.float32(2), "dt": 0.5})
    wanted = POS * (1 + 0.5 * 2 * MASS[:, None])
    assert moved.dtype == record().dtype and out["dt"] == 0.5 * wanted[0, 0] and out["g"] == 0
    np.testing.assert_allclose(moved["pos"], wanted)
    np.testing.assert_array_equal(moved["kind"], KIND)
    moved, out = kernel("step")({"pos": POS, "mass": MASS, "kind": KIND}, {"g": np.float32(2), "dt": 0.5})
    assert isinstance(moved, dict) and isinstance(out, dict)
    np.testing.assert_allclose(moved["pos"], wanted)


def test_forward_and_reverse_agree_and_match_differences() -> None:
    flat = kernel("step").kernel
    primals = (POS, MASS, KIND, np.float32(2), 0.5)
    tangents = (RNG.normal(size=(6, 3)), RNG.normal(size=6), None, np.float32(0.25), 0.5)
    out, moved = engine.jvp(flat, primals, tangents)
    floats = [n for n, t in enumerate(moved) if t is not None]
    weights = [RNG.normal(size=np.shape(t)).astype(np.asarray(t).dtype) if t is not None else None for t in moved]
    _, pullback = engine.vjp(flat, *primals)
    gradients = iter(pullback(tuple(weights)))
    backward = sum(float(np.sum(next(gradients) * t)) for t in tangents if t is not None)
    forward = sum(float(np.sum(weights[n] * moved[n])) for n in floats)
    assert forward == pytest.approx(backward, rel=1e-6)
    h = 2.0**-10  # exact in f32

    def moved_by(s: float) -> Any:
        pairs = zip(primals, tangents, strict=True)
        return flat(*(p if t is None else np.asarray(p + s * t, np.asarray(p).dtype) for p, t in pairs))

    up, down = moved_by(h), moved_by(-h)
    np.testing.assert_allclose(moved[0], (up[0] - down[0]) / (2 * h), rtol=1e-5, atol=1e-5)
    assert len(out) == len(moved)


def test_a_status_names_the_function() -> None:
    with pytest.raises(irgrad.KernelError, match="`step` failed with status 1: backwards"):
        kernel("step")(record(), {"g": np.float32(2), "dt": -1.0})


def test_nested_structs_with_large_fields() -> None:
    c, scale = RNG.normal(size=(2, 5, 4)), np.array([2.0, 0.5], np.float32)
    tree = {"t": {"c": c, "scale": scale}, "on": False}
    i, j = np.arange(5)[:, None], np.arange(4)
    wanted = -(scale[:, None, None] * c**2 * np.cos(0.3 + i - j)).sum()
    assert kernel("weigh")(tree, 0.3) == pytest.approx(wanted, rel=1e-12)
    gradient, dx = engine.grad(kernel("weigh"), argnums=(0, 1))(tree, 0.3)
    np.testing.assert_allclose(gradient["t"]["c"], -2 * scale[:, None, None] * c * np.cos(0.3 + i - j), rtol=1e-12)
    np.testing.assert_allclose(gradient["t"]["scale"], -(c**2 * np.cos(0.3 + i - j)).sum((1, 2)), rtol=1e-6)
    assert dx == pytest.approx((scale[:, None, None] * c**2 * np.sin(0.3 + i - j)).sum(), rel=1e-12)
    made = np.zeros((), kernel("weigh").dtype("p"))
    made["t"]["c"], made["t"]["scale"] = c, scale
    assert kernel("weigh")(made, 0.3) == pytest.approx(wanted, rel=1e-12)


def test_batches_and_second_derivatives_of_the_fields() -> None:
    flat = kernel("energy").kernel
    many = np.stack([POS, 2 * POS, POS - 1])
    got = engine.batch_grad(flat, wrt="bodies_pos")(many, MASS, KIND)
    for row, pos in zip(got, many, strict=True):
        np.testing.assert_allclose(row, engine.grad(flat)(pos, MASS, KIND), rtol=1e-12)
    direction = RNG.normal(size=(6, 3))
    product = engine.hvp(flat, (POS, MASS, KIND), direction)
    up, down = (engine.grad(flat)(POS + s * 1e-6 * direction, MASS, KIND) for s in (1, -1))
    np.testing.assert_allclose(product, (up - down) / 2e-6, rtol=1e-5, atol=1e-5)


def test_the_order_of_fields_is_part_of_the_key() -> None:
    library = irgrad.load("struct p { double a, b; }; double f(const struct p *p) { return p->a + 10 * p->b; }")
    first, second = (library.kernel("f", f"struct p {{ f64 {a}; f64 {b}; }}; f64(p[] p)") for a, b in ("ab", "ba"))
    assert first({"a": 1.0, "b": 2.0}) == 21 and second({"a": 1.0, "b": 2.0}) == 12
    assert first.kernel.primal.key != second.kernel.primal.key
    assert engine.grad(second)({"a": 1.0, "b": 2.0}) == {"a": 10.0, "b": 1.0}


def test_what_is_refused() -> None:
    library = irgrad.load(SOURCE)
    for fields, because in (
        ("f64[4] pos; f64 mass; i32 kind;", "has 4 x double at byte 0 there, the source 3 x double at byte 0"),
        ("f64[3] pos; f64 mass; i64 kind;", "has 1 x i64 at byte 32 there, the source 1 x i32 at byte 32"),
        ("f64[3] pos; f32 mass; i32 kind;", "has 1 x float at byte 24 there, the source 1 x double at byte 24"),
        ("f64[3] pos; f64 mass;", "has nothing there, the source 1 x i32 at byte 32"),
    ):
        with pytest.raises(irgrad.SignatureError, match=f"`struct body` is another one.*(.|\n)*{because}"):
            library.kernel("energy", f"struct body {{ {fields} }}; f64(body[n] bodies, i64 n)")
    with pytest.raises(irgrad.SignatureError, match=r"has 4 x table at byte 0 there, the source 2 x table at byte 0"):
        library.kernel("weigh", PAIR.replace("table[2]", "table[4]") + "f64(pair[] p, f64 x)")
    with pytest.raises(irgrad.SignatureError, match=r"the number of structs `body.m. bodies` is not known"):
        library.kernel("energy", BODY + "f64(body[m] bodies, i64 n)")
    with pytest.raises(irgrad.SignatureError, match="contradicts the function"):
        library.kernel("energy", BODY + "f64(body[n] bodies, f64 n)")
    with pytest.raises(irgrad.SignatureError, match="`nobody` is no struct"):
        kernel("energy").dtype("nobody")
    with pytest.raises(irgrad.SignatureError, match="bodies does not fit its template"):
        kernel("energy")({"pos": POS, "mass": MASS})
    with pytest.raises(irgrad.ShapeError, match="`bodies_mass` has extent 5 on axis 0, wanted 6"):
        kernel("energy")({"pos": POS, "mass": MASS[:5], "kind": KIND})
