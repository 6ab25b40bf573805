"""Mathematics: libm, complex numbers, minima and maxima, integer powers."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .cases import Case, case

UNARY = (
    "sin cos tan asin acos atan sinh cosh tanh asinh atanh exp exp2 expm1 cbrt erf erfc tgamma lgamma j0 j1 log1p floor ceil trunc rint"
    " nearbyint round fabs"
).split()
POSITIVE = "log log2 log10 sqrt y0 y1".split()


def _libm(name: str, body: str, low: float, high: float) -> Case:
    x = [low + (high - low) * t for t in (0.07, 0.29, 0.53, 0.71, 0.93)]
    return case(f"libm_{name}", "f64(f64[5] x)", f"double libm_{name}(const double *x) {{ double s = 0; for (int i = 0; i < 5; i++) "
                f"s += {body} * (i + 1); return s; }}", x=x)  # fmt: skip


CASES = (
    *(_libm(f, f"{f}(x[i])", -0.9, 0.95) for f in UNARY if f not in ("tgamma", "lgamma")),
    *(_libm(f, f"{f}(x[i])", 0.3, 4.0) for f in (*POSITIVE, "tgamma", "lgamma")),
    _libm("acosh", "acosh(x[i])", 1.2, 4.0),
    _libm("pow", "pow(x[i], x[4 - i])", 0.3, 3.0),
    _libm("pow_constant", "(pow(x[i], 3.0) + pow(x[i], 0.5) + pow(x[i], -1.0) + pow(2.0, x[i]))", 0.3, 3.0),
    _libm("hypot", "hypot(x[i], x[4 - i] + 1)", -0.9, 0.9),
    _libm("atan2", "atan2(x[i], x[4 - i] + 0.2)", -0.9, 0.9),
    _libm("fma", "fma(x[i], x[4 - i], x[0])", -0.9, 0.9),
    _libm("fmod", "fmod(3 * x[i], 0.4 + x[2] * x[2])", -0.9, 0.9),
    _libm("remainder", "remainder(3 * x[i], 0.4 + x[2] * x[2])", -0.9, 0.9),
    _libm("fdim", "fdim(x[i], x[4 - i] * x[0])", -0.9, 0.9),
    _libm("copysign", "copysign(x[i], x[4 - i]) * x[i]", -0.9, 0.9),
    _libm("fmin_fmax", "(fmin(x[i], x[4 - i] * x[0]) + fmax(x[i], 0.1) * x[i])", -0.9, 0.9),
    _libm("ldexp", "(ldexp(x[i], i) + scalbn(x[i], -2) * x[i])", -0.9, 0.9),
    _libm("bessel_n", "(jn(2, x[i]) + yn(3, x[i]) * 0.01)", 0.5, 3.0),
    _libm("ternary_minmax", "((x[i] < x[4 - i] ? x[i] : x[4 - i]) * x[i])", -0.9, 0.9),
    case("libm_frexp", "f64(f64[4] x)", """
double libm_frexp(const double *x) { double s = 0; for (int i = 0; i < 4; i++) { int e; double m = frexp(x[i] * 5, &e); s += m * m * e; } return s; }
"""),
    case("libm_modf", "f64(f64[4] x)", """
double libm_modf(const double *x) { double s = 0; for (int i = 0; i < 4; i++) { double w; double f = modf(x[i] * 3, &w); s += f * f * (w + 1); } return s; }
"""),
    case("libm_remquo", "f64(f64[4] x)", """
double libm_remquo(const double *x) { double s = 0; for (int i = 0; i < 4; i++) { int q; double r = remquo(x[i] * 3, 0.7 + x[0] * x[0], &q); s += r * r * (q + 4); } return s; }
"""),
    case("libm_sincos", "f64(f64[4] x)", """
void sincos(double, double *, double *);
double libm_sincos(const double *x) { double s = 0; for (int i = 0; i < 4; i++) { double a, b; sincos(x[i] * x[i], &a, &b); s += a * b * x[i] + a; } return s; }
"""),
    case("libm_sin_and_cos", "f64(f64 x, i32 n)", """
double libm_sin_and_cos(double x, int n) { double a = x, b = 1; for (int i = 0; i < n; i++) { double s = sin(a), c = cos(a); a = s * b; b = c + 0.1 * a; } return a + b; }
""", n=4, second=True),
    case("libm_float", "f32(f32[5] x)", """
