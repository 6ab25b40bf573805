"""Types: f32 and f64 mixed, narrow and long formats, integers, vectors, atomics."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .cases import case

CASES = (
    case("float_double_mixed", "f64(f32[4] x, f64[4] y)", """
double float_double_mixed(const float *x, const double *y) { double s = 0; float t = 1; for (int i = 0; i < 4; i++) { t = t * x[i] + (float)y[i]; s += (double)t * y[3 - i] + x[i]; } return s; }
""", tolerance=1e-5),
    case("float_inplace", "void(inout f32[6] x)", "void float_inplace(float *x) { for (int i = 1; i < 5; i++) x[i] = x[i - 1] * x[i + 1] + 0.5f * x[i]; }", tolerance=1e-5),
    case("float_accumulated_in_double", "f32(f32[8] x)", """
float float_accumulated_in_double(const float *x) { double s = 0; for (int i = 0; i < 8; i++) s += (double)x[i] * x[7 - i]; return (float)sqrt(s * s + 1); }
""", tolerance=1e-5),
    case("half_precision", "f64(f64[3] x)", """
double half_precision(const double *x) { _Float16 a = (_Float16)x[0], b = (_Float16)x[1]; a = a * b + (_Float16)x[2]; return (double)a * x[2]; }
""", x=[0.5, 1.25, -0.75], tolerance=2e-2),
    case("bfloat_precision", "f64(f64[3] x)", """
double bfloat_precision(const double *x) { __bf16 a = (__bf16)(float)x[0], b = (__bf16)(float)x[1]; float c = (float)a * (float)b; __bf16 d = (__bf16)c; return (double)(float)d * x[2]; }
""", x=[0.5, 1.25, -0.75], tolerance=2e-2, levels=("-O2",)),
    case("long_double", "f64(f64[3] x)", """
double long_double(const double *x) { long double s = 1; for (int i = 0; i < 3; i++) s = s * (long double)x[i] + 0.5L; return (double)(s * s); }
"""),
    case("long_double_array", "f64(f64[3] x)", """
double long_double_array(const double *x) { long double t[3]; for (int i = 0; i < 3; i++) t[i] = x[i] * 2; for (int i = 1; i < 3; i++) t[i] *= t[i - 1]; return (double)(t[2] + t[1]); }
"""),
    case("int_to_float", "f64(f64[4] x, i32[4] k)", "double int_to_float(const double *x, const int *k) { double s = 0; for (int i = 0; i < 4; i++) s += x[i] * k[i] / (1.0 + (unsigned)k[3 - i]); return s; }",
         k=[3, -2, 7, 0]),
    case("float_to_int", "f64(f64[5] x)", """
double float_to_int(const double *x) { double s = 0; for (int i = 0; i < 5; i++) { int k = (int)(x[i] * 4); unsigned char b = (unsigned char)(k & 7); s += x[i] * k + x[b % 5]; } return s; }
"""),
    case("interpolated_table", "f64(f64[6] t, f64[3] u)", """
double interpolated_table(const double *t, const double *u) { double s = 0; for (int i = 0; i < 3; i++) { double p = (u[i] + 1.3) * 1.9; int k = (int)p; if (k > 4) k = 4; double f = p - k; s += t[k] * (1 - f) + t[k +
  1] * f * f; } return s; }
"""),
    case("byte_index", "f64(f64[4] x, i8[6] k)", "double byte_index(const double *x, const signed char *k) { double s = 1; for (int i = 0; i < 6; i++) s = s * 0.5 + x[k[i]]; return s; }", k=[0, 3, 1, 2, 2, 0]),
    case("sparse_product", "f64(f64[7] v, i32[7] col, i32[5] row, f64[4] x)", """
double sparse_product(const double *v, const int *col, const int *row, const double *x) { double s = 0; for (int i = 0; i < 4; i++) { double y = 0; for (int k = row[i]; k < row[i + 1]; k++) y += v[k] * x[col[k]];
  s += y * y; } return s; }
""", col=[0, 2, 1, 3, 0, 3, 2], row=[0, 2, 3, 3, 7], second=True),
    case("bool_mask", "f64(f64[6] x)", """
double bool_mask(const double *x) { _Bool m[6]; for (int i = 0; i < 6; i++) m[i] = x[i] > 0; double s = 0; for (int i = 0; i < 6; i++) if (m[i] && !m[5 - i]) s += x[i] * x[i]; else s += m[i] * x[5 - i]; return s; }
"""),
    case("pseudo_random", "f64(f64 x, i64 seed)", """
double pseudo_random(double x, long seed) { uint64_t s = (uint64_t)seed; double r = x; for (int i = 0; i < 6; i++) { s = s * 6364136223846793005ULL + 1442695040888963407ULL; r = r * (0.5 + (double)(s >> 40) /
  16777216.0) + 0.1; } return r; }
