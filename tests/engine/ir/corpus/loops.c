/* Loops, memory, libm, switches: the plain numerical code that irgrad is for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

double sum(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
float sumf(const float *x, int n) { float s = 0; for (int i = 0; i < n; i++) s += x[i] * 0.1f; return s; }
double dot(const double *x, const double *y, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * y[i]; return s; }
void axpy(double a, const double *restrict x, double *restrict y, int n) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }
void matmul(const double *a, const double *b, double *c, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double s = 0;
      for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}
double newton(double x) { double r = x; while (fabs(r * r - x) > 1e-12) r = 0.5 * (r + x / r); return r; }
double horner(const double *c, int n, double x) { double r = 0; for (int i = n - 1; i >= 0; i--) r = r * x + c[i]; return r; }
double kind(int k, double x) {
  switch (k) {
    case 0: return sin(x);
    case 1: return cos(x);
    case 2: return exp(x);
    case 7: return log1p(x * x);
    case 100: return tanh(x);
    case -5: return x;
    default: return 0.0 / 0.0;
  }
}
int classify(const char *s) {
  int n = 0;
  for (; *s; s++) switch (*s) { case 'a': case 'e': case 'i': n++; break; case 'z': n += 10; case 'y': n += 2; break; case 'q': return n; }
  return n;
}
double branches(double x, double y) { if (x > y) { if (x > 2 * y) return x * y; x -= y; } else if (y > 10) goto out; x = x * x; out: return x + y; }
double inplace(double *x, int n) { for (int i = 1; i + 1 < n; i++) x[i] = x[i - 1] * x[i + 1]; return x[n / 2]; }
void swap_buffers(double *a, double *b, int n, int steps) {
  for (int t = 0; t < steps; t++) { for (int i = 1; i + 1 < n; i++) b[i] = 0.25 * (a[i - 1] + 2 * a[i] + a[i + 1]); double *s = a; a = b; b = s; }
}
double heap(int n) {
  double *p = malloc(n * sizeof *p), *q = calloc(n, sizeof *q);
  for (int i = 0; i < n; i++) p[i] = sqrt(i);
  memcpy(q, p, n * sizeof *p); memset(p, 0, n * sizeof *p); memmove(q + 1, q, (n - 1) * sizeof *q);
  p = realloc(p, 2 * n * sizeof *p);
  double r = q[n - 1] + p[0]; free(p); free(q); return r;
}
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int odd(int n);
static int even(int n) { return n == 0 ? 1 : odd(n - 1); }
static int odd(int n) { return n == 0 ? 0 : even(n - 1); }
int parity(int n) { return even(n); }
unsigned long long bits(unsigned long long x) { return __builtin_popcountll(x) + __builtin_clzll(x | 1) + __builtin_ctzll(x | 8) + __builtin_bswap64(x); }
int overflow(int a, int b, int *r) { return __builtin_add_overflow(a, b, r) | __builtin_mul_overflow(a, b, r); }
int compare(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
void sort(double *x, int n) { qsort(x, n, sizeof *x, compare); }
static double cube(double x) { return x * x * x; }
static double half(double x) { return x / 2; }
static double (*const table[])(double) = {sin, cube, half, exp};
double dispatch(int k, double x) { return table[k & 3](x); }
double vla(int n) { double a[n]; for (int i = 0; i < n; i++) a[i] = i; double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }
double early(const double *x, int n) { for (int i = 0; i < n; i++) { if (x[i] < 0) return x[i]; if (x[i] > 1e3) break; if (x[i] == 5) continue; } return n; }
double do_while(double x) { int i = 0; do { x *= 0.5; i++; } while (x > 1e-3 && i < 100); return i; }
void transpose(double *a, int n) { for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) { double t = a[i * n + j]; a[i * n + j] = a[j * n + i]; a[j * n + i] = t; } }
long collatz(long n) { long c = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; c++; } return c; }
