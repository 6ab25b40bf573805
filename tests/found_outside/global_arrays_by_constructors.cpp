// Two global pointers, allocated by static constructors, handed to functions.
#include <cstdlib>
#include <cmath>
static double (*u) = (double *)malloc(sizeof(double) * 100);
static double (*r)[10] = (double (*)[10])malloc(sizeof(double) * 100);
static void fill(double *p, const double *x, long n) { for (long i = 0; i < n; i++) p[i] = x[i] * x[i]; }
static void __attribute__((noinline)) resid(void *pu, void *pr, long n) { double *a = (double *)pu; double (*b)[10] = (double (*)[10])pr; for (long i = 0; i < n; i++) b[1][i] = a[i] * 3; }
extern "C" double loss(const double *x, long n) {
    fill(u, x, n); resid(u, r, n);
    double s = 0;
    for (long i = 0; i < n; i++) s += r[1][i] * u[i];
    return sqrt(s);
}
