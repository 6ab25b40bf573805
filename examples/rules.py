"""Derivatives of functions that irgrad does not look into, in a few lines each: `python examples/rules.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

import irgrad as ig
from irgrad import inactive, opt_out, rule, rules
from irgrad.engine import batch_grad, grad, jacrev, jvp, vjp
from irgrad.rules import Active, Batched, Const, Duplicated, Ptr, SoA, f32, f64

SOURCE = """
#include <math.h>
double fast_exp(double x) { return exp(x); }
float fast_expf(float x) { return expf(x); }
void log_message(double x) { (void)x; }
double detach_state(double x) { return x; }
double sum_kernel(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i]; return s; }
void squares(const double *x, long n, double *out) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }

void gemm(long m, long n, long k, const double *A, const double *B, double *C) {
  for (long i = 0; i < m; i++)
    for (long j = 0; j < n; j++) {
      double s = 0;
      for (long l = 0; l < k; l++) s += A[i * k + l] * B[l * n + j];
      C[i * n + j] = s;
    }
}
void gemm_nt(long m, long n, long k, const double *A, const double *B, double *C) {   // C += A B^T
  for (long i = 0; i < m; i++)
    for (long j = 0; j < n; j++)
      for (long l = 0; l < k; l++) C[i * n + j] += A[i * k + l] * B[j * k + l];
}
void gemm_tn(long m, long n, long k, const double *A, const double *B, double *C) {   // C += A^T B
  for (long i = 0; i < m; i++)
    for (long j = 0; j < n; j++)
      for (long l = 0; l < k; l++) C[i * n + j] += A[l * m + i] * B[l * n + j];
}
void lu_solve(long n, const double *A, const double *b, double *x) {                  // Gauss-Seidel, in place of LU
  for (long i = 0; i < n; i++) x[i] = 0;
  for (int sweep = 0; sweep < 200; sweep++)
    for (long i = 0; i < n; i++) {
      double s = b[i];
      for (long j = 0; j < n; j++) if (j != i) s -= A[i * n + j] * x[j];
      x[i] = s / A[i * n + i];
    }
}
void lu_solve_t(long n, const double *A, const double *b, double *x) {
  for (long i = 0; i < n; i++) x[i] = 0;
  for (int sweep = 0; sweep < 200; sweep++)
    for (long i = 0; i < n; i++) {
      double s = b[i];
      for (long j = 0; j < n; j++) if (j != i) s -= A[j * n + i] * x[j];
      x[i] = s / A[i * n + i];
    }
}

