#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_primal_return;
double __enzyme_autodiff(void *, ...);
void __enzyme_autodiff_void(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int failed = 0;
static void near_(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) { printf("%s: %.15g, not %.15g\n", what, got, want); failed = 1; }
}

/* one number, pointer tape; derivative deliberately 100 x the true one */
static double cube(double x) { return x * x * x; }
typedef struct { void *tape; double value; } Kept;
static Kept cube_aug(double x) { double *t = malloc(8); *t = x; return (Kept){t, x * x * x}; }
static double cube_rev(double x, double dy, void *tape) { double t = *(double *)tape; free(tape); return 100 * 3 * t * t * dy; }
typedef struct { double v, d; } Both;
static Both cube_fwd(double x, double dx) { return (Both){x * x * x, 200 * 3 * x * x * dx}; }
static void *__enzyme_register_gradient_cube[] = {(void *)cube, (void *)cube_aug, (void *)cube_rev};
static void *__enzyme_register_derivative_cube[] = {(void *)cube, (void *)cube_fwd};
double use_cube(double x) { return 2 * cube(x * x); }

/* three numbers and an integer, gradients through a hidden pointer, tape by value (24 bytes) */
double mix(double a, double b, int n, double c) { return a * b + n * c; }
typedef struct { double a, b, c; } Three;
typedef struct { Three tape; double value; } MixKept;
MixKept mix_aug(double a, double b, int n, double c) { return (MixKept){{a, b, c}, a * b + n * c}; }
Three mix_rev(double a, double b, int n, double c, double dy, Three t) { return (Three){10 * t.b * dy, 20 * t.a * dy, 30 * n * dy}; }
void *__enzyme_register_gradient_mix[] = {(void *)mix, (void *)mix_aug, (void *)mix_rev};
double mix_fwd(double a, double da, double b, double db, int n, double c, double dc) { return 7 * (a * db + b * da + n * dc); }
void *__enzyme_register_derivative_mix[] = {(void *)mix, (void *)mix_fwd};
double use_mix(double x) { return mix(x, sin(x), 3, 5.0) + mix(2.0, x, 1, x); }

/* floats: two gradients in one register */
float ratio(float a, float b) { return a / b; }
typedef struct { float a, b; } Floats;
typedef struct { void *tape; float value; } RatioKept;
RatioKept ratio_aug(float a, float b) { return (RatioKept){0, a / b}; }
Floats ratio_rev(float a, float b, float dy, void *tape) { return (Floats){2 * dy / b, -2 * dy * a / (b * b)}; }
void *__enzyme_register_gradient_ratio[] = {(void *)ratio, (void *)ratio_aug, (void *)ratio_rev};
Floats ratio_fwd(float a, float da, float b, float db) { return (Floats){a / b, 3 * (da / b - db * a / (b * b))}; }
void *__enzyme_register_derivative_ratio[] = {(void *)ratio, (void *)ratio_fwd};
double use_ratio(double x) { return ratio((float)x, (float)(x * x)); }

/* a float made of bits, which has no derivative of its own; the tangent alone, which is shorter than a register */
#include <string.h>
static float root(float a) {
  float y = a;
  int i;
  memcpy(&i, &y, 4);
  i = 0x5f3759df - (i >> 1);
  memcpy(&y, &i, 4);
  return y * (1.5f - 0.5f * a * y * y);
}
static float root_aug(float a) { return root(a); }
static float root_rev(float a, float dy) { float y = root(a); return -0.5f * y * y * y * dy; }
static float root_fwd(float a, float da) { float y = root(a); return -0.5f * y * y * y * da; }
void *__enzyme_register_gradient_root[] = {(void *)root, (void *)root_aug, (void *)root_rev};
void *__enzyme_register_derivative_root[] = {(void *)root, (void *)root_fwd};
double use_root(double x) { return x * root((float)x); }

/* arrays, a length, integers behind a pointer; right derivative; constant coefficients with a used shadow */
double dot(const double *a, const double *b, const int *which, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[which[i]] * b[i]; return s; }
Kept dot_aug(const double *a, double *da, const double *b, double *db, const int *which, int *dwhich, int n) { return (Kept){0, dot(a, b, which, n)}; }
void dot_rev(const double *a, double *da, const double *b, double *db, const int *which, int *dwhich, int n, double dy, void *tape) {
  for (int i = 0; i < n; i++) { da[which[i]] += dy * b[i]; db[i] += dy * a[which[i]]; }
}
void *__enzyme_register_gradient_dot[] = {(void *)dot, (void *)dot_aug, (void *)dot_rev};
double use_dot(const double *x, int n) {
  double w[3] = {1, 2, 3};
  int p[3] = {2, 0, 1};
  return dot(x, w, p, n) * x[0];
}

/* nothing returned, no tape at all */
static int swept = 0;
__attribute__((always_inline)) static inline void scale(double *x, int n) { for (int i = 0; i < n; i++) x[i] *= 2; }
static void scale_aug(double *x, double *dx, int n) { scale(x, n); }
static void scale_rev(double *x, double *dx, int n) { for (int i = 0; i < n; i++) dx[i] *= 5; swept++; }
void *__enzyme_register_gradient_scale[] = {(void *)scale, (void *)scale_aug, (void *)scale_rev};
double use_scale(double x, double y) { double v[2] = {x, y}; for (int k = 0; k < 3; k++) scale(v, 2); return v[0] * v[1]; }

int main(void) {
  near_("cube", __enzyme_autodiff((void *)use_cube, 1.5), 100 * 2 * 6 * pow(1.5, 5));
  near_("cube fwd", __enzyme_fwddiff((void *)use_cube, 1.5, 2.0), 2 * 200 * 2 * 6 * pow(1.5, 5));
  near_("mix", __enzyme_autodiff((void *)use_mix, 0.5), 10 * sin(0.5) + 20 * 0.5 * cos(0.5) + 20 * 2.0 + 30 * 1);
  near_("mix fwd", __enzyme_fwddiff((void *)use_mix, 0.5, 1.0), 7 * (sin(0.5) + 0.5 * cos(0.5) + 2 + 1));
  near_("ratio", __enzyme_autodiff((void *)use_ratio, 2.0), 2 * (1.0 / 4 - 2.0 / 16 * 4));
  float y = root(1.3f);
  double slope = y - 1.3 * 0.5 * y * y * y;
  near_("root", fabs(__enzyme_autodiff((void *)use_root, 1.3) - slope) < 1e-6, 1);
  near_("root fwd", fabs(__enzyme_fwddiff((void *)use_root, 1.3, 1.0) - slope) < 1e-6, 1);
  near_("ratio fwd", __enzyme_fwddiff((void *)use_ratio, 2.0, 1.0), 3 * (1.0 / 4 - 2.0 / 16 * 4));
  double x[3] = {1.5, 2.5, 3.5}, dx[3] = {0, 0, 0};
  __enzyme_autodiff_void((void *)use_dot, enzyme_dup, x, dx, enzyme_const, 3);
  double s = x[2] * 1 + x[0] * 2 + x[1] * 3;
  near_("dot 0", dx[0], s + x[0] * 2), near_("dot 1", dx[1], x[0] * 3), near_("dot 2", dx[2], x[0] * 1);
  near_("scale", __enzyme_autodiff((void *)use_scale, 3.0, enzyme_const, 4.0), 125 * 32);
  near_("swept", swept, 3);
  puts(failed ? "wrong" : "all right");
  return failed;
}
