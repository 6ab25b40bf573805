"""Eigen as it is installed, without any define: gradients of 20 x 20 problems against their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from headers import EIGEN, header_folder

import irgrad as ig

pytestmark = pytest.mark.long

SIZE = 20
SOURCE = r"""
#include <Eigen/Dense>
using namespace Eigen;
#define F(name, body) extern "C" double name(const double *a, const double *b, long n) { \
    Map<const MatrixXd> A(a, n, n), B(b, n, n); body }
F(product, MatrixXd C = A * B; return C.squaredNorm();)
F(llt, MatrixXd S = A * A.transpose() + MatrixXd::Identity(n, n); return S.llt().solve(B.col(0)).squaredNorm();)
F(lu, VectorXd x = A.partialPivLu().solve(B.col(0)); return x.squaredNorm();)
F(qr, VectorXd x = A.householderQr().solve(B.col(0)); return x.squaredNorm();)
F(norms, return A.norm() * B.norm() + A.lpNorm<1>() + (A - B).colwise().squaredNorm().maxCoeff();)
extern "C" double fixed(const double *a, const double *b) {
  Map<const Matrix3d> A(a), B(b);
  return (A * B).squaredNorm() + (A.inverse() * B.col(0)).squaredNorm() + A.determinant();
}
"""
SINGULAR = r"""
#include <Eigen/Dense>
using namespace Eigen;
extern "C" double singular(const double *a) {
  Matrix3d A = Map<const Matrix3d>(a);
  Vector3d s = JacobiSVD<Matrix3d>(A).singularValues();
  return s[0] + 2 * s[1] * s[1] + 3 * s[2];
}
extern "C" double rotation(const double *a) {
  Matrix3d A = Map<const Matrix3d>(a);
  JacobiSVD<Matrix3d> svd(A, ComputeFullU | ComputeFullV);
  Matrix3d R = svd.matrixU() * svd.matrixV().transpose();
  return R(0, 0) + 2 * R(1, 2);
}
"""
Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def product(a: np.ndarray, b: np.ndarray) -> Pair:
    """|A B|^2."""
    return 2 * a @ b @ b.T, 2 * a.T @ a @ b


def solve(a: np.ndarray, b: np.ndarray) -> Pair:
    """|A^-1 b|^2 for the first column of B."""
    x, gradient = np.linalg.solve(a, b[:, 0]), np.zeros_like(b)
    gradient[:, 0] = np.linalg.solve(a.T, 2 * x)
    return -np.outer(gradient[:, 0], x), gradient


def cholesky(a: np.ndarray, b: np.ndarray) -> Pair:
    """The same of A A' + 1."""
    inner, gradient = solve(a @ a.T + np.eye(len(a)), b)
    return (inner + inner.T) @ a, gradient


def norms(a: np.ndarray, b: np.ndarray) -> Pair:
    """|A| |B| + sum |a_ij| + the largest |column of A - B|^2."""
    column = np.zeros_like(a)
    j = np.argmax(((a - b) ** 2).sum(0))
    column[:, j] = 2 * (a - b)[:, j]
    size_a, size_b = np.linalg.norm(a), np.linalg.norm(b)
    return a / size_a * size_b + np.sign(a) + column, b / size_b * size_a - column


def fixed(a: np.ndarray, b: np.ndarray) -> Pair:
    """Products, inverse and determinant of 3 x 3."""
    (pa, pb), (sa, sb) = product(a, b), solve(a, b)
    return pa + sa + np.linalg.det(a) * np.linalg.inv(a).T, pb + sb


FORMULAS: dict[str, Callable[[np.ndarray, np.ndarray], Pair]] = {
    "product": product, "llt": cholesky, "lu": solve, "qr": solve, "norms": norms, "fixed": fixed}  # fmt: skip


def check(name: str, level: str, *flags: str) -> None:
    library = ig.load(SOURCE, language="c++", opt=level, flags=list(flags), include=[header_folder(*EIGEN)])
    size = 3 if name == "fixed" else SIZE
    signature = "f64(f64[3,3] a, f64[3,3] b)" if name == "fixed" else "f64(f64[n,n] a, f64[n,n] b, i64 n)"
    kernel = library.kernel(name, signature)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(size, size)) + 4 * np.eye(size), rng.normal(size=(size, size))
    value, (left, right) = ig.engine.value_and_grad(kernel, argnums=(0, 1))(a.T.copy(), b.T.copy())  # by columns
    assert value == pytest.approx(kernel(a.T.copy(), b.T.copy()), rel=1e-13)
    for got, want in zip((left.T, right.T), FORMULAS[name](a, b), strict=True):
        assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max()