""", seed=12345),
    case("int128", "f64(f64 x, i64 k)", """
double int128(double x, long k) { unsigned __int128 m = (unsigned __int128)k * 0x9e3779b97f4a7c15ULL; return x * x * (double)(uint64_t)(m >> 70) / 1e3; }
""", k=987654321),
    case("vector_extension", "f64(f64[8] x)", """
typedef double vector_extension_v __attribute__((vector_size(32)));
double vector_extension(const double *x) { vector_extension_v a, b; memcpy(&a, x, 32); memcpy(&b, x + 4, 32); vector_extension_v c = a * b + a; c = c / (b * b + 1.0); return c[0] + 2 * c[1] * c[2] + c[3]; }
"""),
    case("vector_insert_extract", "f64(f64[4] x, i32 k)", """
typedef double vector_insert_extract_v __attribute__((vector_size(32)));
double vector_insert_extract(const double *x, int k) { vector_insert_extract_v a = {x[0], x[1], x[2], x[3]}; a[k] = a[(k + 1) & 3] * x[0]; a[2] *= 3; return a[0] * a[1] + a[2] * a[3]; }
""", k=1),
    case("vector_shuffle", "f64(f64[8] x)", """
typedef double vector_shuffle_v __attribute__((vector_size(32)));
double vector_shuffle(const double *x) { vector_shuffle_v a, b; memcpy(&a, x, 32); memcpy(&b, x + 4, 32); vector_shuffle_v c = __builtin_shufflevector(a, b, 3, 5, 0, 6), d = __builtin_shufflevector(c, c, 1, 1, 2, 0);
  vector_shuffle_v e = c * d; return e[0] + e[1] * e[2] + e[3]; }
"""),
    case("vector_float", "f32(f32[8] x)", """
typedef float vector_float_v __attribute__((vector_size(16)));
float vector_float(const float *x) { vector_float_v a, b; memcpy(&a, x, 16); memcpy(&b, x + 4, 16); vector_float_v c = a * b - b; return c[0] * c[1] + c[2] * c[3]; }
""", tolerance=1e-4),
    case("vector_select", "f64(f64[4] x)", """
typedef double vector_select_v __attribute__((vector_size(16))); typedef long long vector_select_m __attribute__((vector_size(16)));
double vector_select(const double *x) { vector_select_v a = {x[0], x[1]}, b = {x[2], x[3]}; vector_select_m m = a < b; double s = 0; for (int i = 0; i < 2; i++) s += m[i] ? a[i] * a[i] : b[i] * a[i]; return s; }
"""),
    case("vector_reduction", "f64(f64[8] x)", """
typedef double vector_reduction_v __attribute__((ext_vector_type(8)));
double vector_reduction(const double *x) { vector_reduction_v a; memcpy(&a, x, 64); double s = 0; for (int i = 0; i < 8; i++) s += a[i] * a[7 - i]; return s * a[2]; }
"""),
    case("atomic_add", "f64(f64[6] x)", """
double atomic_add(const double *x) { _Atomic double s = 0; for (int i = 0; i < 6; i++) { double v = atomic_add_load(&s); (void)v; s = s + x[i] * x[i]; } return s * x[0]; }
""".replace("double v = atomic_add_load(&s); (void)v; ", "")),
    case("atomic_fetch_add", "f64(f64[6] x)", """
double atomic_fetch_add(const double *x) { double s = 0; for (int i = 0; i < 6; i++) { double old = __atomic_fetch_add(&s, x[i] * x[i], __ATOMIC_RELAXED); s += 0.1 * old; } return s * x[0]; }
"""),
    case("atomic_counter", "f64(f64[6] x)", """
double atomic_counter(const double *x) { _Atomic int n = 0; double s = 0; for (int i = 0; i < 6; i++) if (x[i] > 0) { n++; s += x[i] * x[i]; } return s / (1 + n); }
"""),
    case("volatile_double", "f64(f64 x)", "double volatile_double(double x) { volatile double v = x * x; v = v + sin(v); return v * x; }"),
    case("horner_int_coefficients", "f64(f64 x, i32[5] c)", "double horner_int_coefficients(double x, const int *c) { double s = 0; for (int i = 4; i >= 0; i--) s = s * x + c[i]; return s; }", c=[1, -2, 3, 0, 4],
         second=True),
    case("cas_heap","f64(f64[6] x)","""
double cas_heap(const double *x) { double *t = calloc(3, 8); for (int i = 0; i < 6; i++) { double *p = t + i % 3; double old = *p, want; do { want = old + x[i] * x[i]; } while (!__atomic_compare_exchange(p, &old, &want, 0, 5, 5)); } double s = t[0] * t[1] + t[2]; free(t); return s; }"""),
)
