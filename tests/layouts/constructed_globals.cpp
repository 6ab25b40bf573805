// Global arrays that static constructors allocate, handed to functions as `void *`.
#include <cmath>
#include <cstdlib>
static double *level = static_cast<double *>(std::malloc(sizeof(double) * 64));
static double (*rest)[8] = reinterpret_cast<double (*)[8]>(std::malloc(sizeof(double) * 64));
static void fill(double *to, const double *x, long n) { for (long i = 0; i < n; i++) to[i] = x[i] * x[i]; }
__attribute__((noinline)) static void residual(void *from, void *to, long n) {
  double *a = static_cast<double *>(from), (*b)[8] = static_cast<double (*)[8]>(to);
  for (long i = 0; i < n; i++) b[1][i] = std::sin(a[i]) * 3;
}
extern "C" double loss(const double *x, long n) {
  fill(level, x, n);
  residual(level, rest, n);
  double s = 0;
  for (long i = 0; i < n; i++) s += rest[1][i] * level[i];
  return std::sqrt(s);
}