@pytest.mark.parametrize("name", ["lu", "norms", "fixed"])
def test_gradients(name: str) -> None:
    check(name, "O2")


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_at_every_level(name: str, level: str) -> None:
    check(name, level)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "lu"])
def test_gradients_with_wide_vectors(name: str) -> None:
    """Eigen writes its products in assembly where the processor multiplies and adds at once."""
    check(name, "O2", "-mavx2", "-mfma")


PIECES = r"""
#include <Eigen/Dense>
using namespace Eigen;
#define F(name, ...) extern "C" double name(double x) { VectorXd v(5), w(5); \
    for (int i = 0; i < 5; i++) { v[i] = x * (i - 2) + 0.13; w[i] = x * x - i; } __VA_ARGS__ }
F(spaced, return VectorXd::LinSpaced(6, x, 2 * x).dot(VectorXd::LinSpaced(6, x * x, 1));)
F(absolute, return v.cwiseAbs().maxCoeff() * x + v.array().abs().sqrt().sum();)
F(extremes, return v.cwiseMax(w).squaredNorm() + v.cwiseMin(w).sum() * x;)
F(selected, return (v.array() > w.array()).select(v.cwiseProduct(w), w.cwiseAbs2() * x).sum();)
F(outer, MatrixXd m = v * w.transpose(); Map<Matrix<double, 5, Dynamic>> left(m.data(), 5, 5);
  left.noalias() -= x * Matrix<double, 5, 1>(w) * v.transpose(); return m.squaredNorm() + m(1, 2);)
F(reflected, MatrixXd m = v * w.transpose(); Vector3d u(x, x * x, 1); double tau, beta; Vector2d rest; VectorXd work(5);
  u.makeHouseholder(rest, tau, beta); m.topRows<3>().applyHouseholderOnTheLeft(rest, tau, work.data());
  return m.cwiseAbs2().topRows(2).sum() + m(2, 1);)
F(functions, return (w.array().exp() * v.array().sin() + v.array().tanh() + v.array().cube()).sum();)
F(eigenvalues, Matrix3d m; m << x, 1, 0.3, 1, 2 * x, 0.5, 0.3, 0.5, x * x;
  return SelfAdjointEigenSolver<Matrix3d>(m).eigenvalues().dot(Vector3d(1, 2, 3));)
F(eigenvalues_dynamic, MatrixXd m = v * v.transpose() + MatrixXd(w.asDiagonal());
  return SelfAdjointEigenSolver<MatrixXd>(m).eigenvalues().head(4).squaredNorm();)
"""
SPARSE = r"""
#include <Eigen/Sparse>
#include <Eigen/Eigenvalues>
#include <Eigen/SparseLU>
#include <vector>
using namespace Eigen;
typedef SparseMatrix<double> Thin;
static Thin chain(double x, int n) {
  std::vector<Triplet<double>> t;
  for (int i = 0; i < n; i++) {
    t.emplace_back(i, i, 2 * x + i);
    if (i) { t.emplace_back(i, i - 1, -x); t.emplace_back(i - 1, i, -1); }
  }
  Thin m(n, n);
  m.setFromTriplets(t.begin(), t.end());
  return m;
}
#define F(name, ...) extern "C" double name(double x) { \
    Thin m = chain(x, 6); VectorXd v = VectorXd::LinSpaced(6, x, 2 * x); __VA_ARGS__ }
F(sparse_product, return (m * v).squaredNorm();)
F(sparse_cholesky, m = Thin(m.transpose()) + m; SimplicialLDLT<Thin> s(m); VectorXd r = s.solve(v);
  return r.squaredNorm();)
F(sparse_lu, SparseLU<Thin> s; s.analyzePattern(m); s.factorize(m); VectorXd r = s.solve(v); return r.squaredNorm();)
F(conjugate_gradients, m = Thin(m.transpose()) + m; ConjugateGradient<Thin, Lower | Upper> s; s.setTolerance(1e-14);
  s.compute(m); VectorXd r = s.solve(v); return r.squaredNorm();)
F(eigenvalues_general, MatrixXd d = MatrixXd(m).topLeftCorner(3, 3); EigenSolver<MatrixXd> s(d);
  return s.eigenvalues().real().dot(Vector3d(1, 2, 3));)
"""
PARTS = "spaced absolute extremes selected functions outer reflected eigenvalues".split()


