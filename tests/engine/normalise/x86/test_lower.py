"""The pass over a function: what it takes apart, what it leaves, where locations go, and what users then see."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.ir.intrinsics import is_known
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_function
from irgrad.engine.normalise.x86.lower import lower_vector_intrinsics

ADD = "llvm.x86.avx512.add.pd.512"


def _rounded(way: int) -> str:
    module = read(f"""declare <8 x double> @{ADD}(<8 x double>, <8 x double>, i32 immarg)
define <8 x double> @f(<8 x double> %x) {{
  %y = call <8 x double> @{ADD}(<8 x double> %x, <8 x double> %x, i32 {way}), !dbg !1
  ret <8 x double> %y
}}
!1 = !{{}}""")
    lower_vector_intrinsics(module, module.functions["f"])
    assert not verify_function(module.functions["f"])
    return to_text(module).partition("define")[2]


@pytest.mark.parametrize("way", [4, 8])
def test_rounding_to_the_nearest_is_plain(way: int) -> None:
    assert "fadd <8 x double> %x, %x, !dbg !1" in _rounded(way)


@pytest.mark.parametrize("way", [9, 10, 11])
def test_rounding_to_one_side_stays(way: int) -> None:
    assert f"call <8 x double> @{ADD}" in _rounded(way)


def test_functions_without_them_are_not_touched() -> None:
    module = read("define double @f(double %x) {\n  %y = fadd double %x, %x\n  ret double %y\n}")
    assert not lower_vector_intrinsics(module, module.functions["f"])


def test_what_stays_is_refused_by_name() -> None:
    source = """#include <immintrin.h>
double f(const double *x) { __m512d a = _mm512_loadu_pd(x);
  return _mm512_reduce_add_pd(_mm512_range_pd(a, a, 0)); }
"""
    kernel = ig.load(source, flags=["-march=skylake-avx512"]).kernel("f", "f64(f64[8] x)")
    with pytest.raises(ig.MissingRuleError, match="an instruction of this CPU that has no derivative") as caught:
        ig.engine.grad(kernel)(np.ones(8))
    assert "range" in caught.value.because
    assert "plain C" in caught.value.fix


def test_names_of_products_of_lanes_are_known() -> None:
    for name in ("sse41.dppd", "sse41.dpps", "avx.dp.ps.256", "sse41.insertps", "sse41.ptestz"):
        assert is_known(f"llvm.x86.{name}", "x86_64-linux-gnu")


def test_second_derivatives_and_batches() -> None:
    source = """#include <immintrin.h>
double f(const double *x) {
  __m256d a = _mm256_loadu_pd(x), h = _mm256_hadd_pd(_mm256_mul_pd(a, a), a);
  double r[4];
  _mm256_storeu_pd(r, _mm256_addsub_pd(h, a));
  return r[0] * r[1] + r[2] * r[3];
}
"""
    plain = """double f(const double *x) {
  return (x[0] * x[0] + x[1] * x[1] - x[0]) * (x[0] + x[1] + x[1])
       + (x[2] * x[2] + x[3] * x[3] - x[2]) * (x[2] + x[3] + x[3]);
}
"""
    ours = ig.load(source, flags=["-mavx"]).kernel("f", "f64(f64[4] x)")
    expected = ig.load(plain).kernel("f", "f64(f64[4] x)")
    xs = np.random.default_rng(0).uniform(0.5, 2, (5, 4))
    np.testing.assert_allclose(ig.engine.hessian(ours)(xs[0]), ig.engine.hessian(expected)(xs[0]), 1e-13)
    np.testing.assert_allclose(ig.engine.batch_grad(ours)(xs), ig.engine.batch_grad(expected)(xs), 1e-13)


def test_calls_of_integers_are_left_alone() -> None:
    """They carry no derivative, and stay one instruction."""
    module = read("""declare <16 x i8> @llvm.x86.ssse3.pshuf.b.128(<16 x i8>, <16 x i8>)
define <16 x i8> @f(<16 x i8> %x) {
  %y = call <16 x i8> @llvm.x86.ssse3.pshuf.b.128(<16 x i8> %x, <16 x i8> %x)
  ret <16 x i8> %y
}""")
    assert not lower_vector_intrinsics(module, module.functions["f"])
    assert re.search(r"%y = call <16 x i8> @llvm\.x86\.ssse3\.pshuf\.b\.128", to_text(module))
