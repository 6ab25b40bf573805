"""Functions with variable arguments get memory with them. What they compute: `notation_programs/variadic.c`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.normalise.variadic import fixed_arguments

TEXT = """
target triple = "x86_64-unknown-linux-gnu"
%list = type { i32, i32, ptr, ptr }
%large = type { double, double, double }
@table = global ptr null
define internal double @f(i32 %n, ...) {
  %l = alloca %list, align 16
  call void @llvm.va_start.p0(ptr %l)
  %p = getelementptr i8, ptr %l, i64 8
  %area = load ptr, ptr %p
  %x = load double, ptr %area
  call void @llvm.va_end.p0(ptr %l)
  ret double %x
}
define double @g(double %x, ptr %s, x86_fp80 %w) {
  %a = tail call double (i32, ...) @f(i32 1, double %x, i32 7, ptr byval(%large) align 8 %s, x86_fp80 %w)
  %b = call double (i32, ...) @f(i32 0)
  %c = fadd double %a, %b
  ret double %c
}
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
"""


def test_arguments_lie_in_memory_of_the_caller() -> None:
    text = fixed_arguments(TEXT)
    parse(text).verify()
    assert "define internal double @f(i32 %n, ptr %" in text
    assert "alloca <{ double, i32, [4 x i8], %large, [8 x i8], x86_fp80 }>, align 32" in text
    assert "call double @f(i32 1, ptr %" in text and "tail call" not in text
    assert "call double @f(i32 0, ptr null)" in text
    assert "store i32 48" in text and "store i32 176" in text and "va_start.p0(ptr %" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
        ("x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"),
        ("  %x = load double, ptr %area", "  %x = va_arg ptr %l, double"),
    ],
)
def test_functions_that_stay_as_they_are(old: str, new: str) -> None:
    """What other systems do, the instruction that no compiler writes."""
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert fixed_arguments(text) == text


@pytest.mark.parametrize(("old", "new"), [
    ("@table = global ptr null", "@table = global ptr @f"),
    ("  %c = fadd", "  store ptr @f, ptr %s\n  %c = fadd"),
    ("  %a = tail call", "  %a = musttail call"),
])  # fmt: skip
def test_functions_that_others_may_call_have_a_copy(old: str, new: str) -> None:
    text = fixed_arguments(TEXT.replace(old, new))
    if "musttail" not in new:
        parse(text).verify()
    assert "define internal double @f(i32 %n, ...)" in text
    assert "define internal double @irgrad.copy.f.0(i32 %n, ptr" in text
    assert "call double @irgrad.copy.f.0(i32 0, ptr null)" in text
    assert fixed_arguments(text) == text


SUMS = """
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
static double sum(int n, ...) {
    va_list a; double s = 0;
    va_start(a, n); for (int i = 0; i < n; i++) s += sin(va_arg(a, double)); va_end(a);
    return s;
}
static double product(int n, ...) {
    va_list a; double s = 1;
    va_start(a, n); for (int i = 0; i < n; i++) s *= va_arg(a, double); va_end(a);
    return s;
}
static double dot(int n, ...) {
    va_list a; double s = 0;
    va_start(a, n); const double *p = va_arg(a, const double *), *q = va_arg(a, const double *); va_end(a);
    for (int i = 0; i < n; i++) s += p[i] * q[i];
    return s;
}
typedef double (*of_many)(int, ...);
"""
BY_POINTER = {
    "table": """
    static const of_many table[] = {sum, product};
    double f(const double *x, long n) {
        double s = 0;
        for (long i = 0; i + 1 < n; i++) s += table[i % 2](2, x[i], x[i + 1] * s) + table[1](3, x[i], 2.0, s);
        return s;
    }""",
    "member": """
    struct ops { of_many combine; double scale; };
    static double apply(const struct ops *o, const double *x) { return o->scale * o->combine(3, x[0], x[1], x[2]); }
    double f(const double *x, long n) {
        struct ops o[2] = {{sum, x[3]}, {product, 2}};
        return apply(&o[0], x) + apply(&o[1], x + 1) * sum(1, x[0]);
    }""",
    "memory": """
    double f(const double *x, long n) { of_many g = n > 3 ? dot : sum; return g(4, x, x + 1); }""",
    "one of the library, of no number that counts": """
    static int quiet(FILE *to, const char *form, ...) { return 0; }
    double f(const double *x, long n) {
        int (*said[2])(FILE *, const char *, ...) = {quiet, fprintf};
        of_many g = n > 7 ? product : sum;
        double s = g(2, x[0], x[1] * x[1]);
        said[n > 7](stdout, "%g", s);
        return s * s;
    }""",
}


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("name", BY_POINTER)
def test_calls_through_pointers(name: str, level: str) -> None:
    kernel = irgrad.load(SUMS + BY_POINTER[name], language="c", opt=level).kernel("f", "f64(f64[n] x, i64 n)")
    x, v = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4]), np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
    ways = 1e-6 * np.eye(6)
    want = np.array([(kernel(x + way) - kernel(x - way)) / 2e-6 for way in ways])
    gradient = engine.grad(kernel)
    np.testing.assert_allclose(gradient(x), want, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(engine.jvp(kernel, (x,), (v,))[1], gradient(x) @ v, rtol=1e-12)
    curved = (gradient(x + 1e-6 * v) - gradient(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(engine.hvp(kernel, (x,), v, wrt="x"), curved, rtol=1e-6, atol=1e-7)


def test_a_pointer_that_others_may_set_is_refused() -> None:
    """What another file of the program has put there is not known when this one is compiled; a kernel is alone."""
    source = SUMS + "of_many hook = sum; double f(const double *x, long n) { return hook(2, x[0], x[1]); }"
    kernel = irgrad.load(source, language="c").kernel("f", "f64(f64[n] x, i64 n)")
    np.testing.assert_allclose(engine.grad(kernel)(np.array([0.5, 0.3])), np.cos([0.5, 0.3]), rtol=1e-15)
    done = _run(SUMS + """
    of_many hook = sum; void others(void);
    double f(double x) { return hook(2, x, x * x); }
    double __enzyme_autodiff(void *, ...);
    double slope(double x) { others(); return __enzyme_autodiff((void *)f, x); }""", "cc", "-c", "-o", os.devnull)
    assert done.returncode and "an active call through a pointer whose targets are not known" in done.stderr


def _run(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.c")
        path.write_text(text)
        command = [sys.executable, "-m", "irgrad.interop.cli", words[0], "-O2", str(path), *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def test_in_programs() -> None:
    text = SUMS + """
    static double f(double x, double y, int which) {
        of_many all[] = {sum, product}; return all[which](2, x * y, y);
    }
    double __enzyme_autodiff(void *, ...);
    extern int enzyme_out, enzyme_const;
    int main(void) {
        printf("%.12g\\n", __enzyme_autodiff((void *)f, enzyme_out, 0.5, enzyme_const, 0.3, enzyme_const, 1));
        return 0;
    }"""
    done = _run(text, "run", "-lm")
    assert (done.returncode, done.stdout) == (0, "0.09\n"), done.stderr
