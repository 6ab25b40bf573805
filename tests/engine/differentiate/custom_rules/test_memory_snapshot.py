"""Reverse functions in C without a tape find what the call left, whatever the program does to the memory later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle.build import to_ir

import irgrad
from irgrad.engine import batch_grad, jacrev, vjp
from irgrad.engine.enzyme.lower import lower
from irgrad.rules import extern, foreign, layer
from irgrad.rules.errors import RuleError

SOURCE = r"""
#include <stdlib.h>
double cubes(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i]; return s; }
void cubes_rev(const double *x, double *x_d, long n, double d) {
  for (long i = 0; i < n; i++) x_d[i] += 3 * x[i] * x[i] * d;
}
double total(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += 2 * x[i]; return s; }
void total_rev(const double *x, double *x_d, long n, double d) { for (long i = 0; i < n; i++) x_d[i] += 2 * d; }
void bend(double *x, const long *n, const double *a) { for (long i = 0; i < *n; i++) x[i] *= *a; }
void bend_rev(double *x, double *x_d, const long *n, const double *a, double *a_d) {
  for (long i = 0; i < *n; i++) { *a_d += x[i] / *a * x_d[i]; x_d[i] *= *a; }
}

double variable(double *x, long n) {
  double w[8];
  for (long i = 0; i < n; i++) w[i] = x[i] * x[i];
  double s = cubes(w, n);
  for (long i = 0; i < n; i++) w[i] = 2 * x[i];
  return s + cubes(w, n);
}
double changed(double *x, long n) {
  double s = cubes(x, n);
  for (long i = 0; i < n; i++) x[i] = 2 * x[i];
  return s * x[0];
}
double read_twice(double *x, long n) {
  double s = 0;
  for (int k = 1; k < 3; k++) s += k * cubes(x, n);
  return s * cubes(x, 2);
}
double freed(double *x, long n) {
  double s = 1;
  for (int k = 1; k < 3; k++) {
    double *w = malloc(8 * n);
    for (long i = 0; i < n; i++) w[i] = k * x[i] * s;
    s += cubes(w, n);
    free(w);
    double *again = malloc(8 * n);
    for (long i = 0; i < n; i++) again[i] = 1e6;
    s += again[n - 1];
    free(again);
  }
  return s;
}
double grown(double *x, long n) {
  double *w = malloc(8 * n);
  for (long i = 0; i < n; i++) w[i] = x[i] * x[i];
  double s = cubes(w, n);
  w = realloc(w, 100000);
  for (long i = 0; i < n; i++) w[i] = 3 * s * w[i];
  s += w[0];
  free(w);
  return s;
}
__attribute__((noinline)) static double inner(double *x, long n) {
  double w[8];
  for (long i = 0; i < n; i++) w[i] = x[i] * x[i];
  return cubes(w, n);
}
double frames(double *x, long n) {
  double s = 0;
  for (int k = 0; k < 3; k++) s += inner(x, n - k % 2) * s + x[k];
  return s;
}
double unread(double *x, long n) {
  double s = total(x, n);
  for (long i = 0; i < n; i++) x[i] = x[i] * x[i];
  return s * x[0];
}
double numbers(double *x, long n) {
  double s = 0;
  for (long k = 0; k < 3; k++) {
    long m = n - k % 2;
    double a = x[0] + k;
    bend(x, &m, &a);
    m = 99;
    a = 1e9;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
  }
  return s;
}
"""
X = np.array([0.5, 1.1, -0.7])
INOUT = {"changed", "unread", "numbers"}


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("left") / "left.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def _kernel(lib: Any, name: str) -> Any:
    return lib.kernel(name, f"f64({'inout ' if name in INOUT else ''}f64[n] x, i64 n)")


def _gradient(kernel: Any) -> np.ndarray:
    value, pull = vjp(kernel, X)
    return np.asarray(pull((1.3, np.arange(3.0)) if isinstance(value, tuple) else 1.3)[0])


def _bare() -> None:
    foreign("cubes", reverse="cubes_rev")
    foreign("total", reverse="total_rev")


def _with_extents() -> None:
    extern("bend", "void(inout f64[n] x, i64& n, f64& a)")
    foreign("bend", reverse="bend_rev")
    foreign(extern("cubes", "f64(f64[n] x, i64 n)"), reverse="cubes_rev")
    foreign(extern("total", "f64(f64[n] x, i64 n)"), reverse="total_rev")


CASES = ["variable", "changed", "read_twice", "freed", "grown", "frames", "unread", "numbers"]


@pytest.mark.parametrize(
    ("name", "define"),
    [*((n, _with_extents) for n in CASES), *((n, _bare) for n in CASES if n not in ("changed", "numbers"))],
)
def test_what_the_call_left_is_found(lib: Any, name: str, define: Callable[[], None]) -> None:
    kernel = _kernel(lib, name)
    expected = _gradient(kernel)
    with layer():
        define()
        np.testing.assert_allclose(_gradient(kernel), expected, rtol=1e-12)


def test_the_memory_itself_is_read_where_nothing_writes_it(lib: Any) -> None:
    with layer():
        _bare()
        text = _kernel(lib, "read_twice").primal.pullback((0, 2)).stage.text
        assert "cubes_rev" in text and "llvm.memcpy" not in text
        text = _kernel(lib, "variable").primal.pullback((0, 2)).stage.text
        assert "llvm.memcpy" in text


def test_memory_of_unknown_size_that_changes_is_refused(lib: Any) -> None:
    kernel = _kernel(lib, "changed")
    with layer():
        _bare()
        with pytest.raises(RuleError) as caught:
            _gradient(kernel)
    text = caught.value.render()
    assert "`cubes_rev` would find other values than `cubes` did" in text
    assert "in      @changed (" in text and "left.c:" in text
    assert "the memory behind `a0`; written again in @changed (" in text
    assert 'extern("cubes", "f64(f64[a1] a0, i64 a1)")' in text
    assert 'augmented="cubes_augmented"' in text


def test_lanes_and_batches_share_the_copy(lib: Any) -> None:
    kernel = lib.kernel("variable", "f64(f64[n] x, i64 n)")
    points = np.stack([X + 0.1 * i for i in range(19)])
    expected = batch_grad(kernel)(points), jacrev(kernel, width=3)(X)
    with layer():
        _with_extents()
        np.testing.assert_allclose(batch_grad(kernel)(points), expected[0], rtol=1e-12)
        np.testing.assert_allclose(jacrev(kernel, width=3)(X), expected[1], rtol=1e-12)


REGISTERED = """
double __enzyme_autodiff(void *, ...);
typedef struct { double *of; long n; } Array;
double sum(const Array *a) { double s = 0; for (long i = 0; i < a->n; i++) s += a->of[i] * a->of[i]; return s; }
double sum_aug(const Array *a, Array *d) { return sum(a); }
void sum_rev(const Array *a, Array *d, double y_d) { for (long i = 0; i < a->n; i++) d->of[i] += 2 * a->of[i] * y_d; }
void *__enzyme_register_gradient_sum[] = {(void *)sum, (void *)sum_aug, (void *)sum_rev};
double kept(double x) { double w[2] = {x, 3}; Array a = {w, 2}; double s = sum(&a); a.n = 0; return s; }
double lost(double x) { double w[2] = {x, 3}; Array a = {w, 2}; double s = sum(&a); w[0] = 2; return s + sum(&a); }
"""


@pytest.mark.parametrize("name", ["kept", "lost"])
def test_registered_functions_without_a_tape(name: str) -> None:
    source = REGISTERED + f"double slope(double x) {{ return __enzyme_autodiff((void *){name}, x); }}\n"
    text = irgrad.load(source).text
    if name == "kept":  # the struct is copied, the array it leads to does not change
        assert "sum_rev" in lower(text).split("@slope")[1]
        return
    with pytest.raises(RuleError) as caught:
        lower(text)
    assert "memory that pointers in `a0` lead to; written again in @lost" in caught.value.which
    assert "sum_aug returns a tape that holds a copy" in caught.value.fix


VARIABLES = r"""
double scale = 3, other = 5;
long calls;
__attribute__((noinline)) double scaled(double x) { calls++; return scale * x; }
REVERSE
double steady(double x) { scale = 4; double y = scaled(x); other = 7; return y * y; }
double changed(double x) { scale = 4; double y = scaled(x); scale = 9; return y * scaled(x); }
"""
REVERSE = "void scaled_rev(double x, double *x_d, double d) { calls++; *x_d += scale * d; }"
WITH_TAPE = """
struct taped { void *tape; double value; };
struct taped scaled_augmented(double x) { calls++; return (struct taped){0, scale * x}; }
double scaled_rev(double x, double d, void *tape) { calls++; return scale * d; }
void *__enzyme_register_gradient_scaled[] = {(void *)scaled, (void *)scaled_augmented, (void *)scaled_rev};
double __enzyme_autodiff(void *, double);"""
FOUND = "`scaled_rev` would find other values than `scaled` did"


@pytest.mark.parametrize("name", ["steady", "changed"])
def test_variables_that_the_program_changes(name: str) -> None:
    """What both the function and its reverse read is the same in both, or the call is refused."""
    with layer():
        foreign("scaled", reverse="scaled_rev")
        gradient = irgrad.engine.grad(irgrad.load(VARIABLES.replace("REVERSE", REVERSE)).kernel(name))
        if name == "steady":
            assert gradient(2.0) == 2 * 4 * 4 * 2
        else:
            with pytest.raises(RuleError, match=FOUND) as caught:
                gradient(2.0)
            assert "the variable `scale`; written again in @changed" in str(caught.value)


@pytest.mark.parametrize("name", ["steady", "changed"])
def test_variables_beside_registered_gradients(name: str) -> None:
    asks = f"double slope(double x) {{ return __enzyme_autodiff((void *){name}, x); }}"
    text = to_ir(VARIABLES.replace("REVERSE", WITH_TAPE) + asks, "-O1")
    if name == "steady":
        assert "@irgrad.root" in lower(text)
    else:
        with pytest.raises(RuleError, match=FOUND):
            lower(text)
