"""Variables with pointers that constructors leave there: memory with shadows that live as long."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.kernel.constructors import constructed
from irgrad.rules.errors import Unsupported

SIGNATURE = "f64(f64[n] x, i64 n)"
SOURCE = """
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>
struct Two { double *a; std::vector<double> b; Two(int n) : a((double *)std::calloc(n, 8)), b(n) {}
             ~Two() { std::free(a); } };
class Pool { std::vector<double> all; size_t top = 0; public: Pool() : all(1000) {} void reset() { top = 0; }
             double *get(size_t n) { double *found = &all[top]; top += n; return found; } };
#define KERNEL(name, variable, ...) static variable; \\
  extern "C" double name(const double *x, long n) { double s = 0; __VA_ARGS__ return s; }
#define EACH for (long i = 0; i < n; i++)
KERNEL(allocated, double *made = new double[100], EACH made[i] = x[i] * x[i]; EACH s = s * 0.5 + made[i] * made[i];)
KERNEL(resized, std::vector<double> grows, if ((long)grows.size() < n) grows.resize(n);
  EACH grows[i] = x[i] * x[0]; EACH s = 0.9 * s + grows[i] * grows[i];)
KERNEL(owned, std::unique_ptr<double[]> own(new double[100]), EACH own[i] = x[i] * x[i]; EACH s += own[i] * own[0];)
KERNEL(both, Two two(100), EACH { two.a[i] = x[i] * x[i]; two.b[i] = two.a[i] * s; s = s * 0.5 + two.b[i] + two.a[i]; })
KERNEL(pooled, Pool pool, pool.reset(); double *a = pool.get(n), *b = pool.get(n);
  EACH { a[i] = x[i] * x[i]; b[i] = a[i] * x[0]; } EACH s = s * 0.5 + a[i] * b[i];)
KERNEL(nested, std::vector<std::vector<double>> lists(3), EACH lists[i % 3].push_back(x[i] * x[i]);
  for (auto &v : lists) { for (double e : v) s = s * 0.5 + e * e + s * e; v.clear(); })
static double **make_rows() { double **made = (double **)malloc(8 * sizeof(double *));
  for (int i = 0; i < 8; i++) made[i] = (double *)malloc(8 * 8); return made; }
KERNEL(rows, double **matrix = make_rows(), EACH for (long j = 0; j < n; j++) matrix[i][j] = x[i] * x[j];
  EACH s = s * 0.5 + matrix[i][n - 1 - i] * matrix[0][i];)
static std::vector<double> first(40, 1.5);
static std::vector<double> second(first.begin(), first.end());
KERNEL(later, double *inside = &second[3], EACH { inside[i] = x[i] * x[i]; s = s * 0.5 + inside[i] * inside[i - 1]; }
  EACH inside[i] = 1.5;)
static std::map<int, double> tree{{1, 0.0}, {0, 0.0}};
extern "C" double mapped(const double *x, long n) {
  double s = 0; EACH { tree[i % 2] += x[i]; s += tree[0] * x[0]; } tree[0] = tree[1] = 0; return s; }
static double *parsed = (double *)std::strtol(std::getenv("PATH"), nullptr, 16);
extern "C" double unknown(const double *x, long n) { EACH parsed[i] = x[i]; return parsed[0] * parsed[n - 1]; }
"""
KERNELS = ["allocated", "resized", "owned", "both", "pooled", "nested", "rows", "later", "mapped"]


@pytest.mark.parametrize("name", KERNELS)
def test_memory_of_constructors(name: str) -> None:
    """Calls of different sizes, one after the other: each finds the memory, and its shadow, that the first made."""
    kernel = ig.load(SOURCE, language="c++").kernel(name, SIGNATURE)
    gradient = ig.engine.grad(kernel)
    x = np.array([0.5, -0.3, 1.2, 0.7])
    for at in (x, x[:3], np.concatenate([x, x + 0.1])[:7], x):
        want = [(kernel(at + 1e-6 * e) - kernel(at - 1e-6 * e)) / 2e-6 for e in np.eye(at.size)]
        np.testing.assert_allclose(gradient(at), want, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ig.engine.jvp(kernel, (at,), (at,))[1], want @ at, rtol=1e-6, atol=1e-8)
        second = (gradient(at * (1 + 1e-5)) - gradient(at * (1 - 1e-5))) / 2e-5
        np.testing.assert_allclose(ig.engine.hvp(kernel, (at,), at), second, rtol=1e-6, atol=1e-7)
        assert np.any(want)


def test_the_plan_is_that_of_what_runs() -> None:
    kernel = ig.load(SOURCE, language="c++").kernel("rows", SIGNATURE)
    assert "rows" in str(ig.engine.explain_plan(kernel))


def test_what_they_do_not_help_with_is_refused_as_before() -> None:
    kernel = ig.load(SOURCE, language="c++").kernel("unknown", SIGNATURE)
    with pytest.raises(Unsupported, match="pointer of unknown origin"):
        ig.engine.grad(kernel)(np.array([0.5, -0.3]))


TEXT = """
@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @late, ptr null }, \
{ i32, ptr, ptr } { i32 101, ptr @early, ptr null }]
define internal void @late() {
  ret void
}
define internal void @early() {
  ret void
}
define void @"f g"(ptr %x) {
entry:
  ret void
}
define void @g() {
  ret void
}
"""


@pytest.mark.parametrize(("name", "head"), [("f g", '@"f g"(ptr %x) {\nentry:\n'), ("g", "@g() {\n")])
def test_the_first_call_runs_them_in_order(name: str, head: str) -> None:
    text = constructed(TEXT, name)
    assert "global_ctors" not in text
    assert f"{head}  call void @irgrad.constructors()\n  ret void" in text
    assert text.count("call void @irgrad.constructors()") == 1
    assert "  call void @early()\n  call void @late()\n  br label %end" in text
