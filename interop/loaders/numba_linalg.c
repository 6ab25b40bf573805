// What Numba leaves to LAPACK through functions of its own, as calls of LAPACK that have rules (`rules/lapack`). Written
// from the names and types that Numba calls; matrices lie by columns. LONG: SciPy's LAPACK takes integers of 64 bits.
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
