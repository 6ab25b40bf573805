/* What -O3 vectorises, with wide vectors: masked loads, interleaving, reductions, gathers. */
#include <math.h>
#include <stdint.h>

#define KERNEL(name, T, body) void name(T *restrict o, const T *restrict x, const T *restrict y, int n) { for (int i = 0; i < n; i++) { body; } }
KERNEL(vk_add, double, o[i] = x[i] + y[i])
KERNEL(vk_fma, float, o[i] = fmaf(x[i], y[i], o[i]))
KERNEL(vk_max, double, o[i] = x[i] > y[i] ? x[i] : y[i])
KERNEL(vk_cond, double, if (x[i] > 0) o[i] = y[i] / x[i])
KERNEL(vk_sqrt, float, o[i] = sqrtf(x[i]) + fabsf(y[i]))
KERNEL(vk_int, int, o[i] = x[i] * y[i] >> 3)
KERNEL(vk_short, int16_t, o[i] = (int16_t)(x[i] * y[i]))
KERNEL(vk_byte, uint8_t, o[i] = (uint8_t)((x[i] + y[i]) / 2))
KERNEL(vk_stride, double, o[i] = x[2 * i] + y[3 * i + 1])
KERNEL(vk_long, int64_t, o[i] = x[i] ^ (y[i] << 2))
void gather(double *restrict o, const double *restrict x, const int *restrict k, int n) { for (int i = 0; i < n; i++) o[i] = x[k[i]]; }
float fsum(const float *x, int n) { float s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
__attribute__((optnone)) double notopt(double x) { return x + 1; }
long isum(const int *x, int n) { long s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
int imax(const int *x, int n) { int m = x[0]; for (int i = 1; i < n; i++) m = x[i] > m ? x[i] : m; return m; }
void complex_mul(double *restrict o, const double *restrict x, int n) { for (int i = 0; i < n; i++) { double a = x[2 * i], b = x[2 * i + 1]; o[2 * i] = a * a - b * b; o[2 * i + 1] = 2 * a * b; } }
void mixed(float *restrict o, const double *restrict x, const int *restrict k, int n) { for (int i = 0; i < n; i++) o[i] = (float)(x[i] * k[i]); }
double stencil(const double *x, int n) { double s = 0; for (int i = 1; i < n - 1; i++) s = fmax(s, fabs(x[i - 1] - 2 * x[i] + x[i + 1])); return s; }
void unrolled(double *a) { for (int i = 0; i < 8; i++) a[i] = a[i] * a[i] + 1; }
double slp(const double *a) { double b[4]; b[0] = a[0] * a[4]; b[1] = a[1] * a[5]; b[2] = a[2] * a[6]; b[3] = a[3] * a[7]; return b[0] + b[1] + b[2] + b[3]; }
