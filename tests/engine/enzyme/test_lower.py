"""Lowering of whole programs: what stays, what is shared, and what a program's own variables are to a derivative."""

from __future__ import annotations

import re

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRGradError, Unsupported

HEAD = """double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
"""


def test_a_program_without_such_calls_is_untouched() -> None:
    text = load("int main(void) { return 0; }").text
    assert lower(text) == text


def test_one_derivative_serves_equal_calls() -> None:
    text = lower(load(HEAD + """
double f(double x) { return x * x * x; }
double a(double x) { return __enzyme_autodiff((void *)f, x); }
double b(double x) { return __enzyme_autodiff((void *)f, 2 * x); }
double c(double x) { return __enzyme_fwddiff((void *)f, x, 1.0); }
""").text)  # fmt: skip
    names = re.findall(r"^define [^@\n]*@(irgrad\.root\.\d+\.[a-z]+\.\d+)\(", text, re.M)
    assert sorted(names) == ["irgrad.root.1.vjp.11", "irgrad.root.3.jvp.11"]


def test_a_static_variable_stays_the_programs() -> None:
    text = lower(load(HEAD + """
static double scale = 2;
double f(double x) { return scale * x * x; }
double a(double x) { scale = x; return __enzyme_autodiff((void *)f, x); }
""").text)  # fmt: skip
    assert len(re.findall(r"^@scale[\w.]* = ", text, re.M)) == 1
    assert re.search(r"^@scale = internal ", text, re.M)
    derivative = text.split("@irgrad.root.1.vjp.11(", 1)[1].split("\n}", 1)[0]
    assert "@scale" in derivative  # read when it runs, not folded to 2


def test_a_function_that_differentiates_itself_is_refused() -> None:
    with pytest.raises(Unsupported, match="inside of itself"):
        lower(load(HEAD + """
double f(double x) { return x < 1 ? x : __enzyme_autodiff((void *)f, x / 2); }
""").text)  # fmt: skip


BITS = """
#include <stdint.h>
union word { double d; int64_t i; };
typedef struct { double a, b; } two;
double __enzyme_autodiff(void *, ...), __enzyme_fwddiff(void *, ...);
two __enzyme_fwddiff_two(void *, ...);
#define WORD(x) (int64_t)(6497320848556798.0 * (x) + 4606985713057410000.0)
double quick_exp(double x) { union word u; u.i = WORD(x); return u.d; }
double quick_log(double x) { union word u; u.d = x; return (double)u.i * 1.539095918623324e-16 - 709.0895657128241; }
two both(double x) { union word u, v; u.i = WORD(x); v.i = u.i + 1; return (two){u.d, v.d}; }
double kernel(double x) { return CALL; }
"""


@pytest.mark.parametrize(
    ("call", "what"),
    [("__enzyme_autodiff((void *)quick_exp, x)", "becomes the bits of a float"),
     ("__enzyme_fwddiff((void *)quick_exp, x, 1.0)", "becomes the bits of a float"),
     ("__enzyme_autodiff((void *)quick_log, x)", "bits of an active float are used as a number"),
     ("__enzyme_fwddiff((void *)quick_log, x, 1.0)", "bits of an active float are used as a number"),
     ("__enzyme_fwddiff_two((void *)both, x, 1.0).b", "becomes the bits of a float")],
)  # fmt: skip
def test_bits_that_a_function_makes_its_result_of_are_no_silent_zero(call: str, what: str) -> None:
    """An optimiser leaves a load or a store of an integer as the only use of the parameter or the result."""
    with pytest.raises(Unsupported, match=what):
        lower(load(BITS, define={"CALL": call}).text)


def test_active_values_in_a_variable_are_refused_not_dropped() -> None:
    with pytest.raises(IRGradError) as caught:
        lower(load(HEAD + """
struct { double value; double *place; char name[16]; } state;
__attribute__((noinline)) void touch(double *p) { state.value += *p; state.place = p; }
double g(double x) { double y = x * x; touch(&y); return state.value * x; }
double a(double x) { return __enzyme_autodiff((void *)g, x); }
""").text)  # fmt: skip
    assert "`state`" in str(caught.value)
    assert "<string>" in caught.value.where
    assert "more than floats" in caught.value.because


def test_a_long_jump_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"(?s)`_setjmp` in code.*cannot follow a long jump.*return an error code"):
        lower(load(HEAD + """
#include <setjmp.h>
static jmp_buf back;
static void inner(double x) { if (x > 10) longjmp(back, 1); }
double f(double x) { if (setjmp(back)) return -1; inner(x); return x * x; }
double a(double x) { return __enzyme_autodiff((void *)f, x); }
""").text)  # fmt: skip


@pytest.mark.parametrize(("call", "loose"), [("x, dx, n", True), ("enzyme_primal_return, x, dx, n", False)])
def test_sums_keep_their_order_where_their_value_is_returned(call: str, loose: bool) -> None:
    text = lower(load(HEAD + f"""
int enzyme_primal_return;
double f(double *x, long n) {{ double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i]; return s * s; }}
void a(double *x, double *dx, long n) {{ __enzyme_autodiff((void *)f, {call}); }}
""").text)  # fmt: skip
    primal = text.split("@irgrad.root.1.vjp.", 1)[1].split("\nr.", 1)[0]
    assert ("reassoc" in primal) == loose


@pytest.mark.parametrize(("word", "loose"), [("dupnoneed", True), ("dup", False)])
def test_sums_keep_their_order_where_memory_is_needed(word: str, loose: bool) -> None:
    text = lower(load(HEAD + f"""
int enzyme_{word};
void f(double *x, long n, double *out) {{
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    *out = s * s;
}}
void a(double *x, double *dx, long n, double *o, double *d) {{
    __enzyme_autodiff((void *)f, x, dx, n, enzyme_{word}, o, d);
}}
""").text)  # fmt: skip
    primal = text.split("@irgrad.root.1.vjp.", 1)[1].split("\nr.", 1)[0]
    assert ("reassoc" in primal) == loose


NAMED_BY_A_CALL = """
declare double @__enzyme_autodiff(ptr, ...)
define linkonce_odr ptr @pointer_of_a_lambda() {
  ret ptr @cube
}
define double @cube(double %x) {
  %s = fmul double %x, %x
  %c = fmul double %s, %x
  ret double %c
}
define double @main(double %x) {
  %f = call ptr @pointer_of_a_lambda()
  %d = call double (ptr, ...) @__enzyme_autodiff(ptr %f, double %x)
  ret double %d
}
"""


@pytest.mark.parametrize("whole", [True, False])
def test_a_function_named_by_a_call(whole: bool) -> None:
    text = lower(NAMED_BY_A_CALL, whole=whole)
    assert "define double @main(" in text and not re.search("call [^@\n]*@__enzyme", text)
