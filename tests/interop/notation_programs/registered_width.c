#include <math.h>
#include <stdio.h>
#include <stdlib.h>
/* registered derivatives in calls with several lanes: each lane has its own call, and its own tape */
extern int enzyme_const, enzyme_dup, enzyme_dupv, enzyme_out, enzyme_width, enzyme_nofree;
typedef struct { double a, b, c; } Lanes;
typedef struct { void *tape; double value; } Taped;
Lanes __enzyme_autodiff(void *, ...);
void __enzyme_autodiff_void(void *, ...);
Lanes __enzyme_fwddiff(void *, ...);
Taped __enzyme_augmentfwd(void *, ...);
Lanes __enzyme_reverse(void *, ...);
void __enzyme_reverse_void(void *, ...);
static int failed = 0;
static void near_(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) { printf("%s: %.15g, not %.15g\n", what, got, want); failed = 1; }
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

/* an augmented function and a tangent behind it */
double half(double x) { return 0.5 * x * x; }
Kept half_aug(double x) { double *t = malloc(8); *t = x; return (Kept){t, 0.5 * x * x}; }
double half_split(double x, double dx, void *tape) { double d = 11 * *(double *)tape * dx; free(tape); return d; }
void *__enzyme_register_splitderivative_half[] = {(void *)half, (void *)half_aug, (void *)half_split};
double use_half(double x) { return 3 * half(x) + x; }
/* shadows that the augmented function keeps */
double norm(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }
Kept norm_aug(const double *x, double *dx, int n) { double **t = malloc(sizeof *t); *t = dx; return (Kept){t, norm(x, n)}; }
void norm_rev(const double *x, double *dx, int n, double dy, void *tape) { double *d = *(double **)tape; free(tape); for (int i = 0; i < n; i++) d[i] += 4 * x[i] * dy; }
void *__enzyme_register_gradient_norm[] = {(void *)norm, (void *)norm_aug, (void *)norm_rev};
double use_norm(const double *x, int n) { double s = 0; for (int k = 0; k < 2; k++) s += norm(x, n) * (k + 1); return s; }

int main(void) {
  Lanes t = __enzyme_fwddiff((void *)use_cube, enzyme_width, 3, 1.5, 2.0, 0.0, -1.0);
  double c = 2 * 200 * 6 * pow(1.5, 5);
  near_("cube 0", t.a, 2 * c), near_("cube 1", t.b, 0), near_("cube 2", t.c, -c);
  t = __enzyme_autodiff((void *)use_cube, enzyme_width, 3, 1.5);
  near_("cube reverse", t.a, c / 2), near_("cube reverse", t.c, c / 2);
  Taped p = __enzyme_augmentfwd((void *)use_cube, enzyme_width, 3, 1.5);
  near_("cube value", p.value, 2 * pow(1.5, 6));
  t = __enzyme_reverse((void *)use_cube, enzyme_width, 3, 1.5, 1.0, 2.0, 3.0, p.tape);
  near_("cube split", t.a, c / 2), near_("cube split", t.c, 3 * c / 2);
  t = __enzyme_fwddiff((void *)use_mix, enzyme_width, 3, 0.5, 1.0, 2.0, 0.0);
  double m = 7 * (sin(0.5) + 0.5 * cos(0.5) + 2 + 1);
  near_("mix 0", t.a, m), near_("mix 1", t.b, 2 * m), near_("mix 2", t.c, 0);
  t = __enzyme_autodiff((void *)use_mix, enzyme_width, 3, 0.5);
  near_("mix reverse", t.b, 10 * sin(0.5) + 20 * 0.5 * cos(0.5) + 20 * 2.0 + 30 * 1);
  t = __enzyme_fwddiff((void *)use_ratio, enzyme_width, 3, 2.0, 1.0, 2.0, 3.0);
  near_("ratio", t.c, 3 * 3 * (1.0 / 4 - 2.0 / 16 * 4));
  t = __enzyme_autodiff((void *)use_ratio, enzyme_width, 3, 2.0);
  near_("ratio reverse", t.a, 2 * (1.0 / 4 - 2.0 / 16 * 4));
  t = __enzyme_fwddiff((void *)use_half, enzyme_width, 3, 2.0, 1.0, 2.0, 3.0);
  near_("half 0", t.a, 3 * 11 * 2 + 1), near_("half 2", t.c, 3 * (3 * 11 * 2 + 1));

  double x[3] = {1.5, 2.5, 3.5}, dx[3][3] = {{0}}, s = x[2] * 1 + x[0] * 2 + x[1] * 3;
  __enzyme_autodiff_void((void *)use_dot, enzyme_width, 3, enzyme_dupv, sizeof dx[0], x, dx, enzyme_const, 3);
  for (int j = 0; j < 3; j++) near_("dot 0", dx[j][0], s + x[0] * 2), near_("dot 1", dx[j][1], x[0] * 3), near_("dot 2", dx[j][2], x[0] * 1);
  double dn[3][3] = {{0}};
  p = __enzyme_augmentfwd((void *)use_norm, enzyme_width, 3, enzyme_dupv, sizeof dn[0], x, dn, 3);
  __enzyme_reverse_void((void *)use_norm, enzyme_width, 3, enzyme_dupv, sizeof dn[0], x, dn, 3, 1.0, 0.0, -2.0, p.tape);
  for (int i = 0; i < 3; i++) near_("norm 0", dn[0][i], 12 * x[i]), near_("norm 1", dn[1][i], 0), near_("norm 2", dn[2][i], -24 * x[i]);
  puts(failed ? "wrong" : "all right");
  return failed;
}