LONG = ("eigenvalues_dynamic", "sparse_product", "sparse_cholesky", "sparse_lu", "eigenvalues_general",
        "conjugate_gradients")  # fmt: skip


def check_piece(name: str, level: str) -> None:
    """Reverse and forward against differences of the function's values."""
    source = PIECES if name in PIECES else SPARSE
    kernel = ig.load(source, language="c++", opt=level, include=[header_folder(*EIGEN)]).kernel(name)
    x, h = 1.3, 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    assert ig.engine.grad(kernel)(x) == pytest.approx(want, rel=1e-8)
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("name", PARTS[:-1])
def test_pieces(name: str) -> None:
    check_piece(name, "O2")


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
@pytest.mark.parametrize("name", [*PARTS, *LONG])
def test_pieces_at_every_level(name: str, level: str) -> None:
    check_piece(name, level)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norms", "llt"])
def test_second_derivatives(name: str) -> None:
    """Of 3 x 3 problems, against differences of the gradient."""
    library = ig.load(SOURCE, language="c++", opt="O2", include=[header_folder(*EIGEN)])
    kernel = library.kernel(name, "f64(f64[n,n] a, f64[n,n] b, i64 n)")
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 3)) + 4 * np.eye(3), rng.normal(size=(3, 3))
    got = ig.engine.hessian(kernel, wrt="a")(a, b)
    gradient = ig.engine.grad(kernel, wrt="a")
    for i, j in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[i, j] = 1e-6
        want = (gradient(a + step, b) - gradient(a - step, b)) / 2e-6
        np.testing.assert_allclose(got[i, j], want, rtol=1e-6, atol=1e-8)


QUATERNIONS = r"""
#include <Eigen/Geometry>
using namespace Eigen;
extern "C" double turned(const double *x, long n) {
  Quaterniond a(x[0], x[1], x[2], x[3]), b(x[4], x[5], x[6], x[n - 1]);
  Quaterniond c = a * b;
  return c.w() + c.x() * c.y() + c.z();
}
"""


@pytest.mark.parametrize("level", [None, "O3"])
def test_products_of_quaternions(level: str | None) -> None:
    """Vector code flips the signs of some lanes by the bits of a constant."""
    library = ig.load(QUATERNIONS, language="c++", opt=level, include=[header_folder(*EIGEN)])
    kernel = library.kernel("turned", "f64(f64[n] x, i64 n)")

    def turned(x: Any) -> Any:
        (aw, ax, ay, az), (bw, bx, by, bz) = x[:4], x[4:]
        cx, cy = aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx
        return aw * bw - ax * bx - ay * by - az * bz + cx * cy + aw * bz + ax * by - ay * bx + az * bw

    x = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4, 0.8, 0.6])
    want = [turned(x + 1e-20j * e).imag / 1e-20 for e in np.eye(8)]
    np.testing.assert_allclose(ig.grad(kernel)(x), want, rtol=1e-13)
    np.testing.assert_allclose(ig.jvp(kernel, (x,), (x,))[1], np.dot(want, x), rtol=1e-13)


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("name", ["singular", "rotation"])
def test_singular_values(name: str, level: str) -> None:
    kernel = ig.load(SINGULAR, language="c++", include=[header_folder(*EIGEN)], opt=level).kernel(name, "f64(f64[9] a)")
    rng = np.random.default_rng(0)
    a, v, h = rng.normal(size=9), rng.normal(size=9), 1e-5
    gradient = ig.grad(kernel)
    differences = [(kernel(a + h * e) - kernel(a - h * e)) / (2 * h) for e in np.eye(9)]
    np.testing.assert_allclose(gradient(a), differences, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ig.jvp(kernel, (a,), (v,))[1], gradient(a) @ v, rtol=1e-11)
    second = (gradient(a + h * v) - gradient(a - h * v)) / (2 * h)
    np.testing.assert_allclose(ig.hvp(kernel, (a,), v), second, rtol=1e-6, atol=1e-7)


