"""Drafts of signatures from the types of a source in Rust, and structs whose fields lie as rustc likes."""

from __future__ import annotations

import numpy as np
import pytest
from toolchains import needs_rustc

import irgrad
from irgrad import engine

SOURCE = """
pub struct Body { pub mass: f64, pub kind: i32, pub pos: [f64; 3], pub alive: bool }
impl Body { pub fn inertia(&self, axis: &[f64; 3]) -> f64 {
    self.mass * self.pos.iter().zip(axis).map(|(p, a)| p * a).sum::<f64>() } }
pub fn total(bodies: &[Body], weight: f64) -> f64 { bodies.iter().map(|b| b.mass * b.pos[0] * weight).sum() }
pub fn shift(x: &mut [[f64; 2]], by: &[f64], n: usize) { for i in 0..n { x[i][0] += by[i]; } }
pub fn turned(x: &[f64; 3]) -> [f64; 3] { [x[1], x[2], x[0]] }
pub fn maybe(x: f64) -> Option<f64> { (x > 0.0).then_some(x) }
pub fn dot(x: &[f64], y: &[f64]) -> f64 { x.iter().zip(y).map(|(a, b)| a * b).sum() }
pub fn plain(mut x: f64) -> f64 { x += 1.0; x * x }
"""
pytestmark = needs_rustc


@pytest.mark.parametrize(("name", "draft"), [
    ("total", "struct Body { f64 mass; f64[3] pos; i32 kind; bool alive; }; f64(Body[n] bodies, f64 weight)"),
    ("shift", "void(inout f64[n,2] x, f64[m] by, i64 n)"),
    ("maybe", "?(f64 x)"),
])  # fmt: skip
def test_drafts(name: str, draft: str) -> None:
    with pytest.raises(irgrad.SignatureError) as error:
        irgrad.load(SOURCE, language="rust").kernel(name)
    assert f"draft   {draft}" in str(error.value)


def test_types_that_settle_a_signature() -> None:
    lib = irgrad.load(SOURCE, language="rust")
    assert str(lib.kernel("turned").signature) == "status i32(out f64[3] result, f64[3] x)"
    assert lib.kernel("dot")(np.arange(3.0), np.arange(3.0)) == 5
    assert engine.grad(lib.kernel("plain"), wrt="x")(2.0) == 6


def test_structs_lie_as_rustc_has_them() -> None:
    lib = irgrad.load(SOURCE, language="rust")
    fields = "f64 mass; f64[3] pos; i32 kind; bool alive;"
    bodies = {"mass": np.array([1.0, 2]), "pos": np.arange(6.0).reshape(2, 3), "kind": np.zeros(2, np.int32),
              "alive": np.ones(2, bool)}  # fmt: skip
    total = lib.kernel("total", f"struct Body {{ {fields} }}; f64(Body[n] bodies, f64 weight)")
    assert total(bodies, 2.0) == 12
    gradient = engine.grad(total)(bodies, 2.0)
    np.testing.assert_allclose(gradient["mass"], [0, 6])
    np.testing.assert_allclose(gradient["pos"], [[2, 0, 0], [4, 0, 0]])
    inertia = lib.kernel("inertia", f"struct Body {{ {fields} }}; f64(Body[] self, f64[3] axis)")
    one = {name: value[1] for name, value in bodies.items()}
    np.testing.assert_allclose(inertia(one, np.array([1.0, 0, 2])), 2 * (3 + 10))
    with pytest.raises(irgrad.SignatureError, match=r"(?s)lies otherwise.*mass at byte 0, pos at byte 8.*repr\(C\)"):
        lib.kernel("total", "struct Body { f64 mass; i32 kind; f64[3] pos; bool alive; }; f64(Body[n] b, f64 weight)")
    with pytest.raises(irgrad.SignatureError, match="no struct `B` in the source"):
        lib.kernel("total", f"struct B {{ {fields} }}; f64(B[n] bodies, f64 weight)")
