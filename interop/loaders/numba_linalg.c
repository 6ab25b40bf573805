// What Numba leaves to LAPACK through functions of its own, as calls of LAPACK that have rules (`rules/lapack`). Written
// from the names and types that Numba calls; matrices lie by columns. LONG: SciPy's LAPACK takes integers of 64 bits.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef int64_t i64;
#ifdef LONG
typedef int64_t Int;
#define F(name) name##_64_
#else
typedef int32_t Int;
#define F(name) name##_
#endif

#define INLINE static inline __attribute__((always_inline))

// One body for `double` (kind 'd') and `float` ('s'); others are refused by a status.
#define FOR_KIND(kind, name, ...) \
  if (kind == 'd') return name##_double(__VA_ARGS__); \
  if (kind == 's') return name##_float(__VA_ARGS__); \
  return -1;

#define ROUTINES(real, x) \
  extern void F(x##gesv)(Int *, Int *, real *, Int *, Int *, real *, Int *, Int *); \
  extern void F(x##getrf)(Int *, Int *, real *, Int *, Int *, Int *); \
  extern void F(x##getri)(Int *, real *, Int *, Int *, real *, Int *, Int *); \
  extern void F(x##potrf)(char *, Int *, real *, Int *, Int *); \
  extern void F(x##geqrf)(Int *, Int *, real *, Int *, real *, real *, Int *, Int *); \
  extern void F(x##syev)(char *, char *, Int *, real *, Int *, real *, real *, Int *, Int *); \
  extern void F(x##gesdd)(char *, Int *, Int *, real *, Int *, real *, real *, Int *, real *, Int *, real *, Int *, Int *, \
                          Int *); \
  extern real F(x##nrm2)(Int *, real *, Int *); \
  INLINE int gesv_##real(i64 n, i64 nrhs, real *a, i64 lda, Int *ipiv, real *b, i64 ldb) { \
    Int n_ = n, nrhs_ = nrhs, lda_ = lda, ldb_ = ldb, info = 0; \
    F(x##gesv)(&n_, &nrhs_, a, &lda_, ipiv, b, &ldb_, &info); \
    return info; \
  } \
  INLINE int getrf_##real(i64 m, i64 n, real *a, i64 lda, Int *ipiv) { \
    Int m_ = m, n_ = n, lda_ = lda, info = 0; \
    F(x##getrf)(&m_, &n_, a, &lda_, ipiv, &info); \
    return info; \
  } \
  INLINE int getri_##real(i64 n, real *a, i64 lda, Int *ipiv) { \
    Int n_ = n, lda_ = lda, room = 64 * n + 1, info = 0; \
    real *work = malloc(sizeof(real) * room); \
    F(x##getri)(&n_, a, &lda_, ipiv, work, &room, &info); \
    free(work); \
    return info; \
  } \
  INLINE int potrf_##real(char uplo, i64 n, real *a, i64 lda) { \
    Int n_ = n, lda_ = lda, info = 0; \
    F(x##potrf)(&uplo, &n_, a, &lda_, &info); \
    return info; \
  } \
  INLINE int geqrf_##real(i64 m, i64 n, real *a, i64 lda, real *tau) { \
    Int m_ = m, n_ = n, lda_ = lda, room = 64 * n + 1, info = 0; \
    real *work = malloc(sizeof(real) * room); \
    F(x##geqrf)(&m_, &n_, a, &lda_, tau, work, &room, &info); \
    free(work); \
    return info; \
  } \
  /* Q from the reflections H_1 ... H_k below the diagonal of A, H_i = 1 - tau_i v_i v_i^T: the last one first. */ \
  INLINE int gqr_##real(i64 m, i64 n, i64 k, real *a, i64 lda, real *tau) { \
    for (i64 j = k; j < n; j++) \
      for (i64 i = 0; i < m; i++) a[j * lda + i] = i == j; \
    for (i64 r = k - 1; r >= 0; r--) { \
      real *v = a + r * lda; \
      for (i64 j = r + 1; j < n; j++) { \
        real *c = a + j * lda, sum = c[r]; \
        for (i64 i = r + 1; i < m; i++) sum += v[i] * c[i]; \
        sum *= tau[r]; \
        c[r] -= sum; \
        for (i64 i = r + 1; i < m; i++) c[i] -= sum * v[i]; \
      } \
      for (i64 i = 0; i < r; i++) v[i] = 0; \
      v[r] = 1 - tau[r]; \
      for (i64 i = r + 1; i < m; i++) v[i] *= -tau[r]; \
    } \
    return 0; \
  } \
  INLINE int syev_##real(char jobz, char uplo, i64 n, real *a, i64 lda, real *w) { \
    Int n_ = n, lda_ = lda, room = 34 * n + 1, info = 0; \
    real *work = malloc(sizeof(real) * room); \
    F(x##syev)(&jobz, &uplo, &n_, a, &lda_, w, work, &room, &info); \
    free(work); \
    return info; \
  } \
  /* The first `have` columns are orthonormal: the others become so, from those unit vectors that are farthest from them. */ \
  INLINE void complete_##real(i64 m, i64 have, i64 columns, real *u) { \
    for (i64 j = have; j < columns; j++) { \
      real least = 2; \
      i64 which = 0; \
      for (i64 i = 0; i < m; i++) { \
        real sum = 0; \
        for (i64 c = 0; c < j; c++) sum += u[c * m + i] * u[c * m + i]; \
        if (sum < least) { least = sum; which = i; } \
      } \
      real *v = u + j * m; \
      for (i64 i = 0; i < m; i++) v[i] = i == which; \
      for (int twice = 0; twice < 2; twice++) \
        for (i64 c = 0; c < j; c++) { \
          real sum = 0; \
          for (i64 i = 0; i < m; i++) sum += u[c * m + i] * v[i]; \
          for (i64 i = 0; i < m; i++) v[i] -= sum * u[c * m + i]; \
        } \
      real length = 0; \
      for (i64 i = 0; i < m; i++) length += v[i] * v[i]; \
      length = sqrt(length); \
      for (i64 i = 0; i < m; i++) v[i] /= length; \
    } \
  } \
  /* A = U diag(s) V^T with min(m, n) columns of U and rows of V^T. */ \
  INLINE int thin_##real(i64 m, i64 n, real *a, i64 lda, real *s, real *u, i64 ldu, real *vt, i64 ldvt) { \
    i64 k = m < n ? m : n, most = m < n ? n : m; \
    char job = 'S'; \
    Int m_ = m, n_ = n, lda_ = lda, ldu_ = ldu, ldvt_ = ldvt, info = 0, room = 4 * k * k + 7 * k + 64 * (most + k); \
    real *work = malloc(sizeof(real) * room); \
    Int *integers = malloc(sizeof(Int) * 8 * k); \
    F(x##gesdd)(&job, &m_, &n_, a, &lda_, s, u, &ldu_, vt, &ldvt_, work, &room, integers, &info); \
    free(work); \
    free(integers); \
    return info; \
  } \
  INLINE int gesdd_##real(char jobz, i64 m, i64 n, real *a, i64 lda, real *s, real *u, i64 ldu, real *vt, i64 ldvt) { \
    i64 k = m < n ? m : n; \
    if (jobz != 'N') { \
      int info = thin_##real(m, n, a, lda, s, u, ldu, vt, ldvt); \
      if (jobz == 'A' && m > k) complete_##real(m, k, m, u); \
      if (jobz == 'A' && n > k) { /* V^T lies by columns: its transpose is completed */ \
        real *v = malloc(sizeof(real) * n * n); \
        for (i64 i = 0; i < k; i++) \
          for (i64 j = 0; j < n; j++) v[i * n + j] = vt[j * ldvt + i]; \
        complete_##real(n, k, n, v); \
        for (i64 i = k; i < n; i++) \
          for (i64 j = 0; j < n; j++) vt[j * ldvt + i] = v[i * n + j]; \
        free(v); \
      } \
      return info; \
    } \
    real *left = malloc(sizeof(real) * m * k), *right = malloc(sizeof(real) * k * n); \
    int info = thin_##real(m, n, a, lda, s, left, m, right, k); \
    free(left); \
    free(right); \
    return info; \
  } \
  /* x = V S^+ U^T b in the first n rows of b; behind them the part of b that no column of A reaches. */ \
  INLINE int gelsd_##real(i64 m, i64 n, i64 nrhs, real *a, i64 lda, real *b, i64 ldb, real *s, double rcond, Int *rank) { \
    i64 k = m < n ? m : n; \
    real *u = malloc(sizeof(real) * m * m), *vt = malloc(sizeof(real) * k * n), *c = malloc(sizeof(real) * m); \
    int info = thin_##real(m, n, a, lda, s, u, m, vt, k); \
    real least = (rcond < 0 ? (sizeof(real) == 8 ? 0x1p-52 : 0x1p-23) : rcond) * s[0]; \
    i64 full = 0; \
    while (full < k && s[full] > least) full++; \
    *rank = full; \
    if (m > k) complete_##real(m, k, m, u); \
    for (i64 r = 0; r < nrhs; r++) { \
      real *x = b + r * ldb; \
      for (i64 i = 0; i < m; i++) { \
        real sum = 0; \
        for (i64 l = 0; l < m; l++) sum += u[i * m + l] * x[l]; \
        c[i] = sum; \
      } \
      for (i64 j = 0; j < n; j++) { \
        real sum = 0; \
        for (i64 i = 0; i < full; i++) sum += vt[j * k + i] * c[i] / s[i]; \
        x[j] = sum; \
      } \
      for (i64 i = n; i < m; i++) x[i] = c[i]; \
    } \
    free(u); \
    free(vt); \
    free(c); \
    return info; \
  } \
  INLINE int nrm2_##real(i64 n, real *v, i64 step, real *out) { \
    Int n_ = n, step_ = step; \
    *out = F(x##nrm2)(&n_, v, &step_); \
    return 0; \
  }
ROUTINES(double, d)
ROUTINES(float, s)

int numba_xgesv(char kind, i64 n, i64 nrhs, void *a, i64 lda, Int *ipiv, void *b, i64 ldb) {
  FOR_KIND(kind, gesv, n, nrhs, a, lda, ipiv, b, ldb)
}

int numba_xxgetrf(char kind, i64 m, i64 n, void *a, i64 lda, Int *ipiv) { FOR_KIND(kind, getrf, m, n, a, lda, ipiv) }

int numba_ez_xxgetri(char kind, i64 n, void *a, i64 lda, Int *ipiv) { FOR_KIND(kind, getri, n, a, lda, ipiv) }

int numba_xxpotrf(char kind, char uplo, i64 n, void *a, i64 lda) { FOR_KIND(kind, potrf, uplo, n, a, lda) }

int numba_ez_geqrf(char kind, i64 m, i64 n, void *a, i64 lda, void *tau) { FOR_KIND(kind, geqrf, m, n, a, lda, tau) }

int numba_ez_xxgqr(char kind, i64 m, i64 n, i64 k, void *a, i64 lda, void *tau) {
  FOR_KIND(kind, gqr, m, n, k, a, lda, tau)
}

int numba_ez_xxxevd(char kind, char jobz, char uplo, i64 n, void *a, i64 lda, void *w) {
  FOR_KIND(kind, syev, jobz, uplo, n, a, lda, w)
}

int numba_xxnrm2(char kind, i64 n, void *v, i64 step, void *out) { FOR_KIND(kind, nrm2, n, v, step, out) }

int numba_ez_gesdd(char kind, char jobz, i64 m, i64 n, void *a, i64 lda, void *s, void *u, i64 ldu, void *vt, i64 ldvt) {
  FOR_KIND(kind, gesdd, jobz, m, n, a, lda, s, u, ldu, vt, ldvt)
}

int numba_ez_gelsd(char kind, i64 m, i64 n, i64 nrhs, void *a, i64 lda, void *b, i64 ldb, void *s, double rcond, Int *rank) {
  FOR_KIND(kind, gelsd, m, n, nrhs, a, lda, b, ldb, s, rcond, rank)
}
