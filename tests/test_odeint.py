"""Boost.odeint as it is installed: derivatives through integrators that choose their steps."""

from __future__ import annotations

import pytest
from headers import ODEINT, header_folder

import irgrad as ig

pytestmark = pytest.mark.long

SOURCE = r"""
#include <array>
#include <vector>
#include <boost/numeric/odeint.hpp>
using namespace boost::numeric::odeint;
typedef std::vector<double> V;
typedef std::array<double, 2> A;
struct Oscillator {  // x'' = mu (1 - x^2) x' - x
  double mu;
  template <class S> void operator()(const S &x, S &dx, double) const {
    dx[0] = x[1];
    dx[1] = mu * (1 - x[0] * x[0]) * x[1] - x[0];
  }
};
template <class S> double last(const S &s) { return s[0] * s[0] + s[1]; }
#define F(name, S, run) extern "C" double name(double mu, double x) { S s{x, 0}; Oscillator f{mu}; run; \
  return last(s); }
F(adaptive_array, A, integrate_adaptive(make_controlled<runge_kutta_dopri5<A>>(1e-8, 1e-8), f, s, 0.0, 2.0, 0.01))
F(adaptive_vector, V, integrate_adaptive(make_controlled<runge_kutta_dopri5<V>>(1e-8, 1e-8), f, s, 0.0, 2.0, 0.01))
F(constant_vector, V, integrate_const(runge_kutta4<V>(), f, s, 0.0, 2.0, 0.01))
F(dense_array, A, integrate_const(make_dense_output<runge_kutta_dopri5<A>>(1e-8, 1e-8), f, s, 0.0, 2.0, 0.1))
F(extrapolated_vector, V, integrate_adaptive(bulirsch_stoer<V>(1e-8, 1e-8), f, s, 0.0, 2.0, 0.1))
"""
NAMES = ("adaptive_array", "adaptive_vector", "constant_vector", "dense_array", "extrapolated_vector")


def check(name: str, level: str | None) -> None:
    """Reverse against differences of the function's values, and against forward mode."""
    library = ig.load(SOURCE, language="c++", opt=level, flags=["-std=c++14"], include=[header_folder(*ODEINT)])
    kernel = library.kernel(name)
    x, h = (1.2, 1.5), 1e-4
    value, gradient = ig.engine.value_and_grad(kernel, argnums=(0, 1))(*x)
    assert value == pytest.approx(kernel(*x), rel=1e-12)
    for i, e in enumerate(((h, 0.0), (0.0, h))):
        at = [kernel(x[0] + k * e[0], x[1] + k * e[1]) for k in (-2, -1, 1, 2)]
        want = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
        assert gradient[i] == pytest.approx(want, rel=1e-7)
        forward = ig.engine.jvp(kernel, x, (float(i == 0), float(i == 1)))[1]
        assert gradient[i] == pytest.approx(forward, rel=1e-11)


@pytest.mark.parametrize("name", ["adaptive_array", "adaptive_vector"])
def test_steps_of_dormand_and_prince(name: str) -> None:
    check(name, "O2")


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", NAMES)
def test_integrators_at_every_level(name: str, level: str | None) -> None:
    check(name, level)
