"""Elements of vectors of integers and pointers: they compute the same, and analyses see them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reinterpret.elements import separate_elements

P, I64 = ctypes.c_void_p, ctypes.c_int64

# What a vectoriser makes of `for (i = 0; i < n; i += 2) s += p[i].b * (i + 1)` over structs {double a; double b}.
LOOP = """define i64 @f(ptr %p, i64 %n) {
entry:
  %first = insertelement <2 x ptr> poison, ptr %p, i64 0
  %all = shufflevector <2 x ptr> %first, <2 x ptr> poison, <2 x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %ind = phi <2 x i64> [ <i64 0, i64 1>, %entry ], [ %more, %loop ]
  %sum = phi <2 x i64> [ zeroinitializer, %entry ], [ %added, %loop ]
  %at = getelementptr { i64, i64 }, <2 x ptr> %all, <2 x i64> %ind, i32 1
  %p0 = extractelement <2 x ptr> %at, i64 0
  %p1 = extractelement <2 x ptr> %at, i64 1
  %a0 = load i64, ptr %p0, align 8
  %a1 = load i64, ptr %p1, align 8
  %v0 = insertelement <2 x i64> poison, i64 %a0, i64 0
  %v1 = insertelement <2 x i64> %v0, i64 %a1, i64 1
  %w = mul <2 x i64> %v1, %ind
  %added = add <2 x i64> %sum, %w
  %more = add nsw <2 x i64> %ind, splat (i64 2)
  %next = add nsw i64 %i, 2
  %go = icmp slt i64 %next, %n
  br i1 %go, label %loop, label %out
out:
  %turned = shufflevector <2 x i64> %added, <2 x i64> poison, <2 x i32> <i32 1, i32 poison>
  %both = add <2 x i64> %added, %turned
  %s = extractelement <2 x i64> %both, i64 0
  ret i64 %s
}"""


def _separated(text: str) -> tuple[str, bool]:
    module = read(text)
    changed = separate_elements(module.functions["f"])
    return to_text(module), changed


def test_a_vectorised_loop_over_structs() -> None:
    text, changed = _separated(LOOP)
    assert changed
    assert "extractelement" not in text
    data = np.random.default_rng(0).integers(-9, 9, size=(6, 2))
    f: Any = compile_module(text, ["f"], cache=False).function("f", I64, P, I64)
    assert f(data.ctypes.data, 6) == (data[:, 1] * np.arange(6)).sum()


def test_what_has_to_be_taken_out_stays() -> None:
    source = """define i32 @f(ptr %p, i64 %i) {
  %v = load <2 x i32>, ptr %p, align 4
  %a = extractelement <2 x i32> %v, i64 0
  %b = extractelement <2 x i32> %v, i64 %i
  %s = add i32 %a, %b
  ret i32 %s
}"""
    text, changed = _separated(source)
    assert not changed
    assert text.count("extractelement") == 2


def test_long_chains() -> None:
    """Deeper than Python's stack."""
    lines = [f"  %v{i + 1} = add <2 x i32> %v{i}, splat (i32 {i % 5})" for i in range(3000)]
    source = "\n".join(["define i32 @f(ptr %p) {", "  %v0 = load <2 x i32>, ptr %p, align 4", *lines,
                        "  %r = extractelement <2 x i32> %v3000, i64 1", "  ret i32 %r", "}"])  # fmt: skip
    text, changed = _separated(source)
    assert changed
    data = np.array([1, 2], dtype=np.int32)
    f: Any = compile_module(text, ["f"], cache=False).function("f", ctypes.c_int32, P)
    assert f(data.ctypes.data) == 2 + sum(i % 5 for i in range(3000))


VIEW = """define double @f(ptr %p) {
  %v = load <2 x i64>, ptr %p, align 8
  %floats = bitcast <2 x i64> %v to <2 x double>
  %x = extractelement <2 x double> %floats, i64 1
  %q = extractelement <2 x i64> %v, i64 0
  %n = sitofp i64 %q to double
  %s = fadd double %x, %n
  ret double %s
}
"""


def test_a_float_out_of_words_is_its_own_words_bits() -> None:
    """The other word may be a pointer: nothing says any longer that both are floats."""
    module = read(VIEW)
    assert separate_elements(module.functions["f"])
    text = to_text(module)
    assert "to <2 x double>" not in text and "bitcast i64" in text
    call: Any = compile_module(text, ["f"], cache=False).function("f", ctypes.c_double, P)
    memory = np.array([7, 0], np.int64)
    memory[1:].view(np.float64)[0] = 2.5
    assert call(memory.ctypes.data) == 9.5


STRUCT = """
#include <math.h>
#include <stdlib.h>
typedef long __attribute__((may_alias)) word;
struct part { long n; double *at; double v; double w; };
static void by_words(void *to, const void *from, size_t n) {
  word *t = to; const word *f = from;
  for (size_t i = 0; i < n / sizeof *t; i++) t[i] = f[i];
}
double f(const double *x) {
  struct part a[2] = {{1, malloc(8), x[0], x[1]}, {2, malloc(8), 0, 0}};
  *a[0].at = sin(x[0]); *a[1].at = x[1];
  by_words(&a[1], &a[0], sizeof *a);
  double s = a[1].v * *a[1].at + a[0].w * a[1].w * a[1].n;
  free(a[0].at);
  return s;
}
"""


def test_words_of_a_struct_that_are_copied_in_vectors() -> None:
    x = np.array([0.7, -0.4])
    for level in ("O1", "O2", "O3"):
        kernel = ig.load(STRUCT, language="c", opt=level).kernel("f", "f64(f64[2] x)")
        want = [np.sin(x[0]) + x[0] * np.cos(x[0]), 2 * x[1]]
        np.testing.assert_allclose(ig.engine.grad(kernel)(x), want, rtol=1e-14)
        np.testing.assert_allclose(ig.engine.jacfwd(kernel)(x), want, rtol=1e-14)
