"""Points at which a program that compares floats for equality has the derivative of a special case."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine import check
from irgrad.engine.functions.special_cases import equality_tests, special_cases
from irgrad.engine.ir.text.reader import read

SOURCE = """
#include <math.h>
static const double TABLE[2][2] = {{0, 1}, {2, 0}};
double f(const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) {
    if (x[i] == 2.0) s += 4.0;
    else s += x[i] * x[i];
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      if (TABLE[i][j] != 0) s += TABLE[i][j] * x[j];
  return s;
}
double sinc(double x, double y) {
  double d = x - y;
  return d != 0 ? sin(d) / d : 1;
}
double none(double x, int n) {
  if (x != x || isnan(x) || x == INFINITY || x == -INFINITY) return 0;
  if ((double)n == 3.0 || n == 2) return x;
  return x < 2.0 ? x : 2.0;
}
"""


@pytest.fixture(scope="module")
def library() -> ig.Library:
    return ig.load(SOURCE, language="c")


def test_what_compares_floats(library: ig.Library) -> None:
    found = [(name, where.split(":")[-2]) for name, where in equality_tests(read(library.text))]
    assert found == [("f", "7"), ("f", "12"), ("sinc", "17")]


@pytest.mark.parametrize(("x", "lines"), [([1.0, 2.0, 3.0], ["7"]), ([1.0, 2.5, 3.0], [])])
def test_only_what_depends_on_the_arguments_counts(library: ig.Library, x: list[float], lines: list[str]) -> None:
    """Zeros of a table are equal to zero at any arguments."""
    kernel = library.kernel("f", "f64(f64[n] x, i64 n)")
    bound = kernel.bind((np.array(x),), {})
    assert [where.split(":")[-2] for where in special_cases(kernel, bound, (0,))] == lines
    assert bound.buffers[0] is not None and bound.buffers[0].tolist() == x


def test_check_names_the_line(library: ig.Library) -> None:
    kernel = library.kernel("sinc", "f64(f64 x, f64 y)")
    report = check(kernel, 0.7, 0.7)
    assert [where.split(":")[-2] for where in report.special] == ["17"]
    assert "floats are compared for equality" in str(report) and "@sinc" in str(report)
    beside = check(kernel, 0.7, 0.2)
    assert beside.ok and not beside.special and "equality" not in str(beside)


def test_programs_without_such_tests(library: ig.Library) -> None:
    assert check(library.kernel("none", "f64(f64 x, i32 n)"), 1.5, 4).special == ()


@pytest.mark.parametrize("kind", ["f64", "f32", "f16"])
def test_zeros_in_each_precision(kind: str) -> None:
    name = {"f64": "double", "f32": "float", "f16": "_Float16"}[kind]
    source = f"{name} f(const {name} *x) {{ return x[0] == 0 ? x[1] : x[0] * x[1]; }}"
    kernel = ig.load(source, language="c").kernel("f", f"{kind}({kind}[2] x)")
    zeros = np.zeros(2, {"f64": np.float64, "f32": np.float32, "f16": np.float16}[kind])
    assert len(special_cases(kernel, kernel.bind((zeros,), {}), (0,))) == 1
