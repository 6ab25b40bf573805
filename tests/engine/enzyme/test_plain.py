"""Batches, constant calls, sizes, hints: what is wrong with them. What they compute: `notation_programs/plain.c`."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.engine.enzyme.plain import one_more
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

HEAD = """extern int enzyme_dup, enzyme_const, enzyme_width, enzyme_vector, enzyme_scalar, enzyme_buffer;
struct two { double x, y; };
struct two __enzyme_batch(void *, ...);
void __enzyme_batch_void(void *, ...);
int __enzyme_augmentsize(void *, ...);
double __enzyme_ignore_derivatives(double, ...);
void __enzyme_call_inactive(void *, ...);
int __enzyme_iter(int, ...);
double __enzyme_autodiff(void *, double);
void __enzyme_float(void *, ...);
double square(double x) { return x * x; }
void scale(double *x, double by) { *x *= by; }
"""


@pytest.mark.parametrize(("body", "what", "because"), [
    ("struct two r(double x) { return __enzyme_batch((void *)square, enzyme_vector, x, x); }",
     "__enzyme_batch has no width", "is not said"),
    ("struct two r(double x, int w) { return __enzyme_batch((void *)square, enzyme_width, w, x, x); }",
     "the number behind enzyme_width is not known when compiling", "`i32` that is computed"),
    ("struct two r(double x) { return __enzyme_batch((void *)square, enzyme_width, 2, x); }",
     "too few arguments", "value 2 of parameter 1"),
    ("struct two r(double x) { return __enzyme_batch((void *)square, enzyme_width, 2, x, x, x); }",
     "too many arguments for `square`", "1 left"),
    ("struct two r(double x) { return __enzyme_batch((void *)square, enzyme_width, 2, enzyme_dup, x, x); }",
     "`enzyme_dup` does not belong to __enzyme_batch", "known are"),
    ("struct two r(double x) { return __enzyme_batch((void *)square, enzyme_width, 2, enzyme_buffer, 8, x); }",
     "parameter 1 `x` of `square` is a `double`", "enzyme_buffer is for pointers"),
    ("struct two r(double x) { return __enzyme_batch((void *)square, enzyme_width, 3, x, x, x); }",
     "the result of the call is a `{ double, double }`", "`double`, `double`, `double`"),
    ("int r(void) { return __enzyme_augmentsize((void *)square, 3); }",
     "argument 2 is not an activity", "one annotation for each"),
    ("double r(double x) { return __enzyme_ignore_derivatives(x, x); }",
     "cannot be taken out of the derivative", "2 arguments"),
    ("int r(int n) { return __enzyme_iter(n); }", "__enzyme_iter takes two integers", "`i32` of `i32`"),
])  # fmt: skip
def test_what_is_wrong_names_the_line(body: str, what: str, because: str) -> None:
    text = load(HEAD + body).text
    with pytest.raises(Unsupported) as caught:
        lower(text)
    assert what in caught.value.what
    assert because in caught.value.because
    assert f":{HEAD.count(chr(10)) + 1}:" in caught.value.where


def test_hints_disappear() -> None:
    text = lower(load(HEAD + "double r(double x) { __enzyme_float(&x, 8); return x; }").text)
    assert "call void @__enzyme" not in text and "call void (ptr, ...) @__enzyme" not in text


def test_a_derivative_sees_no_body_of_what_is_constant() -> None:
    text = lower(load(HEAD + """
double f(double x) { double y = x; __enzyme_call_inactive((void *)scale, &y, 3.0); return x * y; }
double r(double x) { return __enzyme_autodiff((void *)f, x); }
""").text)  # fmt: skip
    derivative = text.split("irgrad.root.2.vjp.11(", 1)[1].split("\n}", 1)[0]
    assert "@irgrad.inactive.1(" in derivative


def test_each_differentiation_makes_a_number_larger() -> None:
    text = one_more("declare i32 @irgrad.iter.i32(i32, i32)\n"
                    "define i32 @f() {\n  %r = call i32 @irgrad.iter.i32(i32 3, i32 1)\n  ret i32 %r\n}\n")
    assert "%r = call i32 @irgrad.iter.more.i32(i32 3, i32 1)" in text
    assert text.count("declare") == 1
