"""Masked accesses of memory as branches: what they read and write, what they leave alone, and their derivatives."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest
from shares import fast

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.masked import masked_memory

P = ctypes.c_void_p
MASKS = list(itertools.product((0, 1), repeat=4))
TYPES = {"load": "ptr, {m}, {v}", "expandload": "ptr, {m}, {v}", "gather": "<4 x ptr>, {m}, {v}",
         "store": "{v}, ptr, {m}", "compressstore": "{v}, ptr, {m}", "scatter": "{v}, <4 x ptr>, {m}"}  # fmt: skip


def _function(kind: str, align: int = 8) -> str:
    """f(p, m, v, r): p is read or written under the mask m != 0; v is stored, or stands in; r gets what is loaded."""
    vector = "<4 x double>"
    stores = kind in ("store", "compressstore", "scatter")
    pointers = {"gather", "scatter"} & {kind}
    at = f"<4 x ptr> align {align} %ps" if pointers else f"ptr align {align} %p"
    args = f"{vector} %v, {at}, <4 x i1> %m" if stores else f"{at}, <4 x i1> %m, {vector} %v"
    space = "" if kind in ("expandload", "compressstore") else ".v4p0" if pointers else ".p0"
    name = f"llvm.masked.{kind}.v4f64{space}"
    call = f"call void @{name}({args})" if stores else f"%r = call {vector} @{name}({args})"
    types = TYPES[kind].format(m="<4 x i1>", v=vector)
    return f"""declare {"void" if stores else vector} @{name}({types})
define void @f(ptr %p, ptr %mp, ptr %vp, ptr %rp) {{
  %mi = load <4 x i64>, ptr %mp, align 8
  %m = icmp ne <4 x i64> %mi, zeroinitializer
  %v = load <4 x double>, ptr %vp, align 8
  {"%ps = load <4 x ptr>, ptr %p, align 8" if pointers else ""}
  {call}
  {"" if stores else "store <4 x double> %r, ptr %rp, align 8"}
  ret void
}}"""


def _expanded(text: str) -> str:
    return masked_memory(str(parse(text)))


@pytest.mark.parametrize("kind", TYPES)
def test_they_do_what_the_intrinsics_do(kind: str) -> None:
    text = _expanded(_function(kind))
    assert "@llvm.masked" not in text.partition("define")[2]
    f: Any = compile_module(text, ["f"], cache=False).function("f", None, P, P, P, P)
    for mask in MASKS:
        memory, v, r, m = np.arange(10.0, 14), np.arange(1.0, 5), np.zeros(4), np.array(mask, dtype=np.int64)
        # where the mask is off a pointer leads nowhere
        pointers = np.array([memory[3 - i :].ctypes.data if on else 0 for i, on in enumerate(mask)], dtype=np.int64)
        where = pointers if kind in ("gather", "scatter") else memory
        f(where.ctypes.data, m.ctypes.data, v.ctypes.data, r.ctypes.data)
        before, on = np.arange(10.0, 14), m.astype(bool)
        wanted, want = v.copy(), before.copy()
        if kind == "load":
            wanted[on] = before[on]
        elif kind == "expandload":
            wanted[on] = before[: on.sum()]
        elif kind == "gather":
            wanted[on] = before[::-1][on]
        elif kind == "store":
            want[on] = v[on]
        elif kind == "compressstore":
            want[: on.sum()] = v[on]
        else:
            want[::-1][on] = v[on]
        if "r = call" in _function(kind):
            np.testing.assert_array_equal(r, wanted)
        np.testing.assert_array_equal(memory, want)


def test_alignment_is_that_of_one_element_at_most() -> None:
    assert "load double, ptr %p1, align 8" in _expanded(_function("load", 32))
    assert "load double, ptr %p1, align 4" in _expanded(_function("load", 4))
    assert "store double %e1, ptr %p1, align 1" in _expanded(_function("scatter", 8).replace("align 8 %ps", "%ps"))


def test_other_text_comes_back_as_it_is() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert masked_memory(text) is text


SOURCE = """
struct cell { double v; int id; double w; };
double f(const double *x, const int *idx, long n) {
    struct cell c[64];
    for (long i = 0; i < n; i++) { c[i].v = x[idx[i]]; c[i].id = idx[i]; c[i].w = 0; }
    for (long i = 0; i < n; i++) if (c[i].id & 1) c[i].w = c[i].v * x[i];
    double s = 0;
    for (long i = 0; i < n; i++) s += c[i].w * c[i].w + c[i].v * c[i].id;
    return s;
}
"""


def test_derivatives_of_what_a_vectoriser_wrote() -> None:
    """Gathers, scatters and masked accesses, structs behind vectors of pointers."""
    flags = ["-mavx512f", "-mavx512vl", "-fno-math-errno", "-ffast-math"]
    kernel = ig.load(SOURCE, opt="O3", flags=flags).kernel("f", "f64(f64[n] x, i32[n] idx, i64 n)")
    rng = np.random.default_rng(1)
    n = 37
    x, idx = rng.normal(size=n), rng.integers(0, n, n).astype(np.int32)
    odd = idx & 1
    w = np.where(odd, x[idx] * x, 0)
    want = np.zeros(n)
    np.add.at(want, idx, odd * 2 * w * x + idx)
    want += odd * 2 * w * x[idx]
    np.testing.assert_allclose(ig.engine.grad(kernel, wrt="x")(x, idx), want, rtol=1e-12)


TAILS = r"""
#include <math.h>
#include <immintrin.h>
#define P _Pragma("clang loop vectorize(enable) vectorize_predicate(enable)")
#define ARGUMENTS const double *restrict x, const double *restrict w
double sum(ARGUMENTS, long n) { double s = 0; P for (long i = 0; i < n; i++) s += w[0] * log(x[i]) / x[i]; return s; }
double sides(ARGUMENTS, long n) {
  double s = 0; P for (long i = 0; i < n; i++) s += x[i] > 0 ? w[i] * log(x[i]) * w[0] : w[1] * x[i]; return s; }
