"""Calls of registered derivatives: what is passed, and what is refused. tests/interop/notation_programs has values."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from irgrad.engine.differentiate.custom_rules.registered import writes_nothing
from irgrad.engine.differentiate.custom_rules.rule_lanes import LaneByLane
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir.text.reader import read
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRGradError, OneAtATime

HEAD = """extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
void __enzyme_autodiff_none(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef struct { void *tape; double value; } Kept;
typedef struct { double a, b; } Two;
double f(double x, int n) { return x * n; }
Kept f_aug(double x, int n) { return (Kept){0, x * n}; }
double f_rev(double x, int n, double dy, void *tape) { return dy * n; }
double g(const double *x) { return *x; }
Kept g_aug(const double *x, double *dx) { return (Kept){0, *x}; }
void g_rev(const double *x, double *dx, double dy, void *tape) { *dx += dy; }
void g_blind(const double *x, double *dx, double dy, void *tape) { }
double use(double x) { return f(x, 3); }
double slope(double x) { return __enzyme_autodiff((void *)use, x); }
void h(double a, const double *x, double *y) { *y = a * *x; }
void h_aug(double a, const double *x, double *dx, double *y, double *dy) { *y = a * *x; }
double h_rev(double a, const double *x, double *dx, double *y, double *dy) { *dx += a * *dy; return *x * *dy; }
double at(double a, const double *x) { double y; h(a, x, &y); return y; }
double *pick(double *x) { return x; }
double *pick_aug(double *x, double *dx) { return x; }
void pick_rev(double *x, double *dx, void *tape) {}
double picked(double x) { double *p = pick(&x); return *p * x; }
"""


def _gradient(*names: str) -> str:
    return f"void *__enzyme_register_gradient_it[] = {{{', '.join(f'(void *){name}' for name in names)}}};\n"


@pytest.mark.parametrize(("body", "what", "because"), [
    ("double bad(double x, double dy, void *tape) { return dy; }\n" + _gradient("f", "f_aug", "bad"),
     "the reverse function `bad` has another prototype", "behind each pointer of `f` its shadow"),
    ("double bad(double x, int n, double dy) { return dy; }\n" + _gradient("f", "bad", "f_rev"),
     "the augmented function `bad` has another prototype", "its shadow is wanted"),
    ("Two bad(double x, int n) { return (Two){x, x}; }\n" + _gradient("f", "bad", "f_rev"),
     "the reverse function `f_rev` has another prototype", "behind each pointer"),
    ("void *bad(double x, int n) { return 0; }\n" + _gradient("f", "bad", "f_rev"),
     "the augmented function `bad` returns something else", "a struct of the tape and that is wanted"),
    ("void bad(double x, int n, double dy, void *tape) {}\n" + _gradient("f", "f_aug", "bad"),
     "the reverse function `bad` returns `void`", "the gradients of its numbers: double"),
    ("double r(double a, double *x) { return __enzyme_autodiff((void *)at, a, enzyme_const, x); }\n"
     + _gradient("h", "h_aug", "h_rev"), "active values go through parameter 2 of `at`", "it is enzyme_const"),
    ("double r(double x) { return __enzyme_autodiff((void *)picked, x); }\n"
     + _gradient("pick", "pick_aug", "pick_rev"),
     "`pick` returns a pointer to active memory", "no place for the shadow"),
    ("float bad(double x, double dx, int n) { return 1; }\n"
     "void *__enzyme_register_derivative_f[] = {(void *)f, (void *)bad};\n"
     "double r(double x) { return __enzyme_fwddiff((void *)use, x, 1.0); }",
     "the forward function `bad` returns `float`", "value and tangent: double"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(body: str, what: str, because: str) -> None:
    with pytest.raises(IRGradError) as caught:
        lower(load(HEAD + body).text)
    assert what in caught.value.what
    assert because in caught.value.because
    assert caught.value.fix


def test_a_shadow_that_nobody_looks_at_is_null() -> None:
    text = lower(load(HEAD + """
double blind(double a, const double *x) { return g(x) * f(a, 2); }
double r(double a, const double *x) { return __enzyme_autodiff((void *)blind, a, enzyme_const, x); }
""" + _gradient("g", "g_aug", "g_blind")).text)  # fmt: skip
    assert "@g_blind(" not in text.split("define double @r(")[1].split("}")[0]  # the call is not active at all
    both = lower(load(HEAD + """
double h_one(double a, const double *x, double *dx, double *y, double *dy) { return *x * *dy; }
double r(double a, const double *x) { return __enzyme_autodiff((void *)at, a, enzyme_const, x); }
""" + _gradient("h", "h_aug", "h_one")).text)  # fmt: skip
    assert re.search(r"call double @h_one\(double [^,]+, ptr [^,]+, ptr null, ", both)


def test_the_functions_stay_the_programs() -> None:
    text = lower(load(HEAD + _gradient("f", "f_aug", "f_rev")).text)
    assert len(re.findall(r"^define [^@\n]*@f_rev\(", text, re.M)) == 1
    assert len(re.findall(r"call [^@\n]*@f_aug\(", text)) == 1


WIDE = HEAD + """extern int enzyme_width;
Two __enzyme_autodiff_two(void *, ...);
int calls;
double counts(double x) { calls++; return x; }
double inner(double x) { return counts(x) + x; }
double r(double x) { Two t = __enzyme_autodiff_two((void *)use, enzyme_width, 2, x); return t.a + t.b; }
"""


def test_each_lane_has_a_call_of_its_own_and_that_is_told() -> None:
    source = WIDE + _gradient("f", "f_aug", "f_rev")
    with pytest.warns(LaneByLane, match=r"`f` and its derivative \(.*\) run once for each of the 2 lanes"):
        text = lower(load(source).text)
    calls = [line for line in text.splitlines() if " call " in line and "@f_aug(" in line]
    assert len(calls) == 1 + 2  # those of `slope` and of `r`


@pytest.mark.parametrize(("function", "writes"), [
    ("f", True), ("g", True), ("use", True), ("h", False), ("counts", False), ("inner", False), ("scale", False),
])  # fmt: skip
def test_only_functions_that_store_nothing_run_again(function: str, writes: bool) -> None:
    module = read(load(WIDE + "void scale(double *x, double a) { *x *= a; }\n").text)
    unit = SimpleNamespace(module=module, rules=SimpleNamespace(hidden={}))
    assert writes_nothing(unit, module.functions[function]) is writes  # type: ignore[arg-type]


def test_a_function_that_stores_something_takes_one_lane() -> None:
    source = "int calls;\n" + WIDE.replace("{ return x * n; }", "{ calls++; return x * n; }")
    with pytest.raises(OneAtATime) as caught:
        lower(load(source + _gradient("f", "f_aug", "f_rev")).text)
    assert "which stores something, in each lane" in caught.value.because
    assert "without enzyme_width" in caught.value.fix
