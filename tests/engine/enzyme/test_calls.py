"""Calls of the notation: names, annotations, and what is refused with its source line."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRGradError, MissingRuleError, Unsupported

HEAD = """extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_width, enzyme_primal_return;
extern int enzyme_scalar, enzyme_dupv, enzyme_wdith, enzyme_interleave;
void __enzyme_truncate(void *, ...);
struct large { double a[4]; };
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
double empty(void) { return 1; }
double onlarge(struct large b) { return b.a[0] * b.a[3]; }
long count(double x) { return (long)x; }
unsigned long some(char *x) { unsigned long n; __builtin_memcpy(&n, x, 8); return n; }
double mystery(double x) { return x * other(x); }
void none(double x) { (void)x; }
"""


@pytest.mark.parametrize(("body", "what", "because"), [
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, x); }",
     "too few arguments", "the shadow of parameter 1"),
    ("double r(double x) { return __enzyme_autodiff((void *)square, x, x); }",
     "too many arguments for `square`", "1 is left"),
    ("double r(double *x, int n) { return __enzyme_autodiff((void *)sum, x, x, enzyme_dup, n, n); }",
     "has no derivative", "it is an integer"),
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, enzyme_out, x, 3); }",
     "enzyme_out does not fit", "a pointer is enzyme_dup or enzyme_const"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_out, x); }",
     "enzyme_out does not fit", "in forward mode a number is enzyme_dup or enzyme_const"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_wdith, x, 1.0); }",
     "`enzyme_wdith` is not an annotation", "known are active_return, allocated,"),
    ("double r(double x) { return __enzyme_autodiff((void *)square, enzyme_scalar, x); }",
     "`enzyme_scalar` does not belong to `__enzyme_autodiff`", "annotation of __enzyme_batch"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_width, 65, x, 1.0); }",
     "enzyme_width is 65", "from 1 to 64"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_width, (int)x, x, 1.0); }",
     "the number behind enzyme_width is not known when compiling", "computed"),
    ("double r(double x) { return __enzyme_fwddiff((void *)square, enzyme_dupv, 8, x, 1.0); }",
     "parameter 1 `x` of `square` has a stride", "for pointers"),
    ("double r(double x) { return __enzyme_autodiff((void *)square, enzyme_const, x); }",
     "there is nothing to differentiate", "all parameters of `square` are constant"),
    ("double r(double x) { return __enzyme_autodiff(x > 1 ? (void *)square : (void *)none, x); }",
     "functions of different types are differentiated in one call", "`square` is a `double (double)`"),
    ("double r(double x) { return __enzyme_autodiff((void *)count, x); }",
     "there is nothing to differentiate", "`count` returns an integer that carries no numbers"),
    ("void r(char *x, char *d) { __enzyme_autodiff((void *)some, x, d); }",
     "an integer in the result may carry numbers, and it is not known which", "reaches argument `%ret`"),
    ("double r(double x) { return __enzyme_autodiff((void *)empty); }",
     "there is nothing to differentiate", "`empty` has no parameters"),
    ("void r(double x) { __enzyme_truncate((void *)square, x); }",
     "`__enzyme_truncate` is not supported", "supported are"),
    ("void *__enzyme_tosparse(void *, ...); void *r(double *x) { return __enzyme_tosparse((void *)square, x); }",
     "`__enzyme_tosparse` is not supported", "__enzyme_todense"),
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, x, 1.0, 3); }",
     "the shadow of parameter 1 `x` of `sum` is a `double`", "the parameter is a `ptr`"),
    ("double r(struct large b) { return __enzyme_autodiff((void *)onlarge, enzyme_dup, b, b); }",
     "the gradient of parameter 1 `b` of `onlarge` would be lost", "passed by value, which is a copy"),
    ("double r(double *x) { return __enzyme_autodiff((void *)sum, x, enzyme_const, 3, enzyme_interleave); }",
     "too few arguments", "the shadow of parameter 1"),
    ("double r(double x) { return __enzyme_autodiff((void *)mystery, x); }",
     "no derivative is known for this call", "neither a body"),
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


def test_a_missing_derivative_says_how_to_register_one() -> None:
    text = load(HEAD + "double r(double x) { return __enzyme_autodiff((void *)mystery, x); }").text
    with pytest.raises(MissingRuleError) as caught:
        lower(text)
    assert caught.value.where.startswith("@mystery (<string>:")  # the call of `other`
    assert f"differentiated by @r (<string>:{HEAD.count(chr(10)) + 1}:" in caught.value.where
    assert "void *__enzyme_register_gradient_other[] = {(void *)other, " in caught.value.fix
    assert "__enzyme_inactivefn_other" in caught.value.fix


def test_a_function_of_that_name_with_a_body_is_the_programs_own() -> None:
    text = lower(load("double my__enzyme_autodiff(double x) { return x; }\n"
                      "double r(double x) { return my__enzyme_autodiff(x); }\n").text)  # fmt: skip
    assert "irgrad.call" not in text


HALF = """
typedef struct { _Float16 x; short n; } pair;
static double weigh(pair p, double y) { return (double)p.x * p.x * p.n * y; }
double r(pair p) { return __enzyme_autodiff((void *)weigh, p, 1.0); }
"""


def test_numbers_that_a_short_register_may_hold_are_not_lost() -> None:
    with pytest.raises(Unsupported, match="the result of the call is a `double`") as caught:
        lower(load(HEAD + HALF).text)
    assert "`weigh` returns `i32`, `double`" in caught.value.because
    lower(load(HEAD + HALF.replace("_Float16", "short")).text)
    lower(load(HEAD + HALF.replace("weigh, p", "weigh, enzyme_const, p")).text)
