"""Derivatives of functions that irgrad does not look into, in a few lines each: `python examples/rules.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

import irgrad as ig
from irgrad import inactive, opt_out, rule, rules
from irgrad.engine import grad, jvp, vjp
from irgrad.rules import Active, Array, Batched, Const, Duplicated, Ptr, SoA, f32, f64

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

    @rule("solve3", Batched[Duplicated[Ptr[f64]], SoA], Const, mode="reverse")  # a batched specialisation
    def _(ctx: Any, A: Any, n: Any) -> None: ...  # noqa: N803

    @rule(rules.reduce, op=rules.Mul, mode="reverse")  # a construct of parallel programs
    def _(ctx: Any, xs: Any, y: Any) -> None: ...

    solver = rules.extern("lu_solve", "void(i64 n, f64[n,n] A, f64[n] b, out f64[n] x)")

    @rule(solver, mode="reverse", A=Duplicated, b=Duplicated, x=Duplicated)  # implicit differentiation
    def _(ctx: Any, n: Any, A: Any, b: Any, x: Any) -> None:  # noqa: N803
        adjoint = ctx.temporary_like(b)
        ctx.foreign("lu_solve_t", "void(i64 n, f64[n,n] A, f64[n] b, out f64[n] x)")(n, A.saved, x.d, adjoint)
        b.d += adjoint
        solution = x.result
        with ctx.for_range(n) as i, ctx.for_range(n) as j:
            A.d[i, j] -= adjoint[i] * solution[j]

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
        print(rules.which("solve3", Batched[Duplicated[Array[f64, 2]], SoA], Const[rules.i64]))
        print(rules.which("sum_kernel", Duplicated[Ptr[f64]], Const[rules.i64]))
        print(rules.audit())
        assert mine.rules


if __name__ == "__main__":
    main()
