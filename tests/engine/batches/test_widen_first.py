"""Derivatives of widened functions: loops of different lengths, as lanes, against single calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle.differences import five_point

import irgrad
from irgrad import engine
from irgrad.engine.batches.widen_first import widened_first
from irgrad.engine.kernel.programs import Program

HEAD = "#include <math.h>\n"
RNG = np.random.default_rng(8)
NEWTON = """double f(double x, double c, long most) {
    long it = 0; double d;
    do { d = (x * x * x + exp(0.1 * x) - c) / (3 * x * x + 0.1 * exp(0.1 * x)); x -= d; it++; }
    while (fabs(d) > 1e-13 && it < most);
    return x * it; }"""
ENTERED = "double f(double x, double c, long most) { while (x < 2) x += c * c + 0.1 * sin(x) + 0.2; return x * c; }"
WALK = """double f(double x, double c, long most) {
    double s = 0; for (long k = 0; k < most; k++) {
        double z = x + k; do { z = sqrt(z) + c; s += z; } while (z > 1.9 + c && s < 50); }
    return s; }"""
OVERFLOWS = """double f(double x, double c, long most) {
    double s = 0; do { s += exp(x); x *= c; } while (x < 700); return log(s); }"""
UNTAKEN = """double f(double x, double c, long most) {
    double s = 0; do { if (x < 3) s += exp(x * x); else s += 1 / x; x *= c; } while (x < 100); return s; }"""
SIDES = """double f(double x, double c, long most) {
    double s = 0; do {
        if (x < 4) { for (int k = 0; k < 9; k++) s += exp(-x * x / (k + 1)) * log(5 - x); s *= sqrt(4.1 - x); }
        else if (x < 30) s += c / x; else s += cos(x) / x;
        x *= c; } while (x < 1e4);
    return s; }"""
SOURCES = {
    "newton": NEWTON, "entered": ENTERED, "walk": WALK, "overflows": OVERFLOWS, "untaken": UNTAKEN, "sides": SIDES,
}
SIGNATURE = "f64(f64 x, f64 c, i64 most)"


def _kernel(name: str) -> Any:
    return irgrad.load(HEAD + SOURCES[name]).kernel("f", SIGNATURE)


@pytest.mark.parametrize("width", ("auto", 3))
@pytest.mark.parametrize("name", SOURCES)
def test_samples_leave_loops_at_different_times(name: str, width: int | str) -> None:
    """Also where one more iteration, or the side of a branch that is not taken, overflows: the derivative of what is
    thrown away is infinite, and must not become 0 x inf."""
    kernel, n = _kernel(name), 43
    x, c = RNG.uniform(0.5, 3, size=n), RNG.uniform(1.5, 6, size=n)
    single = engine.value_and_grad(kernel, wrt=("x", "c"))
    wanted = [single(a, b, 9) for a, b in zip(x, c, strict=True)]
    made = engine.batch_value_and_grad(kernel, wrt=("x", "c"), in_axes=(0, 0, None), width=width)
    value, (dx, dc) = made(x, c, 9)
    assert "widened before it is differentiated" in engine.explain_batch(made, x, c, 9)
    np.testing.assert_allclose(value, [v for v, _ in wanted], rtol=1e-12)
    np.testing.assert_allclose(dx, [g[0] for _, g in wanted], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(dc, [g[1] for _, g in wanted], rtol=1e-10, atol=1e-11)
    tangents = np.ones(n), 2 * np.ones(n), None
    moved = engine.batch_jvp(kernel, (x, c, 9), tangents, in_axes=(0, 0, None), width=width)[1]
    np.testing.assert_allclose(moved, dx + 2 * dc, rtol=1e-10, atol=1e-10)


def test_gradients_against_differences() -> None:
    kernel, c = _kernel("walk"), np.array([1.6, 2.3, 3.1, 4.4, 5.2, 1.9, 2.7, 3.3])
    dc = engine.batch_grad(kernel, wrt="c", in_axes=(None, 0, None))(2.0, c, 3)
    for i in range(8):
        assert dc[i] == pytest.approx(five_point(lambda t, i=i: kernel(2.0, c[i] + t, 3)), rel=1e-7)


def test_nan_leaves_its_loop_alone() -> None:
    kernel, x, c = _kernel("newton"), RNG.uniform(1, 3, size=20), RNG.uniform(2, 20, size=20)
    made = engine.batch_value_and_grad(kernel, wrt=("x", "c"), in_axes=(0, 0, None))
    good = made(x, c, 30)
    x[13] = np.nan
    bad = made(x, c, 30)
    keep = np.arange(20) != 13
    for a, b in zip([bad[0], *bad[1]], [good[0], *good[1]], strict=True):
        assert np.array_equal(a[keep], b[keep])
    assert np.isnan(bad[0][13])


def _program(kernel: Any) -> Program:
    return kernel.primal.pullback((0, 1, 3))


def test_what_is_shared_and_differentiated_stays_in_the_loop() -> None:
    kernel = _kernel("newton")
    program = _program(kernel)
    uses = ["in one" if slot.index in (1, 2) and not slot.steps else "each" for slot in program.slots]
    with pytest.raises(irgrad.Unsupported, match="`c` is differentiated and the same for all samples"):
        widened_first(program, uses, 4, paying=True)
    made = engine.batch_grad(kernel, wrt="c", in_axes=(0, None, None), reduce="sum")
    x = np.linspace(1, 3, 9)
    text = engine.explain_batch(made, x, 5.0, 30)
    assert "loop: sample after sample" in text  # with the reasons of both attempts
    assert "; widened before it is differentiated: `c` is differentiated and the same for all samples" in text
    assert made(x, 5.0, 30) == pytest.approx(sum(engine.grad(kernel, wrt="c")(v, 5.0, 30) for v in x), rel=1e-11)


def test_second_derivatives() -> None:
    kernel = _kernel("walk")
    program = kernel.primal.pullback((0, 1, 3))
    twice = program.jvp_only(tuple(i for i, s in enumerate(program.slots) if s.index in (0, 1, 3)))
    uses = ["in one" if slot.index == 2 else "each" for slot in twice.slots]
    name, text = widened_first(twice, uses, 4, paying=True)
    assert f"@{name}(" in text and "<4 x double>" in text
