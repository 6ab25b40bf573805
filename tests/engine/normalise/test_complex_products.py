"""A complex product is one operation, where a compiler wrote the formula and its test; anything else stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.complex_products import join_complex_products

PRODUCT = """define void @f(double %a, double %b, double %c, double %d, ptr %out) {
entry:
  %ac = fmul double %a, %c
  %bd = fmul double %b, %d
  %ad = fmul double %a, %d
  %bc = fmul double %b, %c
  %r = fsub double %ac, %bd
  %i = fadd double %bc, %ad
  %rnan = fcmp uno double %r, 0.000000e+00
  br i1 %rnan, label %half, label %after
half:
  %inan = fcmp uno double %i, 0.000000e+00
  br i1 %inan, label %slow, label %after
slow:
  %s = call { double, double } @__muldc3(double %a, double %b, double %c, double %d)
  %sr = extractvalue { double, double } %s, 0
  %si = extractvalue { double, double } %s, 1
  br label %after
after:
  %re = phi double [ %r, %entry ], [ %r, %half ], [ %sr, %slow ]
  %im = phi double [ %i, %entry ], [ %i, %half ], [ %si, %slow ]
  %sum = fadd double %re, %im
  store double %sum, ptr %out
  ret void
}
declare { double, double } @__muldc3(double, double, double, double)
"""


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


ONE_TEST = changed(
    PRODUCT, ("  br i1 %rnan, label %half, label %after\nhalf:\n", ""),
    (", [ %r, %half ]", ""), (", [ %i, %half ]", ""),
    ("  br i1 %inan", "  %both = select i1 %rnan, i1 %inan, i1 false\n  br i1 %both"),
)  # fmt: skip
ORDERED = changed(
    ONE_TEST, ("fcmp uno", "fcmp ord"), ("select i1 %rnan, i1 %inan, i1 false", "or i1 %rnan, %inan"),
    ("label %slow, label %after", "label %after, label %slow"),
)  # fmt: skip
CONJUGATE = changed(
    PRODUCT, ("  %ac =", "  %m = fneg double %b\n  %ac ="), ("%r = fsub double", "%r = fadd double"),
    ("%i = fadd double %bc, %ad", "%i = fsub double %ad, %bc"),
    ("@__muldc3(double %a, double %b", "@__muldc3(double %a, double %m"),
)  # fmt: skip
ALIKE = {"two tests": PRODUCT, "one test": ONE_TEST, "ordered": ORDERED, "of a conjugate": CONJUGATE}
OTHER = {
    name: changed(PRODUCT, *changes)
    for name, changes in {
        "not the formula": [("fsub double %ac, %bd", "fadd double %ac, %bd")],
        "other factors": [("%ac = fmul double %a, %c", "%ac = fmul double %a, %d")],
        "one part": [("%inan = fcmp uno double %i", "%inan = fcmp uno double %r")],
        "fused": [("%r = fsub double", "%r = fsub contract double")],
        "parts exchanged": [("%s, 0", "%s, 2"), ("%s, 1", "%s, 0"), ("%s, 2", "%s, 1")],
        "work on the slow way": [("  %sr =", "  store double %b, ptr %out\n  %sr =")],
        "tested the other way": [("label %slow, label %after\nslow", "label %after, label %slow\nslow")],
    }.items()
} | {"either part": changed(ONE_TEST, ("i1 %inan, i1 false", "i1 true, i1 %inan"))}


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_the_product_is_one_operation(text: str) -> None:
    module = read(text)
    fn = module.functions["f"]
    assert join_complex_products(module, fn) == 1
    names = [i.callee_name for i in fn.instructions() if i.opcode == "call"]
    assert names == ["irgrad.complex_product.f64"]
    assert len(fn.blocks) == 1
    added = next(i for i in fn.instructions() if i.name == "sum")
    assert [(o.opcode, o.indices) for o in added.operands] == [("extractvalue", (0,)), ("extractvalue", (1,))]  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_what_only_looks_like_one_stays(text: str) -> None:
    module = read(text)
    assert join_complex_products(module, module.functions["f"]) == 0


SOURCE = """
#include <complex.h>
T horner(const T complex *c, const T complex *z, long n)
{
    T complex w = 0;
    for (long k = n - 1; k >= 0; k--)
        w = w * z[0] + c[k];
    return creal(w) + cimag(w) * creal(conj(w) * w * w);
}
void product(const T complex *a, const T complex *b, T complex *y)
{
    *y = *a * *b;
}
T complex __mulXc3(T, T, T, T);
void helper(const T complex *a, const T complex *b, T complex *y)
{
    *y = __mulXc3(creal(*a), cimag(*a), creal(*b), cimag(*b));
}
"""


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kernel(dtype: str, tmp_path: Path) -> Callable[[str, str], irgrad.Kernel]:
    path, double = tmp_path / "complex.c", dtype == "float64"
    path.write_text(re.sub(r"\bT\b", "double" if double else "float", SOURCE.replace("X", "d" if double else "s")))
    lib = irgrad.load(path)
    return lambda name, signature: lib.kernel(name, re.sub(r"\bT\b", "f64" if double else "f32", signature))


def test_derivatives_of_a_loop_of_products(kernel: Callable[[str, str], irgrad.Kernel], dtype: str) -> None:
    """Against differences of the polynomial in Python's complex numbers: reverse, forward, forward over reverse."""
    k = kernel("horner", "T(T[n,2] c, T[1,2] z, i64 n)")
    assert "@irgrad.complex_product." in k.primal.pullback([0, 1], 1).ir
    rng = np.random.default_rng(3)
    point, way = ([rng.uniform(-1, 1, (n, 2)) for n in (5, 1)] for _ in range(2))

    def along(t: float) -> float:
        c, z = (x + t * v for x, v in zip(point, way, strict=True))
        w = complex(0)
        for row in c[::-1]:
            w = w * complex(*z[0]) + complex(*row)
        return w.real + w.imag * (w.conjugate() * w * w).real

    h = 1e-3
    slope = (8 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12 * h)
    curvature = (16 * (along(h) + along(-h)) - along(2 * h) - along(-2 * h) - 30 * along(0)) / (12 * h * h)
    inputs, tangents = ([x.astype(dtype) for x in pair] for pair in (point, way))
    rtol = 1e-8 if dtype == "float64" else 1e-4

    def times(cotangents: Sequence[np.ndarray]) -> float:
        return float(sum(np.vdot(g, v) for g, v in zip(cotangents, tangents, strict=True)))

    assert np.isclose(k(*inputs), along(0), rtol=rtol)
    assert np.isclose(times(irgrad.grad(k, argnums=(0, 1))(*inputs)), slope, rtol=rtol)
    assert np.isclose(irgrad.jvp(k, inputs, tangents)[1], slope, rtol=rtol)
    assert np.isclose(times(irgrad.hvp(k, inputs, tangents, argnums=(0, 1))), curvature, rtol=rtol)


def test_infinities_are_recovered_as_by_the_compiler(kernel: Callable[[str, str], irgrad.Kernel], dtype: str) -> None:
    """The value beside a derivative is that of the compiler's own function, also of what is infinite, NaN or large."""
    product, helper = (kernel(name, "void(T[2] a, T[2] b, out T[2] y)") for name in ("product", "helper"))
    beside = irgrad.jvp(product)
    odd = np.array([0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, np.finfo(dtype).max], dtype)
    for at in np.ndindex(*(len(odd),) * 4):
        a, b = odd[list(at[:2])], odd[list(at[2:])]
        assert np.array_equal(beside((a, b), (a, b))[0], helper(a, b), equal_nan=True), (a, b)