float libm_float(const float *x) { float s = 0; for (int i = 0; i < 5; i++) s += sinf(x[i]) * expf(x[4 - i]) + sqrtf(x[i] * x[i] + 1) + powf(1.5f + x[i], 0.7f) + tanhf(x[i]) * fabsf(x[0]) + atan2f(x[i], 2.0f);
  return s; }
""", tolerance=1e-4),
    case("fast_math", "f64(f64[5] x)", """
double fast_math(const double *x) { double s = 0; for (int i = 0; i < 5; i++) s += tan(x[i]) * atan2(x[i], 1.5) + exp(sin(x[i])) / (2 + x[4 - i]) + fmax(x[i], 0.2) * pow(2 + x[i], 3); return s; }
""", flags=("-ffast-math",), tolerance=1e-9),
    case("integer_powers", "f64(f64 x, i32 n)", """
double integer_powers(double x, int n) { return __builtin_powi(x, n) + __builtin_powi(x, -3) + pow(x, 4.0) + __builtin_powi(x, 0) + pow(x, (double)n); }
""", x=1.3, n=5),
    case("power_by_squaring", "f64(f64 x, i32 n)", "double power_by_squaring(double x, int n) { double r = 1; while (n) { if (n & 1) r *= x; x *= x; n >>= 1; } return r; }", x=1.1, n=13,
         second=True),
    case("complex_multiply", "f64(f64[4] x)", """
double complex_multiply(const double *x) { double complex a = x[0] + I * x[1], b = x[2] + I * x[3], c = a * b; c = c * c + a; return creal(c) * cimag(c); }
"""),
    case("complex_divide", "f64(f64[4] x)", """
double complex_divide(const double *x) { double complex a = x[0] + I * x[1], b = x[2] + I * (x[3] + 1.5), c = a / b; c = c + b / (a + 3.0); return creal(c) + 2 * cimag(c) * creal(c); }
""", second=True),
    case("complex_float_divide", "f32(f32[4] x)", """
float complex_float_divide(const float *x) { float complex a = x[0] + I * x[1], b = x[2] + I * (x[3] + 1.5f), c = a / b * a; return crealf(c) + 2 * cimagf(c); }
""", tolerance=1e-4),
    case("complex_functions", "f64(f64[4] x)", """
double complex_functions(const double *x) { double complex a = x[0] + I * x[1], b = 1.5 + x[2] + I * x[3]; double complex c = cexp(a) * csqrt(b) + clog(b); return cabs(c) + carg(b) + creal(conj(a) * c); }
""", x=[0.3, -0.4, 0.5, 0.6]),
    case("complex_mandelbrot", "f64(f64 re, f64 im, i32 n)", """
double complex_mandelbrot(double re, double im, int n) { double complex c = re + I * im, z = 0; for (int i = 0; i < n && creal(z) * creal(z) + cimag(z) * cimag(z) < 4; i++) z = z * z + c; return creal(z) * cimag(z); }
""", re=-0.3, im=0.4, n=6),
    case("complex_array", "f64(f64[8] x)", """
double complex_array(const double *x) { const double complex *z = (const double complex *)x; double complex s = 1; for (int i = 0; i < 4; i++) s = s * z[i] + conj(z[3 - i]); return creal(s) - cimag(s); }
"""),
    case("sqrt_at_zero", "f64(f64[3] x)", "double sqrt_at_zero(const double *x) { double s = 0; for (int i = 0; i < 3; i++) if (x[i] > 0) s += sqrt(x[i]); return s * s; }", x=[0.0, 0.5, 1.5]),
    case("guarded_division", "f64(f64[4] x)", "double guarded_division(const double *x) { double s = 0; for (int i = 0; i < 4; i++) s += x[i] != 0 ? sin(x[i]) / x[i] : 1.0; return s; }",
         x=[0.0, 0.5, -0.3, 1.0]),
    case("log_sum_exp", "f64(f64[6] x)", """
double log_sum_exp(const double *x) { double m = x[0]; for (int i = 1; i < 6; i++) if (x[i] > m) m = x[i]; double s = 0; for (int i = 0; i < 6; i++) s += exp(x[i] - m); return m + log(s); }
""", second=True),
    case("errno_checked", "f64(f64 x)", """
#include <errno.h>
double errno_checked(double x) { errno = 0; double y = log(x + 2); if (errno) return 0; return y * x; }
"""),
)
