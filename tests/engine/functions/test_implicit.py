"""Implicit differentiation: Newton's method and a fixed point in C against differences, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import fixed_point, jacfwd, jacrev, jvp, linear_solve, root, vjp
from irgrad.rules import extern, layer
from irgrad.rules.errors import RuleError

SOURCE = """
#include <math.h>
/* x0^2 + p0 x1 = 3, x1^3 - p1 x0 = 1 */
void residual(const double *p, const double *x, double *r) {
  r[0] = x[0] * x[0] + p[0] * x[1] - 3;
  r[1] = x[1] * x[1] * x[1] - p[1] * x[0] - 1;
}
__attribute__((noinline)) void newton(const double *p, double *x, int most) {
  for (int k = 0; k < most; k++) {
    double r[2];
    residual(p, x, r);
    if (fabs(r[0]) + fabs(r[1]) < 1e-13) return;
    double a = 2 * x[0], b = p[0], c = -p[1], d = 3 * x[1] * x[1], det = a * d - b * c;
    x[0] -= (d * r[0] - b * r[1]) / det;
    x[1] -= (a * r[1] - c * r[0]) / det;
  }
}
double rooted(const double *p, double *x, int most) {
  double q[2] = {p[0] * p[1], p[1]};
  newton(q, x, most);
  return x[0] * x[1] + p[0];
}
void step(double a, const double *p, const double *x, double *r, long n) {
  for (long i = 0; i < n; i++) r[i] = cos(a * x[i]) * 0.5 + p[i] * x[(i + 1) % n] * 0.25;
}
__attribute__((noinline)) void iterate(double a, const double *p, double *x, long n) {
  double next[100];
  for (int k = 0; k < 400; k++) {
    step(a, p, x, next, n);
    double change = 0;
    for (long i = 0; i < n; i++) { change += fabs(next[i] - x[i]); x[i] = next[i]; }
    if (change < 1e-15) return;
  }
}
void settled(double a, const double *p, double *x, long n) {
  iterate(a, p, x, n);
  for (long i = 0; i < n; i++) x[i] *= p[i];
}
__attribute__((noinline)) void gauss(const double *A, const double *b, double *x, long n) {
  double m[20][21];
  for (long i = 0; i < n; i++) { for (long j = 0; j < n; j++) m[i][j] = A[i * n + j]; m[i][n] = b[i]; }
  for (long k = 0; k < n; k++) {
    long best = k;
    for (long i = k + 1; i < n; i++) if (fabs(m[i][k]) > fabs(m[best][k])) best = i;
    for (long j = 0; j <= n; j++) { double t = m[k][j]; m[k][j] = m[best][j]; m[best][j] = t; }
    for (long i = 0; i < n; i++) if (i != k) {
      double f = m[i][k] / m[k][k];
      for (long j = k; j <= n; j++) m[i][j] -= f * m[k][j];
    }
  }
  for (long i = 0; i < n; i++) x[i] = m[i][n] / m[i][i];
}
void solved(const double *A, const double *b, double *x, long n) { gauss(A, b, x, n); }
"""
P = np.array([0.7, 0.4])
STEP = "void(f64 a, f64[n] p, f64[n] x, out f64[n] r, i64 n)"


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("implicit") / "implicit.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def _slopes(function: Any, at: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """Five-point differences of an array function of one array."""
    columns = []
    for k in range(at.size):
        e = np.zeros(at.size)
        e[k] = h
        a, b, c, d = (np.asarray(function(at + m * e)) for m in (-2, -1, 1, 2))
        columns.append((a - 8 * b + 8 * c - d) / (12 * h))
    return np.stack(columns, -1)


def _newton(lib: Any) -> tuple[Any, Any]:
    solver = lib.kernel("newton", "void(f64[2] p, inout f64[2] x, i32 most)")
    return solver, lib.kernel("residual", "void(f64[2] p, f64[2] x, out f64[2] r)")


def test_newtons_method_in_both_modes(lib: Any) -> None:
    rooted = lib.kernel("rooted", "f64(f64[2] p, inout f64[2] x, i32 most)")
    guess = np.ones(2)
    wanted = _slopes(lambda p: rooted(p, guess, 50)[0], P)
    with layer():
        root(*_newton(lib))
        _, pull = vjp(rooted, P, guess, 50)
        by_p, by_guess = pull((1.0, np.zeros(2)))
        np.testing.assert_allclose(by_p, wanted, rtol=1e-8)
        np.testing.assert_array_equal(by_guess, 0)
        _, (tangent, _) = jvp(rooted, (P, guess, 50), (np.array([0.3, -2.0]), np.ones(2), None))
        assert tangent == pytest.approx(wanted @ [0.3, -2.0], rel=1e-8)


def test_a_solver_that_does_not_converge_is_an_error(lib: Any) -> None:
    rooted = lib.kernel("rooted", "f64(f64[2] p, inout f64[2] x, i32 most)")
    with layer():
        root(*_newton(lib))
        _, pull = vjp(rooted, P, np.ones(2), 1)
        with pytest.raises(RuleError, match="the solver has not converged") as caught:
            pull((1.0, np.zeros(2)))
        assert "its result leaves a residual of" in str(caught.value)
        with pytest.raises(RuleError, match="the solver has not converged"):
            jvp(rooted, (P, np.ones(2), 1), (P, np.ones(2), None))


def _user(calls: list[bool]) -> Any:
    def solve(v: Any, transposed: bool, a: Any, p: Any, x: Any) -> Any:
        calls.append(transposed)
        matrix = -np.eye(len(x)) - np.diag(0.5 * a * np.sin(a * x)) + 0.25 * p[:, None] * np.roll(np.eye(len(x)), 1, 1)
        return np.linalg.solve(matrix.T if transposed else matrix, v)

    return solve


@pytest.mark.parametrize("method", ["dense", "gmres", "own"])
def test_a_fixed_point_in_both_modes(lib: Any, method: str) -> None:
    settled = lib.kernel("settled", "void(f64 a, f64[n] p, inout f64[n] x, i64 n)")
    p, guess = np.array([0.5, -0.8, 0.3, 0.9]), np.zeros(4)
    wanted = _slopes(lambda q: settled(0.6, q, guess), p)
    by_a = _slopes(lambda a: settled(a[0], p, guess), np.array([0.6]))[:, 0]
    calls: list[bool] = []
    with layer():
        options: dict[str, Any] = {"solve": _user(calls)} if method == "own" else {"method": method}
        fixed_point(lib.kernel("iterate", "void(f64 a, f64[n] p, inout f64[n] x, i64 n)"), lib.kernel("step", STEP),
                    **options)  # fmt: skip
        _, pull = vjp(settled, 0.6, p, guess)
        for k in range(4):
            got_a, got_p, _ = pull(np.eye(4)[k])
            np.testing.assert_allclose(got_p, wanted[k], rtol=1e-8, atol=1e-10)
            assert got_a == pytest.approx(by_a[k], rel=1e-8)
        v = np.array([0.3, -1.0, 0.2, 0.5])
        _, tangent = jvp(settled, (0.6, p, guess), (2.0, v, None))
        np.testing.assert_allclose(tangent, wanted @ v + 2 * by_a, rtol=1e-8)
    assert calls == ([True] * 4 + [False] if method == "own" else [])


@pytest.mark.long
def test_a_linear_solve_calls_the_same_solver(lib: Any) -> None:
    solved = lib.kernel("solved", "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)")
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((4, 4)), rng.standard_normal(4)
    inverse = np.linalg.inv(a)
    x = inverse @ b
    by_a = -np.einsum("ik,l->ikl", inverse, x)
    with layer():
        linear_solve(lib.kernel("gauss", "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)"))
        for jacobian in (jacfwd, jacrev):
            got_a, got_b = jacobian(solved, ["A", "b"])(a, b)
            np.testing.assert_allclose(got_a, by_a, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(got_b, inverse, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(jacobian(solved, "A")(a, b), by_a, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(jacobian(solved, "b")(a, b), inverse, rtol=1e-9, atol=1e-11)
        from irgrad import check_rule

        gauss = lib.kernel("gauss", "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)")
        assert check_rule(gauss, args=(a, b), widths=(1,)).ok


def test_what_does_not_fit_says_so(lib: Any) -> None:
    solver, residual = _newton(lib)
    with layer():
        with pytest.raises(RuleError, match="the prototype of `bare` is not known"):
            root("bare", residual)
        with pytest.raises(RuleError, match="`z` is no argument of both functions"):
            root(solver, residual, x="z")
        with pytest.raises(RuleError, match="the solver does not write `p`"):
            root(solver, residual, x="p")
        with pytest.raises(RuleError, match="there is no method 'magic'"):
            root(solver, residual, method="magic")
        with pytest.raises(RuleError, match="`A` is no input with 2 axes"):
            linear_solve(extern("gauss", "void(f64[n] A, f64[n] b, out f64[n] x, i64 n)"))
