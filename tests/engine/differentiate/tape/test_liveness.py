"""What the primal sweep computes anyway: calls that only the tape asks for move into the reverse sweep."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, Made, gradient

from irgrad.engine.ir.model import Instruction

PAIRS = """
void f(double *x, double *m, long *n, double *o) {
    double e = 0;
    for (long i = 0; i < *n; i++)
        for (long j = i + 1; j < *n; j++) {
            double a = x[3 * i] - x[3 * j], b = x[3 * i + 1] - x[3 * j + 1], c = x[3 * i + 2] - x[3 * j + 2];
            e -= m[i] * m[j] * exp(-(a * a + b * b + c * c));
        }
    *o = %s;
}"""
WATCHED = """
void f(double *x, double *y, long *n, double *o) {
    double s = 0;
    for (long i = 0; i < *n; i++) { double r = exp(x[i] * sin(x[i])); s += r; y[i] = r; }
    *o = s * s;
}"""


def _own(made: Made, callee: str) -> list[Instruction]:
    return [i for i in made.function.instructions() if i in made.calls(callee)]


@pytest.mark.parametrize("result", ["e", "e * e"])
def test_what_only_the_tape_asks_for_is_computed_in_the_reverse_sweep(result: str) -> None:
    rng = np.random.default_rng(0)
    x, m, n = rng.normal(size=(30, 3)), rng.uniform(0.5, 1, 30), np.array([30])
    (dx, _), made = gradient(PAIRS % result, "f", "dccd", x, m, n, OUT, discard=[3])
    apart = x[:, None] - x[None]
    weight = np.outer(m, m) * np.exp(-np.square(apart).sum(-1))
    np.fill_diagonal(weight, 0.0)
    scale = 1.0 if result == "e" else -weight.sum()
    np.testing.assert_allclose(dx, scale * 2 * (weight[..., None] * apart).sum(1), rtol=1e-11, atol=1e-12)
    # e * e needs the sum, and with it every exponential in the primal sweep: they are saved then
    in_reverse = [i for i in _own(made, "llvm.exp") if (i.block.name or "").startswith("r.")]
    assert bool(in_reverse) == (result == "e")
    assert bool(made.calls("irgrad.tape.alloc")) == (result != "e")


def test_what_the_primal_computes_anyway_is_saved() -> None:
    x, n = np.linspace(0.1, 1, 500), np.array([500])
    (dx, _, _), made = gradient(WATCHED, "f", "ddcd", x, np.full(500, np.nan), n, OUT, discard=[3])
    r = np.exp(x * np.sin(x))
    np.testing.assert_allclose(dx, (2 * r.sum() + 1) * r * (np.sin(x) + x * np.cos(x)), rtol=1e-12)
    assert len(_own(made, "llvm.exp")) == 1