// x = L^-1 b for a lower triangular L: for one system, its derivative for `lanes` cotangents at once, and both for
// `samples` systems at once
void lower(const double *L, const double *b, double *x, long n) {
  for (long i = 0; i < n; i++) {
    x[i] = b[i];
    for (long k = 0; k < i; k++) x[i] -= L[i * n + k] * x[k];
    x[i] /= L[i * n + i];
  }
}
void lower_reverse(const double *L, double *L_d, const double *b, double *b_d, const double *x, double *x_d, long n,
                   long lanes) {
  for (long i = n - 1; i >= 0; i--)
    for (long j = 0; j < lanes; j++) {
      double back = x_d[i * lanes + j] / L[i * n + i];
      for (long k = 0; k < i; k++) x_d[k * lanes + j] -= L[i * n + k] * back;
      for (long k = 0; k <= i; k++) L_d[(i * n + k) * lanes + j] -= back * x[k];
      b_d[i * lanes + j] += back;
      x_d[i * lanes + j] = 0;
    }
}
void lower_all(const double *L, const double *b, double *x, long n, long samples) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j < samples; j++) {
      double s = b[i * samples + j];
      for (long k = 0; k < i; k++) s -= L[(i * n + k) * samples + j] * x[k * samples + j];
      x[i * samples + j] = s / L[(i * n + i) * samples + j];
    }
}
void lower_reverse_all(const double *L, double *L_d, const double *b, double *b_d, const double *x, double *x_d,
                       long n, long samples) {
  for (long i = n - 1; i >= 0; i--)
    for (long j = 0; j < samples; j++) {
      double back = x_d[i * samples + j] / L[(i * n + i) * samples + j];
      for (long k = 0; k < i; k++) x_d[k * samples + j] -= L[(i * n + k) * samples + j] * back;
      for (long k = 0; k <= i; k++) L_d[(i * n + k) * samples + j] -= back * x[k * samples + j];
      b_d[i * samples + j] += back;
      x_d[i * samples + j] = 0;
    }
}
void whitened(const double *L, const double *b, double *out, long n) { lower(L, b, out, n); }
double distance(const double *L, const double *b, long n) {
  double x[16], s = 0;
  lower(L, b, x, n);
  for (long i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}

double errors(double x) { return erf(x) + hypot(x, 2.0) + fast_exp(x); }
float single(float x) { return fast_expf(x); }
double state(double x) { log_message(x); return x * detach_state(x); }
double norm(const double *x, long n) {
  double y[64];
  squares(x, n, y);
  return sqrt(sum_kernel(y, n));
}
double product(const double *A, const double *B, long m, long n, long k) {
  double C[64], s = 0;
  gemm(m, n, k, A, B, C);
  for (long i = 0; i < m * n; i++) s += C[i] * C[i];
  return s;
}
double solved(long n, const double *A, const double *b) {
  double x[16], s = 0;
  lu_solve(n, A, b, x);
  for (long i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
"""


LOWER = "void(f64[n,n] L, f64[n] b, out f64[n] x, i64 n)"


def define(lib: Any) -> None:
    """The rules."""

    @rule("erf")  # all modes, widths, layouts, dtypes
    def _(x: Any) -> Any:
        return 2 / np.sqrt(np.pi) * np.exp(-x * x)

    @rule("hypot")  # `y` is the result
    def _(a: Any, b: Any, *, y: Any) -> Any:
        return a / y, b / y

    @rule(lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)"), mode="reverse")  # a function of this module
    def _(ctx: Any, x: Any, n: Any, out: Any) -> None:
        x.d += 2.0 * x.saved * out.d

    @rule("gemm", mode="reverse", C=Duplicated[Ptr[f64]])  # calls of other compiled functions
    def _(ctx: Any, m: Any, n: Any, k: Any, A: Any, B: Any, C: Any) -> None:  # noqa: N803
        prototype = "void(i64, i64, i64, f64*, f64*, f64*)"
        if A.active:
            ctx.foreign("gemm_nt", prototype)(m, k, n, C.d, B.saved(k * n), A.d)
        if B.active:
            ctx.foreign("gemm_tn", prototype)(k, n, m, A.saved(m * k), C.d, B.d)
        ctx.zero(C.d, m * n)

    @rule("fast_expf", Active[f32])  # precision by dispatch
    def _(x: Any, *, y: Any) -> Any:
        return y

    @rule("fast_exp", Active[f64])
    def _(x: Any, *, y: Any) -> Any:
        return y

    solver = rules.extern("lu_solve", "void(i64 n, f64[n,n] A, f64[n] b, out f64[n] x)")

    @rule(solver, mode="reverse", A=Duplicated, b=Duplicated, x=Duplicated)  # implicit differentiation
    def _(ctx: Any, n: Any, A: Any, b: Any, x: Any) -> None:  # noqa: N803
        adjoint = ctx.temporary_like(b)
        ctx.foreign("lu_solve_t", "void(i64 n, f64[n,n] A, f64[n] b, out f64[n] x)")(n, A.saved, x.d, adjoint)
        b.d += adjoint
        solution = x.result
        with ctx.for_range(n) as i, ctx.for_range(n) as j:
            A.d[i, j] -= adjoint[i] * solution[j]

    # functions in C: of all cotangents of a derivative at once, and of all samples of a batch at once
    rules.foreign(rules.extern("lower", LOWER), reverse="lower_reverse", width="any")
    each = Batched[Duplicated[Ptr[f64]], SoA]
    rules.foreign("lower", each, each, each, Const, primal="lower_all", reverse="lower_reverse_all")

    inactive("log_message", pattern="PyErr_*")
    rules.stop_gradient("detach_state")
    opt_out("sum_kernel", Ptr[f64], rules.i64)


def main() -> None:
    """Derivatives through each rule."""
    lib = ig.load(SOURCE)
    with rules.layer() as mine:  # a local override that ends with the block
        define(lib)
        x = np.array([0.3, -0.4, 1.2])
        print("errors    ", grad(lib.kernel("errors"))(0.3))
        print("single    ", grad(lib.kernel("single"))(np.float32(0.3)))
        print("state     ", grad(lib.kernel("state"))(0.3), "= x, the detached factor")
        norm = lib.kernel("norm", "f64(f64[n] x, i64 n)")
        print("norm      ", grad(norm)(x))
        product = lib.kernel("product", "f64(f64[m,k] A, f64[k,n] B, i64 m, i64 n, i64 k)")
        a, b = np.arange(6.0).reshape(2, 3) / 5, np.ones((3, 2))
        print("product   ", grad(product, wrt=("A", "B"))(a, b)[0].ravel())
        solved = lib.kernel("solved", "f64(i64 n, f64[n,n] A, f64[n] b)")
        matrix = np.array([[4.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, -1.0, 5.0]])
        print("solved    ", vjp(solved, matrix, x)[1](1.0)[1])
        print("forward   ", jvp(lib.kernel("errors"), (0.3,), (1.0,))[1])
        print(rules.show("gemm"))
        whitened = lib.kernel("whitened", "void(f64[n,n] L, f64[n] b, out f64[n] out, i64 n)")
        triangle = np.tril(matrix)
        inverse = np.linalg.inv(triangle)
        print("whitened  ", np.abs(jacrev(whitened, wrt=("L", "b"))(triangle, x)[1] - inverse).max(), "off the inverse")
        distance = lib.kernel("distance", "f64(f64[n,n] L, f64[n] b, i64 n)")
        many, xs = np.stack([triangle] * 20), np.linspace(-1, 1, 60).reshape(20, 3)
        gradients = batch_grad(distance, wrt=("L", "b"), in_axes=(0, 0))(many, xs)[1]
        print("distances ", np.abs(gradients - 2 * xs @ inverse.T @ inverse).max(), "off the gradients of 20 samples")
        pointer = Duplicated[Ptr[f64]]
        print(rules.which("lower", pointer, pointer, pointer, Const, width=8))
        print(rules.which("lower", *[Batched[pointer, SoA]] * 3, Const))
        print(rules.which("sum_kernel", Duplicated[Ptr[f64]], Const[rules.i64]))
        print(rules.audit())
        assert mine.rules


if __name__ == "__main__":
    main()
