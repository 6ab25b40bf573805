"""Sums of products that loops carry: split, compiled without an end of the process, the same numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.llvm import binding, parse
from irgrad.engine.codegen.ordered_sums import has_fused_products, split_products

LOOP = """
declare double @llvm.fmuladd.f64(double, double, double)
define double @f(ptr noalias %p, i64 %n, double %c, double %d) {
e:
  %h = call double @llvm.fmuladd.f64(double %c, double %d, double 1.000000e+00)
  br label %l
l:
  %i0 = phi i64 [ %n, %e ], [ %i, %l ]
  %s = phi double [ 5.000000e-01, %e ], [ %s2, %l ]
  %r = phi double [ 5.000000e-01, %e ], [ %"r 2", %l ]
  %i = add nsw i64 %i0, -1
  %a = getelementptr inbounds nuw double, ptr %p, i64 %i
  %v = load double, ptr %a, align 8
  %t = tail call double @llvm.fmuladd.f64(double %c, double %v, double %h)
  %s1 = fadd double %t, %s
  %s2 = tail call reassoc double @llvm.fmuladd.f64(double %c, double %v, double %s1)
  %k = tail call double @llvm.fmuladd.f64(double noundef %c, double %v, double %s)
  %"r 2" = tail call noundef nofpclass(nan) double @llvm.fmuladd.f64(double %d, double -2.000000e+00, double %r)
  %q = icmp samesign ugt i64 %i0, 1
  br i1 %q, label %l, label %x
x:
  %z = fadd double %s2, %"r 2"
  ret double %z
}
"""


def test_sums_that_a_loop_carries() -> None:
    made = split_products(LOOP)
    parse(made).verify()
    assert made.count("call") == 3  # %h and %t add to what no loop carries, %k says more of %c
    assert '%"s2.product" = fmul reassoc contract double %c, %v' in made
    assert '%s2 = fadd reassoc contract double %"s2.product", %s1' in made
    assert '%"r 2.product" = fmul contract double %d, -2.000000e+00' in made
    assert split_products(made) == made
    plain = LOOP.replace("fmuladd", "fma")
    assert split_products(plain) is plain


def test_sums_in_place() -> None:
    """Where no operation may change its place: one operation, or a product that is rounded, wherever it is."""
    ordered = LOOP.replace(" reassoc", "")
    fused, rounded = (split_products(ordered, fused=fused) for fused in (True, False))
    for made in (fused, rounded):
        parse(made).verify()
        assert "contract" not in made and made.count("@llvm.fmuladd.f64(double ") == 2  # %h and %k stay
    assert "%s2 = call double @llvm.fma.f64(double %c, double %v, double %s1)" in fused
    assert fused.count("declare double @llvm.fma.f64(") == 1
    assert split_products(fused, fused=True) == fused
    assert '%s2 = fadd double %"s2.product", %s1' in rounded and "llvm.fma." not in rounded


@pytest.mark.parametrize("fused", [True, False])
def test_sums_without_an_order_have_none_to_keep(fused: bool) -> None:
    made = split_products(LOOP, fused=fused)
    parse(made).verify()
    assert '%s2 = fadd reassoc contract double %"s2.product", %s1' in made and "reassoc double @llvm.fm" not in made
    alone = LOOP.replace("double %v, double %s1)", "double %v, double %h)")
    assert "%s2 = tail call reassoc double @llvm.fmuladd.f64(" in split_products(alone, fused=fused)


@pytest.mark.parametrize(("features", "fused"), [("+fma,+avx", True), ("-fma,-fma4,-avx", False)])
def test_machines_with_fused_products(features: str, fused: bool) -> None:
    target = binding().Target.from_triple("x86_64-unknown-linux-gnu")
    assert has_fused_products(target.create_target_machine(cpu="x86-64", features=features)) is fused


PROGRAM = """
import numpy as np, irgrad as ig
source = '''
#include <math.h>
#include <stdlib.h>
static __attribute__((noinline)) double dot(const double *a, const double *b, long m) {
    double s = 0;
    for (long k = 0; k < m; k++) s += a[k] * b[k];
    return s;
}
double f(const double *x, double *w, long n, long m) {
    double s = 0.5, r = 0.5, *e = w, *t = calloc(m, sizeof *t);
    for (long i = n - 1; i >= 0; i--) {
        double v = exp(-x[i] * x[i]);
        for (long k = 0; k < m; k++) t[k] = e[k] * e[k] * v;
        v = dot(t, w, m) + t[m - 1];
        s += log(1 + v * v) * x[i];
        if (v < 0.1) { r += v; } else { r -= 2 * v; }
    }
    double result = s * s + (r > 1 ? r : 0.5 * r) + t[0];
    return result;
}
'''
kernel = ig.load(source).kernel("f", "f64(f64[n] x, inout f64[m] w, i64 n, i64 m)")
print(kernel(np.linspace(0.2, 0.9, 7), np.linspace(0.3, 0.8, 3))[0])
"""


def test_a_loop_over_which_llvm_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    x, w = np.linspace(0.2, 0.9, 7), np.linspace(0.3, 0.8, 3)
    t = w * w * np.exp(-x * x)[:, None]
    v = t @ w + t[:, -1]
    s, r = 0.5 + np.log(1 + v * v) @ x, 0.5 + np.where(v < 0.1, v, -2 * v).sum()
    np.testing.assert_allclose(float(done.stdout), s * s + (r if r > 1 else 0.5 * r) + t[0, 0], rtol=1e-13)


@pytest.mark.parametrize("strict_fp", [False, True])
@pytest.mark.parametrize("kind", ["double", "float"])
def test_products_are_still_contracted(kind: str, strict_fp: bool) -> None:
    """A sum whose terms cancel in the last bit tells whether the product was rounded."""
    short = {"double": "f64", "float": "f32"}[kind]
    head = f"{kind} f(const {kind} *x, const {kind} *y, long n) {{ {kind} s = -x[0] * y[0]; "
    source = head + "s += x[0] * y[0]; return s; }"
    loop = source.replace("s += x[0] * y[0];", "for (long i = 0; i < n; i++) s += x[i] * y[i];")
    x = np.array([1 + 3e-5], dtype=np.float64 if kind == "double" else np.float32)
    kernels = [ig.load(text).kernel("f", f"{short}({short}[n] x, {short}[n] y, i64 n)", strict_fp=strict_fp)
               for text in (source, loop)]
    assert kernels[0](x, x) == kernels[1](x, x)
