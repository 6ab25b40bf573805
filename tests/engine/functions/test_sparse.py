"""Sparse Jacobians and Hessians against dense ones; patterns that are given, found, and wrong."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.functions import sparse
from irgrad.engine.functions.strips import OneLane, Strips

SOURCE = """
#include <math.h>
void band(const double *x, const double *a, double *y, double *z, long n) {
    for (long i = 0; i < n; i++) {
        y[i] = sin(x[i]) * a[0];
        if (i > 0) y[i] += x[i - 1] * x[i];
        if (i + 2 < n) y[i] += 0.0 * x[i + 2];
        z[i] = 1;
    }
}
void arrow(const double *x, double *y, long n) {
    y[0] = 0;
    for (long i = 0; i < n; i++) y[0] += x[i] * x[i];
    for (long i = 1; i < n; i++) y[i] = x[i] * x[i];
}
void branch(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[0] > 0 ? x[i] * x[i] : x[i] * x[(i + 1) % n];
}
void root(const double *x, double a, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = sqrt(x[i] - a) * x[(i + 1) % n];
}
double rosenbrock(const double *x, long n) {
    double s = 0;
    for (long i = 0; i + 1 < n; i++) {
        double a = x[i + 1] - x[i] * x[i];
        s += 100 * a * a + (1 - x[i]) * (1 - x[i]);
    }
    return s;
}
"""
BAND = "void(f64[n] x, f64[1] a, out f64[n] y, out f64[n] z, i64 n)"


def _kernel(name: str, signature: str = "void(f64[n] x, out f64[n] y, i64 n)") -> Any:
    return irgrad.load(SOURCE).kernel(name, signature)


def _x(n: int) -> Any:
    return np.random.default_rng(n).uniform(0.2, 1.0, n)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_a_band_is_found(n: int, mode: str) -> None:
    """Every entry, the one with a partial of zero included, in a handful of directions."""
    kernel, x, a = _kernel("band", BAND), _x(n), np.array([2.0])
    got = engine.jac_sparse(kernel, of="y", mode=mode)(x, a)
    assert got.nnz == n + max(0, n - 1) + max(0, n - 2)
    np.testing.assert_allclose(got.toarray(), engine.jacfwd(kernel)(x, a)[0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("width", [1, 3, 16])
def test_widths(width: int) -> None:
    kernel, x, a = _kernel("band", BAND), _x(20), np.array([2.0])
    got = engine.jac_sparse(kernel, of="y", width=width)(x, a)
    np.testing.assert_allclose(got.toarray(), engine.jacfwd(kernel)(x, a)[0], rtol=1e-13, atol=1e-13)


def test_a_dense_row_is_taken_in_reverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """An arrow needs n columns, but two rows."""
    modes = []
    made = Strips.__init__

    def counted(self: Strips, *args: Any) -> None:
        made(self, *args)
        modes.append(self.program.word[-1].derivative)

    kernel, x = _kernel("arrow"), _x(30)
    pattern = np.eye(30, dtype=bool)
    pattern[0] = True
    monkeypatch.setattr(Strips, "__init__", counted)
    got = engine.jac_sparse(kernel, pattern)(x)
    assert modes == ["pullback"]
    np.testing.assert_allclose(got.toarray(), np.diag(2 * x) + np.outer(np.eye(30)[0], 2 * x) * (np.arange(30) > 0))


def test_patterns_are_given_in_three_forms() -> None:
    kernel, x, a = _kernel("band", BAND), _x(6), np.array([2.0])
    dense = np.eye(6, dtype=bool) | np.eye(6, k=-1, dtype=bool)
    for pattern in (dense, scipy.sparse.csr_array(dense), np.nonzero(dense)):
        got = engine.jac_sparse(kernel, pattern, of="y")(x, a)
        assert got.nnz == 11
        np.testing.assert_allclose(got.toarray(), engine.jacfwd(kernel)(x, a)[0], rtol=1e-13, atol=1e-13)


def test_a_pattern_that_misses_an_entry_is_noticed() -> None:
    with pytest.raises(irgrad.IRGradError, match="entries outside of its pattern"):
        engine.jac_sparse(_kernel("band", BAND), np.eye(6), of="y")(_x(6), np.array([2.0]))


def test_another_branch_extends_the_pattern() -> None:
    kernel, x = _kernel("branch"), _x(9)
    jacobian = engine.jac_sparse(kernel)
    assert jacobian(x).nnz == 9
    for point in (-x, x):
        np.testing.assert_allclose(jacobian(point).toarray(), engine.jacfwd(kernel)(point), rtol=1e-13, atol=1e-13)
    assert jacobian(x).nnz == 18


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_a_first_call_with_a_nan_or_an_infinity(bad: float, mode: str) -> None:
    """The rows that it makes NaN are probed elsewhere; the others, and all values, are those of the point."""
    kernel, x = _kernel("branch"), -_x(6)
    x[2] = bad
    got = engine.jac_sparse(kernel, mode=mode)(x)
    dense = engine.jacfwd(kernel)(x) if mode != "reverse" else engine.jacrev(kernel)(x)
    wanted = np.eye(6, dtype=bool) | np.roll(np.eye(6, dtype=bool), 1, axis=1)
    np.testing.assert_array_equal(got.toarray(), np.where(wanted, dense, 0.0))
    assert got.nnz == 12 and not np.isfinite(got.toarray()[1, 1])
    x[2] = np.nan
    kernel = _kernel("rosenbrock", "f64(f64[n] x, i64 n)")
    hessian, tridiagonal = engine.hessian_sparse(kernel), np.abs(np.subtract.outer(np.arange(6), np.arange(6))) < 2
    for point in (x, -_x(6)):
        np.testing.assert_allclose(hessian(point).toarray(), np.where(tridiagonal, engine.hessian(kernel)(point), 0.0))
    np.testing.assert_allclose(engine.hessian_sparse(kernel)(np.full(6, bad)).nnz, 16)


def test_a_first_call_at_an_infinite_slope() -> None:
    """sqrt at 0: the row is NaN in the direction zero. Where nothing nearby is a number a pattern is asked for."""
    kernel = _kernel("root", "void(f64[n] x, f64 a, out f64[n] y, i64 n)")
    got = engine.jac_sparse(kernel)(np.array([1.0, 0.0, 4.0]), 0.0)
    np.testing.assert_array_equal(got.toarray(), [[0.0, 1, 0], [0, np.inf, np.nan], [2, 0, 0.25]])  # as jacfwd has it
    with pytest.raises(irgrad.IRGradError, match="element 0 of the output are NaN") as caught:
        engine.jac_sparse(kernel)(np.array([1.0, 0.0, 4.0]), 100.0)
    assert "pass a pattern" in caught.value.fix
    pattern = np.eye(3, dtype=bool) | np.roll(np.eye(3, dtype=bool), 1, axis=1)
    assert np.isnan(engine.jac_sparse(kernel, pattern)(np.array([1.0, 0.0, 4.0]), 100.0).data).all()


def test_hessian() -> None:
    kernel, x = _kernel("rosenbrock", "f64(f64[n] x, i64 n)"), _x(25)
    got = engine.hessian_sparse(kernel)(x)
    assert got.nnz == 25 + 2 * 24
    np.testing.assert_allclose(got.toarray(), engine.hessian(kernel)(x), rtol=1e-12, atol=1e-11)


def test_probing_takes_few_lanes() -> None:
    """A band of length n is found in a number of directions that grows with log n, not with n."""
    lanes: list[int] = []
    apply = sparse._apply

    def counted(make: Any, rows: Any, width: int) -> Any:
        lanes.append(len(rows))
        return apply(make, rows, width)

    kernel = _kernel("rosenbrock", "f64(f64[n] x, i64 n)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "_apply", counted)
        engine.hessian_sparse(kernel)(_x(2000))
    assert sum(lanes) < 100


def test_an_overwritten_argument() -> None:
    """The first matrix, for which the pattern is probed, is that of the arguments too."""
    kernel = irgrad.load("void f(double *y) { y[0] *= y[1]; y[1] *= y[0]; }").kernel("f", "void(inout f64[2] y)")
    found = engine.jac_sparse(kernel)
    for _ in range(2):
        assert found(np.array([3.0, 5.0])).toarray().tolist() == [[5, 3], [25, 30]]


@pytest.mark.parametrize("given", [False, True])
def test_single_precision_inside(given: bool) -> None:
    """Entries agree with a product to single precision only; a pattern that misses one is noticed all the same."""
    source = "void f(const double *x, double *y) { float q = 0.3 * x[0]; y[0] = q * x[1] + 0.7 * x[2]; y[1] = q / 3; }"
    kernel = irgrad.load(source).kernel("f", "void(f64[3] x, out f64[2] y)")
    pattern = np.array([[1, 1, 1], [1, 0, 0]], bool)
    x = np.array([0.1, 0.7, -0.3])
    found = engine.jac_sparse(kernel, pattern if given else None)(x).toarray()
    np.testing.assert_allclose(found, engine.jacfwd(kernel)(x), rtol=1e-6)
    pattern[0, 2] = False
    with pytest.raises(irgrad.IRGradError, match="entries outside of its pattern"):
        engine.jac_sparse(kernel, pattern)(x)


def test_pattern_and_colours_of_a_derivative() -> None:
    kernel = _kernel("arrow")
    x = np.arange(1.0, 7.0)
    found = engine.jac_sparse(kernel)
    np.testing.assert_array_equal(found.pattern(x).toarray(), found(x).toarray() != 0)
    by_column = engine.jac_sparse(kernel, mode="forward")
    assert (found.colours(x), by_column.colours(x)) == (2, 6)  # two rows that share no column, and a full first row
    given = scipy.sparse.csr_array(np.ones((6, 6), bool))
    assert engine.jac_sparse(kernel, given).colours(x) == 6
    second = engine.hessian_sparse(_kernel("rosenbrock", "f64(f64[n] x, i64 n)"))
    assert second.colours(np.ones(50)) == 3 and second.pattern(np.ones(50)).nnz == 148


@pytest.mark.parametrize("name", ["arrow", "rosenbrock"])
def test_linear_operators_are_the_matrices(name: str) -> None:
    scalar = name == "rosenbrock"
    kernel = _kernel(name, "f64(f64[n] x, i64 n)") if scalar else _kernel(name)
    derivative = (engine.hessian_sparse if scalar else engine.jac_sparse)(kernel)
    x, v = np.array([0.5, -1.0, 2.0, 1.5]), np.array([1.0, -2.0, 0.5, 3.0])
    made, dense = derivative.aslinearoperator(x), derivative(x).toarray()
    x[:] = 0  # the operator has its own copy
    np.testing.assert_allclose(made @ v, dense @ v, rtol=1e-13)
    np.testing.assert_allclose(made.T @ v, dense.T @ v, rtol=1e-13)
    np.testing.assert_allclose(made @ np.eye(4), dense, rtol=1e-13)
    assert made.shape == (4, 4) and made.dtype == np.float64


def test_entries_that_a_pattern_lacks_are_named() -> None:
    with pytest.raises(irgrad.IRGradError, match=r"lacks \(0, 1\), \(0, 2\), \(0, 3\) and 2 more") as caught:
        engine.jac_sparse(_kernel("arrow"), (np.arange(6), np.arange(6)))(np.arange(1.0, 7.0))
    assert "or none" in str(caught.value)


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse.linalg", None)
    with pytest.raises(irgrad.IRGradError, match="needs SciPy"):
        engine.jac_sparse(_kernel("arrow")).aslinearoperator(np.ones(2))
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    rows, cols, values, shape = engine.jac_sparse(_kernel("arrow"), mode="forward")(np.array([1.0, 2.0]))
    assert rows.tolist() == [0, 0, 1] and cols.tolist() == [0, 1, 1] and shape == (2, 2)
    np.testing.assert_allclose(values, [2.0, 4.0, 4.0])


def test_requests_that_mean_nothing() -> None:
    kernel = _kernel("band", BAND)
    with pytest.raises(irgrad.SignatureError, match="a sparse matrix is of one output"):
        engine.jac_sparse(kernel)
    with pytest.raises(irgrad.SignatureError, match="no floating-point output `w`"):
        engine.jac_sparse(kernel, of="w")
    with pytest.raises(irgrad.SignatureError, match="by one argument"):
        engine.jac_sparse(kernel, wrt=("x", "a"), of="y")
    with pytest.raises(irgrad.SignatureError, match="no mode 'fast'"):
        engine.jac_sparse(kernel, of="y", mode="fast")
    with pytest.raises(irgrad.ActivityError, match="the outputs are no floats"):
        engine.jac_sparse(sample("count"), wrt="x")
    for wrong in (np.eye(5), (np.array([0]), np.array([6])), (np.array([0, 1]), np.array([0]))):
        with pytest.raises(irgrad.ShapeError, match="pattern"):
            engine.jac_sparse(kernel, wrong, of="y")(_x(6), np.array([2.0]))


def test_where_only_one_lane_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rules of the user take one direction at a time everything does."""
    from irgrad.engine.kernel.programs import Program
    from irgrad.rules.errors import OneAtATime

    make = Program._make_stage

    def stage(self: Program) -> Any:
        if self.word and self.word[-1].width > 1:
            raise OneAtATime("a rule that writes calls")
        return make(self)

    monkeypatch.setattr(Program, "_make_stage", stage)
    kernel, x, a = _kernel("band", BAND), _x(8), np.array([2.0])
    want = engine.jacfwd(kernel, width=1)(x, a)[0]
    with pytest.warns(OneLane, match="`band` run one after the other"):
        found = engine.jac_sparse(kernel, of="y")(x, a)
    np.testing.assert_allclose(found.toarray(), want, rtol=1e-13, atol=1e-13)
    with pytest.warns(OneLane):
        _, rows = engine.multi_jvp(kernel, (x, a), (np.eye(8), None), width=4)
    np.testing.assert_allclose(rows[0].T, want, rtol=1e-13, atol=1e-13)
