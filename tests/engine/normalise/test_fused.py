"""Loops whose primal sweep runs the reverse one as well: which of a function, and the functions that they become."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig

SOURCE = """
#include <math.h>
double f(const double *x, long n) {
    double s = 0, a = 0.1;
    for (long i = 0; i < n; i++) s += sin(x[i]) * x[i];
    for (long i = 0; i < n; i++) a = 0.5 * a + x[i] * a * a;
    for (long i = 0; i < n; i++) {
        double v = 1;
        for (long j = 0; j < n; j++) v *= cos(x[i] - x[j]);
        s -= v;
    }
    return s + a;
}
"""
SIGNATURE = "f64(f64[n] x, i64 n)"
X = np.linspace(0.1, 0.4, 40)


def _text(**options: object) -> str:
    kernel = ig.load(SOURCE).kernel("f", SIGNATURE, **options)  # type: ignore[call-overload]
    return str(kernel.primal.pullback([0, 2]).stage.text)


def test_a_loop_becomes_two_functions() -> None:
    made = _text(checkpoint={7: "fused"})
    assert "define internal i64 @f.normal.fused.one.0(ptr " in made
    assert "define internal void @f.normal.fused.segments.0(ptr " in made
    assert ".segment." not in made, "no iteration reads what another one wrote"
    assert ".one." not in _text()


def test_with_a_bound_of_memory_as_many_as_may_be() -> None:
    made = _text(tape_memory="64kB")
    assert "@f.normal.fused.one.1(" in made
    assert "@f.normal.fused.one.2(" not in made
    assert "@f.normal.segment.2(" in made
    wanted = ig.grad(ig.load(SOURCE).kernel("f", SIGNATURE))(X)
    for options in ({"tape_memory": "2kB"}, {"checkpoint": {5: "fused", 6: 3, 7: "fused"}}):
        kernel = ig.load(SOURCE).kernel("f", SIGNATURE, **options)  # type: ignore[call-overload]
        np.testing.assert_allclose(ig.grad(kernel)(X), wanted, rtol=1e-13)


@pytest.mark.parametrize(("place", "message"), [
    (9, "the loop at 9 has no fused schedule"),
    (6, "the loop at 6 has no fused schedule"),
    (3, "there is no loop at `3`"),
])  # fmt: skip
def test_places_without_such_a_loop(place: int, message: str) -> None:
    with pytest.raises(ig.Unsupported, match=message):
        _text(checkpoint={place: "fused"})


ENDS = """#include <vector>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
static double lse(const std::vector<double> &v) {
  double top = v[0], s = 0; for (size_t i = 1; i < v.size(); i++) top = std::max(top, v[i]);
  for (double y : v) s += std::exp(y - top); return top + std::log(s); }
extern "C" double vectors(const double *x, const double *w, int n, int d, int k) {
  double s = 0;
  for (int p = 0; p < n; p++) {
    std::vector<double> centred(d), scaled(d), terms(k);
    for (int j = 0; j < k; j++) {
      for (int i = 0; i < d; i++) centred[i] = x[p * d + i] - w[j * d + i];
      for (int i = 0; i < d; i++) scaled[i] = centred[i] * std::exp(w[j * d + i]);
      double t = 0; for (double y : scaled) t += y * y;
      terms[j] = -0.5 * t; }
    s += lse(terms); }
  return s; }
extern "C" double refused(const double *x, const double *w, int n, int d, int k) {
  double s = 0;
  for (int p = 0; p < n; p++) {
    double terms[16], t = 0;
    if (x[p * d + 1] > 1e6) throw std::runtime_error("far");
    for (int j = 0; j < k; j++) terms[j] = std::sin(x[p * d] * w[j * d + 1]);
    for (int j = 0; j < k; j++) t += std::exp(terms[j] * x[p * d + 2]);
    s += std::log(t); }
  return 2 * s; }
extern "C" double checked(const double *x, const double *w, int n, int d, int k) {
  double s = 0;
  for (int p = 0; p < n; p++) {
    std::vector<double> terms(k);
    for (int j = 0; j < k; j++) terms[j] = std::sin(x[p * d] * w[j * d + 1]);
    double t = 0;
    for (double y : terms) t += std::exp(y * x[p * d + 2]);
    if (!(t < 1e6)) throw std::runtime_error("far");
    s += std::log(t); }
  return 2 * s; }
"""
FIRST = {"vectors": 10, "refused": 21, "checked": 30}


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("how", ["fused", "recompute", 2])
def test_iterations_that_may_end_the_call(name: str, how: str | int) -> None:
    """A check that throws is no way for a loop to end: it is part of the function of an iteration."""
    signature, rng = "f64(f64[n,d] x, f64[k,d] w, i32 n, i32 d, i32 k)", np.random.default_rng(0)
    lib, x, w = ig.load(ENDS, language="c++"), rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    wanted = ig.grad(lib.kernel(name, signature, tape_memory=None), wrt=("x", "w"))(x, w)
    gradient = ig.grad(lib.kernel(name, signature, checkpoint={FIRST[name]: how}), wrt=("x", "w"))
    for made, right in zip(gradient(x, w), wanted, strict=True):
        np.testing.assert_allclose(made, right, rtol=1e-12, atol=1e-14)
    if name == "refused":
        x[3, 1] = 2e6
        with pytest.raises(ig.KernelError, match="far"):
            gradient(x, w)