double map(ARGUMENTS, long n) {
  double y[64]; P for (long i = 0; i < n; i++) y[i] = w[0] * sqrt(x[i]) / x[i];
  double s = 0; for (long i = 0; i < n; i++) s += y[i] * i; return s; }
double stored(ARGUMENTS, long n) {
  double y[64]; P for (long i = 0; i < n; i++) if (x[i] > 0) y[i] = w[1] / x[i] * w[0]; else y[i] = w[i];
  double s = 0; for (long i = 0; i < n; i++) s += y[i] * i; return s; }
"""


@pytest.mark.parametrize("function", ["sum", "sides", "map", "stored"])
@pytest.mark.parametrize(
    "flags", fast(1, [["-march=native"], ["-march=x86_64_v4", "-ffast-math"], ["-march=x86_64_v3"]])
)
def test_masked_tails_of_vectorised_loops(function: str, flags: list[str]) -> None:
    """Lanes that are masked out are poison, and their slopes would be infinite: they have no part in the gradient."""
    signature = "f64(f64[n] x, f64[n] w, i64 n)"
    scalar = ig.load(TAILS).kernel(function, signature)
    kernel = ig.load(TAILS, opt="O3", flags=flags).kernel(function, signature)
    for n in (5, 8, 19):
        x, w = np.linspace(0.5, 2, n), np.linspace(1, 2, n)
        if function in ("sides", "stored"):
            x[1::3], x[2] = -1, 0
        for wrt in ("x", "w"):
            want = ig.engine.grad(scalar, wrt=wrt)(x, w)
            np.testing.assert_allclose(ig.engine.grad(kernel, wrt=wrt)(x, w), want, rtol=1e-12)
            np.testing.assert_allclose(ig.engine.jacfwd(kernel, wrt=wrt)(x, w), want, rtol=1e-12)


@pytest.mark.parametrize("opt", [None, "O0", "O2"])
def test_masked_loads_by_intrinsics_of_a_cpu(opt: str | None) -> None:
    source = """#include <immintrin.h>
    double f(const double *x) {
      __m256d a = _mm256_maskload_pd(x, _mm256_set_epi64x(0, -1, -1, -1));
      a = _mm256_div_pd(_mm256_mul_pd(a, a), _mm256_set1_pd(x[3]));
      double r[4]; _mm256_storeu_pd(r, a); return r[0] + 2 * r[1] + 3 * r[2];
    }"""
    kernel = ig.load(source, opt=opt, flags=["-march=haswell"]).kernel("f", "f64(f64[4] x)")
    x = np.array([0.5, 0.3, 1.2, 0.7])
    want = [*(2 * x[:3] * [1, 2, 3] / x[3]), -(x[:3] ** 2 @ [1, 2, 3]) / x[3] ** 2]
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), want, rtol=1e-13)