DIVIDED = r"""
#include <Eigen/SVD>
using namespace Eigen;
extern "C" double values(const double *a, long n) {
  BDCSVD<MatrixXd> svd(Map<const MatrixXd>(a, n, n));
  return svd.singularValues().dot(VectorXd::LinSpaced(n, 1, 2)) + svd.singularValues().squaredNorm();
}
extern "C" double vectors(const double *a, long n) {
  BDCSVD<MatrixXd> svd(Map<const MatrixXd>(a, n, n), ComputeThinU | ComputeThinV);
  MatrixXd rotation = svd.matrixU() * svd.matrixV().transpose();
  return rotation(0, 0) + 2 * rotation(1, 2) + svd.solve(VectorXd::LinSpaced(n, 1, 2)).squaredNorm();
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["values", "vectors"])
def test_singular_values_of_any_size(name: str) -> None:
    """A solver of dozens of matrices as members: one function resizes them all. Of fewer than 16 columns: else Eigen
    may find values by bisection, which has no derivative."""
    library = ig.load(DIVIDED, language="c++", include=[header_folder(*EIGEN)], opt="O2")
    kernel = library.kernel(name, "f64(f64[n,n] a, i64 n)")
    rng = np.random.default_rng(0)
    a, v, h = rng.normal(size=(6, 6)), rng.normal(size=(6, 6)), 1e-5
    gradient = ig.grad(kernel)(a)
    for way in (v, v[::-1], v.T):
        difference = (kernel(a + h * way) - kernel(a - h * way)) / (2 * h)
        np.testing.assert_allclose((gradient * way).sum(), difference, rtol=1e-6)
    np.testing.assert_allclose(ig.jvp(kernel, (a,), (v,))[1], (gradient * v).sum(), rtol=1e-11)


SOLVERS = r"""
#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <unsupported/Eigen/FFT>
#include <unsupported/Eigen/MatrixFunctions>
#include <unsupported/Eigen/Splines>
using namespace Eigen;
#define F(name, ...) extern "C" double name(const double *a, long n) { \
    MatrixXd A = Map<const MatrixXd>(a, n, n), S = A * A.transpose() + MatrixXd::Identity(n, n); \
    VectorXd b = VectorXd::LinSpaced(n, 1, 2); __VA_ARGS__ }
F(pivoted_qr, return A.colPivHouseholderQr().solve(b).squaredNorm();)
F(pivoted_lu, return A.fullPivLu().solve(b).squaredNorm();)
F(ldlt, return S.ldlt().solve(b).squaredNorm();)
F(square_root, return SelfAdjointEigenSolver<MatrixXd>(S).operatorSqrt()(0, 1);)
F(complex_eigenvalues, EigenSolver<MatrixXd> s(A, false); return s.eigenvalues().cwiseAbs2().sum();)
F(exponential, MatrixXd R = A.exp(); return R.squaredNorm();)
F(transform, FFT<double> t; VectorXd v = A.reshaped(); VectorXcd w; t.fwd(w, v); return w.cwiseAbs2().head(5).sum();)
F(spline, typedef Spline<double, 1> Curve; RowVectorXd y = A.reshaped().head(8).transpose();
  Curve s = SplineFitting<Curve>::Interpolate(y, 3, RowVectorXd::LinSpaced(8, 0, 1)); return s(0.37)(0) * s(0.8)(0);)
F(stabilised_gradients, SparseMatrix<double> M = S.sparseView(); BiCGSTAB<SparseMatrix<double>> s;
  s.setTolerance(1e-14); s.compute(M); VectorXd r = s.solve(b); return r.squaredNorm();)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ("pivoted_qr pivoted_lu ldlt square_root complex_eigenvalues exponential transform "
                                  "spline stabilised_gradients").split())  # fmt: skip
def test_solvers_of_dynamic_size(name: str) -> None:
    library = ig.load(SOLVERS, language="c++", include=[header_folder(*EIGEN)], opt="O2")
    kernel = library.kernel(name, "f64(f64[n,n] a, i64 n)")
    rng = np.random.default_rng(2)
    a, v, h = rng.normal(size=(4, 4)), rng.normal(size=(4, 4)), 1e-4
    near = [kernel(a + k * h * v) for k in (-2, -1, 1, 2)]
    found = (ig.grad(kernel)(a) * v).sum()
    assert found == pytest.approx((near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h), rel=1e-6)
    assert ig.jvp(kernel, (a,), (v,))[1] == pytest.approx(found, rel=1e-9)
