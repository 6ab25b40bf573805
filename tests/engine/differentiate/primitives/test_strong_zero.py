"""Products with a strong zero: what they compute, and that their derivatives keep the tangent of a zero."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import Made, asked, make

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive

TEXT = """
declare double @irgrad.strong_mul.f64(double, double) nounwind willreturn memory(none)
declare double @irgrad.strong_mul_both.f64(double, double) nounwind willreturn memory(none)
define void @f(ptr %x, ptr %o) {
  %q = getelementptr double, ptr %x, i64 1
  %a = load double, ptr %x
  %s = load double, ptr %q
  %p = call double @irgrad.NAME.f64(double %a, double %s)
  store double %p, ptr %o
  ret void
}
"""


@pytest.mark.parametrize(("a", "s", "strong", "both"), [
    (2.0, 3.0, 6.0, 6.0), (0.0, np.inf, 0.0, 0.0), (0.0, np.nan, 0.0, 0.0), (np.inf, 0.0, np.nan, 0.0),
    (np.nan, 0.0, np.nan, np.nan),
])  # fmt: skip
@pytest.mark.parametrize("name", ["strong_mul", "strong_mul_both"])
def test_products(name: str, a: float, s: float, strong: float, both: float) -> None:
    made = make(TEXT.replace("NAME", name), "f", "forward", ["const", "dup"])
    out, tangent = np.ones(1), np.ones(1)
    made(np.array([a, s]), out, tangent)
    np.testing.assert_array_equal(out[0], strong if name == "strong_mul" else both)


@pytest.mark.parametrize("name", ["strong_mul", "strong_mul_both"])
@pytest.mark.parametrize("s", [3.0, np.inf])
def test_the_tangent_of_a_zero(name: str, s: float) -> None:
    """(a s)' = a' s + a s' with a = 0, a' = 2: what is 0 by structure stays 0, the rest is no comparison's victim."""
    made = make(TEXT.replace("NAME", name), "f", "forward", ["dup", "dup"])
    out, tangent = np.ones(1), np.ones(1)
    made(np.array([0.0, s]), np.array([2.0, np.inf]), out, tangent)
    assert (out[0], tangent[0]) == (0.0, 2 * s)
    made(np.array([0.0, np.inf]), np.array([0.0, np.nan]), out, tangent)
    assert (out[0], tangent[0]) == (0.0, 0.0)


@pytest.mark.parametrize("second", ["forward", "reverse"])
def test_second_derivatives(second: str) -> None:
    """The Hessian of a s is [[0, 1], [1, 0]], at a = 0 as well."""
    first = make(TEXT.replace("NAME", "strong_mul"), "f", "reverse", ["dup", "dup"])
    module = read(to_text(first.module), roots=[first.derived.name])  # x x^ o o^
    twice = Made(module, derive(module, asked(first.derived.name, second, ["dup", "dup", "const", "const"])))
    x, gradient, v, one = np.array([0.0, 3.0]), np.zeros(2), np.array([2.0, 5.0]), np.ones(1)
    if second == "forward":
        tangent = np.zeros(2)
        twice(x, v, gradient, tangent, np.zeros(1), one)
        assert gradient.tolist() == [3.0, 0.0] and tangent.tolist() == [5.0, 2.0]
    else:
        dx = np.zeros(2)
        twice(x, dx, gradient, v.copy(), np.zeros(1), one)
        assert dx.tolist() == [5.0, 2.0]
