// What Numba leaves to functions of its own: lists, special functions and products of matrices, as C that
// is differentiated. Written from the names and types that Numba calls; matrices lie by columns, as for BLAS.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef int64_t i64;
typedef struct { i64 count; void *destructor, *destructor_info, *data; i64 size; } MemInfo;

// Memory of lists. Items that are arrays themselves are not given back: their destructor is not called.
MemInfo *NRT_MemInfo_new_varsize(i64 size) {
  MemInfo *info = malloc(sizeof *info);
  info->count = 1;
  info->data = malloc(size);
  return info;
}
MemInfo *NRT_MemInfo_new_varsize_dtor(i64 size, void *destructor) { return NRT_MemInfo_new_varsize(size); }
void *NRT_MemInfo_varsize_realloc(MemInfo *info, i64 size) { return info->data = realloc(info->data, size); }
void *NRT_MemInfo_varsize_alloc(MemInfo *info, i64 size) { return info->data = malloc(size); }
void NRT_MemInfo_varsize_free(MemInfo *info, void *data) {
  free(data);
  if (data == info->data) info->data = 0;
}

double numba_gamma(double x) { return tgamma(x); }
float numba_gammaf(float x) { return tgammaf(x); }
double numba_lgamma(double x) { return lgamma(x); }
float numba_lgammaf(float x) { return lgammaf(x); }

#define INLINE static inline __attribute__((always_inline))

// One body for `double` (kind 'd') and `float` ('s'); others are refused by a status.
#define FOR_KIND(kind, name, ...) \
  if (kind == 'd') { name##_double(__VA_ARGS__); return 0; } \
  if (kind == 's') { name##_float(__VA_ARGS__); return 0; } \
  return -1;

#define PRODUCTS(real) \
  INLINE void dot_##real(i64 n, const real *x, const real *y, real *out) { \
    real sum = 0; \
    for (i64 k = 0; k < n; k++) sum += x[k] * y[k]; \
    *out = sum; \
  } \
  INLINE void gemv_##real(int by_rows, i64 m, i64 n, const real *alpha, const real *a, i64 lda, const real *x, \
                          const real *beta, real *y) { \
    i64 rows = by_rows ? n : m, columns = by_rows ? m : n; \
    for (i64 i = 0; i < rows; i++) { \
      real sum = 0; \
      for (i64 k = 0; k < columns; k++) sum += a[by_rows ? i * lda + k : k * lda + i] * x[k]; \
      y[i] = *alpha * sum + (*beta == 0 ? 0 : *beta * y[i]); \
    } \
  } \
  INLINE void gemm_##real(int ta, int tb, i64 m, i64 n, i64 k, const real *alpha, const real *a, i64 lda, \
                          const real *b, i64 ldb, const real *beta, real *c, i64 ldc) { \
    for (i64 j = 0; j < n; j++) \
      for (i64 i = 0; i < m; i++) { \
        real sum = 0; \
        for (i64 l = 0; l < k; l++) sum += a[ta ? i * lda + l : l * lda + i] * b[tb ? l * ldb + j : j * ldb + l]; \
        c[j * ldc + i] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[j * ldc + i]); \
      } \
  }
PRODUCTS(double)
PRODUCTS(float)

int numba_xxdot(char kind, char conjugate, i64 n, const void *x, const void *y, void *out) {
  FOR_KIND(kind, dot, n, x, y, out)
}

int numba_xxgemv(char kind, char trans, i64 m, i64 n, const void *alpha, const void *a, i64 lda, const void *x,
                 const void *beta, void *y) {
  FOR_KIND(kind, gemv, trans != 'n' && trans != 'N', m, n, alpha, a, lda, x, beta, y)
}

int numba_xxgemm(char kind, char ta, char tb, i64 m, i64 n, i64 k, const void *alpha, const void *a, i64 lda,
                 const void *b, i64 ldb, const void *beta, void *c, i64 ldc) {
  FOR_KIND(kind, gemm, ta != 'n' && ta != 'N', tb != 'n' && tb != 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Strides under which an array has another shape without being copied: 1, or 0 where there are none. Extents of 1 do not
// matter. Axes are gone through from the one that varies fastest: `at` steps from there, in the old shape and the new.
INLINE i64 axis(i64 rank, i64 at, int by_columns) { return by_columns ? at : rank - 1 - at; }

int numba_attempt_nocopy_reshape(i64 rank, const i64 *dims, const i64 *strides, i64 new_rank, const i64 *new_dims,
                                 i64 *new_strides, i64 itemsize, int by_columns) {
  i64 count = 1, new_count = 1;
  for (i64 k = 0; k < rank; k++) count *= dims[k];
  for (i64 k = 0; k < new_rank; k++) new_count *= new_dims[k];
  if (count != new_count) return 0;
  i64 stride = itemsize, done = 0, left = 1, next = 0;
  for (i64 at = 0; at < new_rank; at++) {
    i64 j = axis(new_rank, at, by_columns), wanted = new_dims[j];
    if (count == 0 || wanted == 1) { new_strides[j] = stride; continue; }
    if (left == 1) {  // a run of old axes begins
      while (done < rank && dims[axis(rank, done, by_columns)] == 1) done++;
      i64 k = axis(rank, done++, by_columns);
      stride = strides[k];
      left = dims[k];
      next = stride * left;
    }
    while (left % wanted != 0) {  // the new axis reaches into the next old one, which has to follow in memory
      while (done < rank && dims[axis(rank, done, by_columns)] == 1) done++;
      if (done == rank) return 0;
      i64 k = axis(rank, done++, by_columns);
      if (strides[k] != next) return 0;
      left *= dims[k];
      next *= dims[k];
    }
    new_strides[j] = stride;
    stride *= wanted;
    left /= wanted;
  }
  return 1;
}
