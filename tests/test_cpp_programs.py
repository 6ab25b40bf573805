"""C++17 programs with the standard library: reverse and forward against differences of the function's own values."""

from __future__ import annotations

import numpy as np
import pytest
from cpp_programs import GROUPS, PROGRAMS

import irgrad as ig

pytestmark = pytest.mark.long


def _check(group: str, name: str, level: str | None) -> None:
    kernel = ig.load(GROUPS[group], language="c++", opt=level).kernel(name)
    x, h = 1.3, 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    value, gradient = ig.engine.value_and_grad(kernel)(x)
    assert value == pytest.approx(kernel(x), rel=1e-12)
    assert gradient == pytest.approx(want, rel=1e-8, abs=1e-7)
    assert gradient != 0
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize(("group", "name"), PROGRAMS[::2])
def test_program(group: str, name: str) -> None:
    _check(group, name, None)


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize(("group", "name"), PROGRAMS)
def test_program_at_every_level(group: str, name: str, level: str | None) -> None:
    _check(group, name, level)


def test_the_table_is_broad() -> None:
    assert len(PROGRAMS) >= 40
    assert len({name for _, name in PROGRAMS}) == len(PROGRAMS)


MEMBERS = """
struct P { double w; double side(double z) { return w * z * z; } };
struct Q : virtual P { double u, v; double p(double z) { return u * z; } double q(double z) { return v + z * u; }
                       virtual double r(double z) { return u * v * z; } };
struct R : Q { double r(double z) override { return u - v * z * z; } };
typedef double (Q::*Member)(double);
static const Member constant[3] = {&Q::p, &Q::q, &Q::r};
static Member changing[2] = {&Q::q, &Q::r};
__attribute__((noinline)) static double apply(Q &o, Member m, double s) { return (o.*m)(s); }
static void set(Q &o, const double *x) { o.u = x[0]; o.v = x[1]; o.w = x[2]; }
#define KERNEL(name, type, expression) extern "C" double name(const double *x, long n) { \
  type o; set(o, x); Member local[2] = {&Q::p, &Q::q}; (void)local; double s = 1; \
  for (long i = 0; i < n; i++) s = 0.5 * (expression) + x[i]; return s; }
KERNEL(table, Q, (o.*local[i & 1])(s))
KERNEL(chosen, Q, (o.*((i * n) % 3 ? &Q::p : &Q::q))(s))
KERNEL(passed, Q, apply(o, i % 2 ? &Q::p : &Q::q, s))
KERNEL(constants, R, (o.*constant[i % 3])(s))
KERNEL(variables, Q, apply(o, changing[i & 1], s) + o.side(s))
KERNEL(overridden, R, apply(o, &Q::r, s))
"""


@pytest.mark.parametrize("opt", [None, "O0", "O2"])
@pytest.mark.parametrize("name", ["table", "chosen", "passed", "constants", "variables", "overridden"])
def test_pointers_to_member_functions(name: str, opt: str | None) -> None:
    """They are structs of two integers, of which one is an address or a place in the table of virtual functions."""
    kernel = ig.load(MEMBERS, language="c++", opt=opt).kernel(name, "f64(f64[n] x, i64 n)")
    x = np.array([0.5, -0.3, 1.2, 0.7])
    want = [(kernel(x + 1e-6 * e) - kernel(x - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), want, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ig.engine.jacfwd(kernel)(x), want, rtol=1e-7, atol=1e-9)
    pulled = ig.engine.multi_vjp(kernel, x)[1](np.array([1.0, -2.0, 3.0]))
    np.testing.assert_allclose(pulled[0], np.outer([1, -2, 3], want), rtol=1e-7, atol=1e-9)


GROWING = """
#include <algorithm>
#include <cmath>
#include <vector>
struct P { double a; int k; double b; };
#define KERNEL(name, ...) extern "C" double name(const double *x, long n) { double s = 0; __VA_ARGS__ return s; }
KERNEL(pushed, std::vector<double> v; for (long i = 0; i < n; i++) { v.push_back(x[i] * s + x[i]);
  if (v.size() > 2) { s += v.back() * v[0]; v.pop_back(); } } for (double e : v) s = 0.5 * s + std::sin(e);)
KERNEL(moved, std::vector<double> u(x, x + n); for (int t = 0; t < 3; t++) { std::vector<double> w = std::move(u);
  w.push_back(w[0] * w[1]); u = std::move(w); u.erase(u.begin()); } for (double e : u) s = 0.5 * s + std::sin(e);)
KERNEL(structs, std::vector<P> v; for (long i = 0; i < n; i++) v.push_back(P{x[i] * x[i], (int)i, x[i]});
  for (auto &e : v) s = 0.5 * s + e.a * e.b * e.k;)
KERNEL(nested, std::vector<std::vector<double>> v; for (long i = 0; i < n; i++) { v.emplace_back();
  for (long j = 0; j <= i; j++) v.back().push_back(x[j] * x[i]); }
  for (auto &r : v) for (double e : r) s += sin(e + s);)
KERNEL(inserted, std::vector<double> v;
  for (long i = 0; i < n; i++) v.insert(std::upper_bound(v.begin(), v.end(), x[i]), x[i]);
  for (double e : v) s = 0.5 * s + std::sin(e * s + e);)
"""


@pytest.mark.parametrize("opt", [None, "O2"])
@pytest.mark.parametrize("name", ["pushed", "moved", "structs", "nested", "inserted"])
def test_second_derivatives_of_vectors_that_grow(name: str, opt: str | None) -> None:
    """How far the end of one lies behind its begin is kept on the tape, beside pointers."""
    kernel = ig.load(GROWING, language="c++", opt=opt).kernel(name, "f64(f64[n] x, i64 n)")
    x, v, gradient = np.array([0.5, -0.3, 1.2, 0.7]), np.array([1.0, 2, 3, 4]), ig.engine.grad(kernel)
    want = (gradient(x + 1e-5 * v) - gradient(x - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(ig.engine.hvp(kernel, (x,), v), want, rtol=1e-6, atol=1e-6)
    assert want.any()
