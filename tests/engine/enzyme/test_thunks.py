"""Thunks and roots: what the derivative's caller and the differentiated function look like."""

from __future__ import annotations

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.enzyme.thunks import root_text
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

SOURCE = """
extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
void axpy(double a, const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] += a * x[i] * y[i]; }
double call(double a, const double *x, double *dx, double *y, double *dy, int n) {
  return __enzyme_autodiff((void *)axpy, a, x, dx, y, dy, n);
}
"""


def test_no_pointer_of_a_program_is_said_to_be_alone() -> None:
    text = lower(load(SOURCE).text)
    heads = [line for line in text.splitlines() if line.startswith("define") and ".vjp." in line]
    assert heads and not any("noalias" in head for head in heads)


def test_a_reference_leads_to_its_bytes_while_it_is_differentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of its members may leave loops; the derivative's own parameters promise nothing."""
    seen: list[str] = []
    monkeypatch.setattr("irgrad.engine.enzyme.lower.root_text", lambda *a: seen.append(root_text(*a)) or seen[-1])
    text = lower(load("""
struct Pair { double *at; long n; };
extern int enzyme_dup;
extern "C" void __enzyme_autodiff(void *, ...);
__attribute__((noinline)) double total(const Pair &p) {
  double s = 0;
  for (long i = 0; i < p.n; i++) s += p.at[i] * p.at[i];
  return s;
}
void call(Pair *p, Pair *d) { __enzyme_autodiff((void *)total, enzyme_dup, p, d); }
""", language="c++").text)
    heads = [line for line in text.splitlines() if line.startswith("define") and ".vjp." in line]
    assert heads and not any("dereferenceable" in head for head in heads)
    assert seen and all("dereferenceable(16)" in root for root in seen)


def test_the_thunk_takes_the_place_of_the_call() -> None:
    module = parse(lower(load(SOURCE).text))
    calls = str(module.get_function("call"))
    assert "@irgrad.call.1(" in calls
    assert "__enzyme" not in calls
    assert str(module.get_function("irgrad.call.1").linkage.name) == "internal"


def test_noret_drops_the_value_and_not_the_tangent() -> None:
    text = lower(load("""
extern int enzyme_noret, enzyme_dup_return;
double __enzyme_fwddiff(void *, ...);
double square(double x) { return x * x; }
double slope(double x) { return __enzyme_fwddiff((void *)square, enzyme_noret, enzyme_dup_return, x, 1.0); }
""").text)
    assert load(text, language="ll").kernel("slope", "f64(f64 x)")(3.0) == 6.0


def test_a_void_call_may_drop_numbers_where_a_shadow_receives_something() -> None:
    source = """
extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);
double f(double x, const double *y) { return x * *y; }
double square(double x) { return x * x; }
void by_y(double x, const double *y, double *d) { __enzyme_autodiff((void *)f, x, enzyme_dup, y, d); }
"""
    assert "@__enzyme_autodiff(ptr @" not in lower(load(source).text)
    with pytest.raises(Unsupported) as caught:
        lower(load(f"{source}void lost(double x) {{ __enzyme_autodiff((void *)square, x); }}\n").text)
    assert caught.value.what == "the result of the call is nothing"
