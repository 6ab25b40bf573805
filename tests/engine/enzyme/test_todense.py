"""Addresses of `__enzyme_todense`: what is refused. What they compute: `notation_programs/sparse.c`, `sparse.cpp`."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

HEAD = """extern int enzyme_dup, enzyme_const, enzyme_dupnoneed, enzyme_width;
#include <stddef.h>
double *__enzyme_todense(void *, void *, ...);
void __enzyme_fwddiff(void *, ...);
double __enzyme_autodiff(void *, ...);
double one(size_t byte, size_t c) { return byte / 8 == c; }
void put(double value, size_t byte, size_t c) { }
void square(const double *x, double *y) { y[0] = x[0] * x[0]; }
"""
NEW = "__enzyme_todense((void *)one, (void *)put, c)"


@pytest.mark.parametrize(("body", "what", "because"), [
    ("double *keep; void f(size_t c) { keep = " + NEW + "; }", "cannot be followed", "kept in memory"),
    ("double *f(size_t c) { return " + NEW + "; }", "cannot be followed", "returned"),
    ("void g(double *); void f(size_t c) { g(" + NEW + "); }", "cannot be followed", "`g`, which has no body here"),
    ("void f(size_t c, double *x) { double *p = c > 3 ? x : " + NEW + "; p[0] = 1; }", "cannot be followed",
     "one of ordinary memory"),
    ("double f(size_t c) { double *p = " + NEW + ", *q = " + NEW.replace("c)", "9l)") + "; return *(c > 3 ? p : q); }",
     "cannot be followed", "one of"),
    ("float f(size_t c) { return *(float *)" + NEW + "; }", "cannot be followed", "a `float` is accessed there"),
    ("double s(double *p, int n) { return n ? p[0] + s(p + 1, n - 1) * s(p + 2, n - 1) : 0; }"
     "double f(size_t c) { return s(" + NEW + ", c); }", "reaches functions that call themselves", "40 times"),
    ("double *f(void *load, size_t c) { return __enzyme_todense(load, (void *)put, c); }",
     "takes two functions", "not known when compiling"),
    ("double f(size_t c) { return *__enzyme_todense((void *)one, (void *)put); }", "do not belong together",
     "with 0 more"),
    ("double f(int c) { return *" + NEW + "; }", "another type than its functions want", "`i32` is given for `i64`"),
    ("double g(double x) { double *p = __enzyme_todense((void *)one, (void *)put, (size_t)1); p[0] = x; return p[1]; }"
     "double f(double x) { return __enzyme_autodiff((void *)g, x); }", "`g` reaches a call of __enzyme_todense",
     "has no shadow"),
])  # fmt: skip
def test_what_is_refused(body: str, what: str, because: str) -> None:
    with pytest.raises(Unsupported) as caught:
        lower(load(HEAD + body, opt="O1").text)
    assert what in caught.value.what and because in caught.value.because


def test_an_output_that_is_null_may_be_used_and_not_read_out() -> None:
    body = ("void twice(const double *x, double *y) { y[0] = x[0]; y[1] = y[0] * x[1]; }"
            "void f(double *x, double *d) { __enzyme_fwddiff((void *)twice, enzyme_dup, x, d, enzyme_dupnoneed, "
            "(void *)0, d + 2); }")  # fmt: skip
    text = lower(load(HEAD + body, opt="O1").text)
    assert "irgrad.sparse.store" not in text.split("define internal void @irgrad.sparse.call")[0]
