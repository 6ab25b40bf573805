"""Calls of the notation: names, annotations, and what is refused with its source line."""

from __future__ import annotations

import pytest

from irgrad.engine.notation.calls import family
from irgrad.engine.notation.lower import lower
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRGradError, Unsupported

HEAD = """extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_width, enzyme_primal_return;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
void __enzyme_reverse(void *, ...);
double square(double x) { return x * x; }
double sum(double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
double by(double *x, double *t) {
  double s = 0;
  for (int i = 0; i < 99; i++) t[i] = x[i] * x[i];
  for (int i = 0; i < 99; i++) s += t[98 - i] * x[i];
  return s;
}
double other(double);
void none(double x) { (void)x; }
"""


@pytest.mark.parametrize(("name", "want"), [
    ("__enzyme_autodiff", "__enzyme_autodiff"),
    ("__enzyme_autodiff_two", "__enzyme_autodiff"),
    ("_Z17__enzyme_autodiffIdJPvdEET_DpT0_", "__enzyme_autodiff"),
    ("_Z16__enzyme_fwddiffPvz", "__enzyme_fwddiff"),
    ("__enzyme_batch", "__enzyme_batch"),
    ("autodiff", None),
    (None, None),
])  # fmt: skip
def test_names_are_recognised_inside_of_names(name: str | None, want: str | None) -> None:
    assert family(name) == want


@pytest.mark.parametrize(("body", "what", "because"), [
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, x); }",
     "too few arguments", "the shadow of parameter 1"),
    ("double r(double x) { return __enzyme_autodiff((void *)square, x, x); }",
     "too many arguments for `square`", "1 are left"),
    ("double r(double *x, int n) { return __enzyme_autodiff((void *)sum, x, x, enzyme_dup, n, n); }",
     "has no derivative", "it is an integer"),
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, enzyme_out, x, 3); }",
     "enzyme_out does not fit", "a pointer is enzyme_dup or enzyme_const"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_out, x); }",
     "enzyme_out does not fit", "in forward mode a number is enzyme_dup or enzyme_const"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_width, 2, x, 1.0, 2.0); }",
     "`enzyme_width` is not supported", "supported are"),
    ("void r(double x) { __enzyme_reverse((void *)square, x); }",
     "`__enzyme_reverse` is not supported", "supported are"),
    ("double r(double x) { return __enzyme_autodiff((void *)other, x); }",
     "`other` has no body", "only declared"),
    ("double r(void *f, double x) { return __enzyme_autodiff(f, x); }",
     "function is not known when compiling", "not the name of a function"),
    ("double r(double x) { return __enzyme_autodiff((void *)none, enzyme_primal_return, x); }",
     "enzyme_primal_return has no value to return", "returns `void`"),
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, x, x, 3); }",
     "the result of the call is a `double`", "returns nothing"),
    ("double r(double x) { return __enzyme_autodiff((void *)square, enzyme_primal_return, x); }",
     "the result of the call is a `double`", "returns `double`, `double`"),
    ("void r(double *x, double *d, double *t) { __enzyme_autodiff((void *)by, x, d, enzyme_const, t); }",
     "active values go through parameter 2 of `by`", "it is enzyme_const"),
])  # fmt: skip
def test_what_is_not_supported_names_the_line(body: str, what: str, because: str) -> None:
    text = load(HEAD + body).text
    with pytest.raises(Unsupported) as caught:
        lower(text)
    error: IRGradError = caught.value
    assert what in error.what
    assert because in error.because
    assert f":{HEAD.count(chr(10)) + 1}:" in error.where
    assert error.fix


def test_a_function_of_that_name_with_a_body_is_the_programs_own() -> None:
    text = lower(load("double my__enzyme_autodiff(double x) { return x; }\n"
                      "double r(double x) { return my__enzyme_autodiff(x); }\n").text)  # fmt: skip
    assert "irgrad.call" not in text
