"""Thunks and roots: what the derivative's caller and the differentiated function look like."""

from __future__ import annotations

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.enzyme.lower import lower
from irgrad.interop.loaders import load

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
    (head,) = [line for line in text.splitlines() if line.startswith("define") and ".vjp." in line]
    assert "noalias" not in head


def test_the_thunk_takes_the_place_of_the_call() -> None:
    module = parse(lower(load(SOURCE).text))
    calls = str(module.get_function("call"))
    assert "@irgrad.call.1(" in calls
    assert "__enzyme" not in calls
    assert str(module.get_function("irgrad.call.1").linkage.name) == "internal"
