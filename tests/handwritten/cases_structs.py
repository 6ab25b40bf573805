"""Structs, unions, bit tricks, passing by value."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .cases import case

CASES = (
    case("struct_sorted", "f64(f64[7] x)", """
struct struct_sorted_p { double key; float w; int id; double *home; };
double struct_sorted(const double *x) { int n = 7; struct struct_sorted_p *a = malloc(n * sizeof *a); double cell[7]; for (int i = 0; i < n; i++) { cell[i] = x[i] * 3; a[i].key =
  sin(5 * x[i]); a[i].w = (float)(x[i] * x[i]); a[i].id = i; a[i].home = &cell[i]; }
  for (int i = 1; i < n; i++) for (int j = i; j > 0 && a[j].key < a[j - 1].key; j--) { struct struct_sorted_p t = a[j]; a[j] = a[j - 1]; a[j - 1] = t; }
  double s = 0; for (int i = 0; i < n; i++) s += a[i].key * (i + 1) + a[i].w * *a[i].home + a[i].id * a[i].key; free(a); return s; }
""", tolerance=1e-5),
    case("struct_sorted_memcpy", "f64(f64[6] x)", """
struct struct_sorted_memcpy_p { float w; double v[2]; int id; const double *home; };
double struct_sorted_memcpy(const double *x) { int n = 6; struct struct_sorted_memcpy_p *a = malloc(n * sizeof *a), t; for (int i = 0; i < n; i++) { a[i].w = (float)x[i]; a[i].v[0] =
  x[i] * x[(i + 1) % n]; a[i].v[1] = 1; a[i].id = n - i; a[i].home = x + i; }
  for (int i = 0; i < n; i++) for (int j = 0; j + 1 < n; j++) if (a[j].w > a[j + 1].w) { memcpy(&t, a + j, sizeof t); memcpy(a + j, a + j + 1, sizeof t); memcpy(a + j + 1, &t, sizeof t); }
  double s = 0; for (int i = 0; i < n; i++) { s += a[i].v[0] * i + a[i].w * a[i].v[1] * *a[i].home * a[i].id; a[i].v[1] = s; } free(a); return s; }
""", tolerance=1e-5),
    case("struct_qsort", "f64(f64[6] x)", """
struct struct_qsort_p { double key; int id; float w; };
static int struct_qsort_c(const void *a, const void *b) { double d = ((const struct struct_qsort_p *)a)->key - ((const struct struct_qsort_p *)b)->key; return (d > 0) - (d < 0); }
double struct_qsort(const double *x) { struct struct_qsort_p a[6]; for (int i = 0; i < 6; i++) { a[i].key = x[i] * x[i]; a[i].id = i; a[i].w = (float)x[i]; }
  qsort(a, 6, sizeof a[0], struct_qsort_c); double s = 0; for (int i = 0; i < 6; i++) s += a[i].key * (i + 1) + a[i].id * a[i].w; return s; }
""", tolerance=1e-5),
    case("struct_assign", "f64(f64 x, f64 y)", """
struct struct_assign_s { double a; int k; float f; double b; };
double struct_assign(double x, double y) { struct struct_assign_s p = {x, 3, 0.5f, y}, q; q = p; q.a *= q.b; p = q; p.b = sin(p.a) * p.k; q = p; return q.a * q.b + q.f; }
""", second=True),
    case("struct_nested", "f64(f64[6] x)", """
struct struct_nested_v { double c[3]; }; struct struct_nested_b { struct struct_nested_v r, v; int tag; double m; };
double struct_nested(const double *x) { struct struct_nested_b b[2]; for (int i = 0; i < 2; i++) { for (int k = 0; k < 3; k++) { b[i].r.c[k] = x[3 * i + k]; b[i].v.c[k] = 0.1; } b[i].m = 1 +
  i; b[i].tag = i; } for (int s = 0; s < 3; s++) { struct struct_nested_v d; double q = 0.1; for (int k = 0; k < 3; k++) { d.c[k] = b[1].r.c[k] - b[0].r.c[k]; q += d.c[k] * d.c[k]; }
  for (int k = 0; k < 3; k++) { b[0].v.c[k] += 0.1 * d.c[k] / (q * sqrt(q)) * b[1].m; b[1].v.c[k] -= 0.1 * d.c[k] / (q * sqrt(q)) * b[0].m; } for (int i = 0; i < 2; i++) for (int k = 0; k <
  3; k++) b[i].r.c[k] += 0.1 * b[i].v.c[k]; } return b[0].r.c[0] * b[1].r.c[1] + b[1].v.c[2]; }
"""),
    case("struct_of_pointers", "f64(f64[4] x, inout f64[4] y)", """
struct struct_of_pointers_s { const double *in; double *out; int n; };
static NOINLINE double struct_of_pointers_h(struct struct_of_pointers_s *s) { double t = 0; for (int i = 0; i < s->n; i++) { s->out[i] *= s->in[i]; t += s->out[i]; } return t; }
double struct_of_pointers(const double *x, double *y) { struct struct_of_pointers_s s = {x, y, 4}; double a = struct_of_pointers_h(&s); s.in = y; return a * struct_of_pointers_h(&s); }
"""),
    case("byval_small", "f64(f64 x, f64 y)", """
struct byval_small_s { double re, im; };
static NOINLINE struct byval_small_s byval_small_m(struct byval_small_s a, struct byval_small_s b) { struct byval_small_s c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; return c; }
double byval_small(double x, double y) { struct byval_small_s z = {x, y}, w = {0.3, -0.2}; for (int i = 0; i < 4; i++) { z = byval_small_m(z, z); z.re += w.re; z.im += w.im * x; } return z.re *
  z.re + z.im; }
""", x=0.4, y=0.5),
    case("byval_mixed", "f64(f64 x)", """
struct byval_mixed_s { float f; int i; double d; };
static NOINLINE struct byval_mixed_s byval_mixed_m(struct byval_mixed_s a) { a.d = a.d * a.f + a.i; a.f = (float)(a.d * 0.25); a.i++; return a; }
double byval_mixed(double x) { struct byval_mixed_s s = {(float)x, 1, x * x}; for (int i = 0; i < 3; i++) s = byval_mixed_m(s); return s.d * s.f + s.i; }
""", x=0.5, tolerance=1e-6),
    case("byval_floats", "f32(f32 x, f32 y)", """
struct byval_floats_s { float a, b, c; };
static NOINLINE struct byval_floats_s byval_floats_m(struct byval_floats_s s) { struct byval_floats_s r = {s.b * s.c, s.a + s.c, sinf(s.a)}; return r; }
float byval_floats(float x, float y) { struct byval_floats_s s = {x, y, x * y}; for (int i = 0; i < 3; i++) s = byval_floats_m(s); return s.a + s.b * s.c; }
""", tolerance=1e-5),
    case("byval_large", "f64(f64[6] x)", """
struct byval_large_s { double v[6]; int n; };
static NOINLINE struct byval_large_s byval_large_m(struct byval_large_s a, double k) { for (int i = 1; i < a.n; i++) a.v[i] = a.v[i] * a.v[i - 1] * k + 0.5; return a; }
double byval_large(const double *x) { struct byval_large_s s; memcpy(s.v, x, sizeof s.v); s.n = 6; struct byval_large_s t = byval_large_m(s, x[1]); t = byval_large_m(t, s.v[2]); return t.v[5] +
  s.v[3] * t.v[2]; }
"""),
    case("struct_in_struct_pointer", "f64(f64[3] x)", """
struct struct_in_struct_pointer_i { double v; float g; }; struct struct_in_struct_pointer_o { int k; struct struct_in_struct_pointer_i *p; double s; };
double struct_in_struct_pointer(const double *x) { struct struct_in_struct_pointer_i in[2] = {{x[0], 1.5f}, {x[1], 2.5f}}; struct struct_in_struct_pointer_o o = {0, in, x[2]}, q = o; q.p++;
  q.p->v *= o.p->v; o.s *= q.p->v * q.p->g; q.p[-1].v = o.s; return in[0].v + in[1].v * q.s; }
"""),
    case("soa_aos_copy", "f64(f64[8] x)", """
struct soa_aos_copy_a { double p, q; };
double soa_aos_copy(const double *x) { struct soa_aos_copy_a a[4]; double p[4], q[4]; for (int i = 0; i < 4; i++) { a[i].p = x[i]; a[i].q = x[4 + i]; } struct soa_aos_copy_a b[4]; memcpy(b, a + 1, 3 *
  sizeof *a); b[3] = a[0]; for (int i = 0; i < 4; i++) { p[i] = b[i].p * a[i].q; q[i] = b[i].q; } double s = 0; for (int i = 0; i < 4; i++) s += p[i] * q[3 - i]; return s; }
"""),
    case("packed_struct", "f64(f64[3] x)", """
struct __attribute__((packed)) packed_struct_s { char c; double d; float f; short h; double e; };
double packed_struct(const double *x) { struct packed_struct_s a[2]; for (int i = 0; i < 2; i++) { a[i].c = 1; a[i].d = x[i]; a[i].f = (float)x[2]; a[i].h = 3; a[i].e = x[i] * x[2]; } struct packed_struct_s t =
  a[0]; a[0] = a[1]; a[1] = t; return a[0].d * a[1].e + a[0].f * a[1].h; }
""", tolerance=1e-6),
    case("flexible_array", "f64(f64[5] x)", """
struct flexible_array_s { int n; double scale; double v[]; };
double flexible_array(const double *x) { struct flexible_array_s *s = malloc(sizeof *s + 5 * sizeof(double)); s->n = 5; s->scale = x[0]; for (int i = 0; i < s->n; i++) s->v[i] = x[i] * s->scale; double r = 0;
  for (int i = 0; i < s->n; i++) r += s->v[i] * s->v[4 - i]; free(s); return r; }
"""),
    case("union_array", "f64(f64[4] x, i32 k)", """
union union_array_u { double v[4]; struct { double a, b, c, d; } s; };
double union_array(const double *x, int k) { union union_array_u u; u.s.a = x[0]; u.s.b = x[1] * x[0]; u.s.c = x[2]; u.s.d = x[3]; u.v[k] *= 2; return u.s.a * u.s.b + u.v[2] * u.s.d + u.v[1]; }
""", k=1),
    case("union_tagged", "f64(f64[6] x, i32[6] tag)", """
struct union_tagged_t { int tag; union { double d; int i; float f; } u; };
double union_tagged(const double *x, const int *tag) { struct union_tagged_t a[6]; double s = 0; for (int i = 0; i < 6; i++) { a[i].tag = tag[i]; if (tag[i] == 0) a[i].u.d = x[i] * x[i]; else if (tag[i] == 1)
  a[i].u.i = i; else a[i].u.f = (float)x[i]; } for (int i = 0; i < 6; i++) { if (a[i].tag == 0) s += sin(a[i].u.d); else if (a[i].tag == 1) s += a[i].u.i * x[i]; else s += a[i].u.f * x[0]; } return s; }
""", tag=[0, 1, 2, 0, 2, 1], tolerance=1e-6),
    case("bits_fabs", "f64(f64[4] x)", """
static double bits_fabs_h(double v) { union { double d; uint64_t i; } u; u.d = v; u.i &= 0x7fffffffffffffffULL; return u.d; }
double bits_fabs(const double *x) { double s = 0; for (int i = 0; i < 4; i++) s += bits_fabs_h(x[i]) * x[i] * x[i]; return s; }
""", x=[0.5, -0.7, 1.1, -0.2]),
    case("bits_negate", "f64(f64 x)", """
double bits_negate(double x) { uint64_t i; memcpy(&i, &x, 8); i ^= 1ULL << 63; double y; memcpy(&y, &i, 8); return y * y * y + sin(y); }
"""),
    case("bits_copysign", "f64(f64 x, f64 y)", """
double bits_copysign(double x, double y) { uint64_t a, b; memcpy(&a, &x, 8); memcpy(&b, &y, 8); a = (a & 0x7fffffffffffffffULL) | (b & 0x8000000000000000ULL); double r; memcpy(&r, &a, 8);
  return r * x + y; }
""", x=0.6, y=-0.8),
    case("bits_sign_of_an_element", "f64(f64[5] x, i32[3] k)", """
double bits_sign_of_an_element(const double *x, const int *k) { double r = 0;
  for (int i = 0; i < 3; i++) { uint64_t a, b; double v = 0.6 / (1.5 + x[i] * x[i]), w = tanh(x[i]); memcpy(&a, &v, 8); memcpy(&b, x + k[i], 8);
    a = (a & 0x7fffffffffffffffULL) | (b & 0x8000000000000000ULL); memcpy(&v, &a, 8); memcpy(&a, &w, 8); a ^= b & 0x8000000000000000ULL; memcpy(&w, &a, 8); r += v * w * x[4] + v * x[3]; }
  return r; }
""", x=[0.6, -0.8, 0.3, -0.5, 1.1], k=[1, 3, 4]),
    case("bits_float_negate", "f32(f32 x)", """
float bits_float_negate(float x) { uint32_t i; memcpy(&i, &x, 4); i ^= 0x80000000u; float y; memcpy(&y, &i, 4); return y * y * y + x; }
""", tolerance=1e-5),
    case("bits_sign_test", "f64(f64[4] x)", """
double bits_sign_test(const double *x) { double s = 0; for (int i = 0; i < 4; i++) { int64_t b; memcpy(&b, x + i, 8); s += b < 0 ? x[i] * x[i] : 3 * x[i]; } return s; }
""", x=[0.5, -0.7, 1.1, -0.2]),
    case("copied_as_integers", "f64(f64[4] x)", """
double copied_as_integers(const double *x) { uint64_t t[4]; for (int i = 0; i < 4; i++) memcpy(&t[i], x + i, 8); uint64_t k = t[0]; t[0] = t[3]; t[3] = k; double y[4]; memcpy(y, t, sizeof y); return y[0] * y[1] +
  y[2] * y[3] * x[0]; }
"""),
    case("copied_bytewise", "f64(f64[2] x)", """
double copied_bytewise(const double *x) { double y[2]; const char *s = (const char *)x; char *d = (char *)y; for (int i = 0; i < 16; i++) d[i] = s[i]; return y[0] * y[1] * x[0]; }
""", levels=("-O2", "-O3")),
    case("vtable", "f64(f64[3] x, i32[3] kind)", """
struct vtable_shape { double (*area)(const struct vtable_shape *); double a, b; };
static double vtable_rect(const struct vtable_shape *s) { return s->a * s->b; } static double vtable_disc(const struct vtable_shape *s) { return 3.14 * s->a * s->a; }
double vtable(const double *x, const int *kind) { struct vtable_shape s[3]; double t = 0; for (int i = 0; i < 3; i++) { s[i].area = kind[i] ? vtable_disc : vtable_rect; s[i].a = x[i]; s[i].b = x[(i + 1) % 3]; }
  for (int i = 0; i < 3; i++) t += s[i].area(&s[i]) * s[i].b; return t; }
""", kind=[0, 1, 0]),
    case("word_swap","void(inout f64[8] x, i32 n)","""
void word_swap(double *x, int n) { for (int i = 0; i < n; i++) { uint64_t a, b; memcpy(&a, x + i, 8); memcpy(&b, x + 7 - i, 8); uint64_t c = x[i] > x[7 - i] ? a : b; memcpy(x + i, &b, 8); memcpy(x + 7 - i, &a, 8); double d; memcpy(&d, &c, 8); x[(i + 3) % 8] *= d; } }""",n=5),
    case("pair_floats","f64(f64[6] x)","""
struct pf { float a, b; }; static NOINLINE struct pf pf_mul(struct pf u, struct pf v) { struct pf r = {u.a * v.a - u.b * v.b, u.a * v.b + u.b * v.a}; return r; }
double pair_floats(const double *x) { struct pf z = {0.5f, 0.25f}; struct pf h[3]; for (int i = 0; i < 3; i++) { struct pf c = {(float)x[i], (float)x[i + 3]}; h[i] = c; } for (int k = 0; k < 6; k++) { z = pf_mul(z, h[k % 3]); h[(k + 1) % 3] = z; z.a += 0.5f; } return z.a * z.b; }""",tolerance=1e-4),
    case("struct_memset","f64(f64[4] x)","""
struct sm { double a; double *p; float f; int n; double b[2]; };
double struct_memset(const double *x) { struct sm t[3]; double c[3]; double s = 0; for (int k = 0; k < 3; k++) { memset(t, 0, sizeof t); for (int i = 0; i < 3; i++) { c[i] = x[i] * (k + 1); if (i != k) { t[i].a = x[i] + s; t[i].p = &c[(i + k) % 3]; t[i].b[1] = x[3]; } } for (int i = 0; i < 3; i++) s += t[i].a * t[i].b[1] + (t[i].p ? *t[i].p * s : 0.1); } return s; }"""),
    case("memmove_structs","f64(f64[5] x)","""
struct mm { double a; int k; double *p; };
double memmove_structs(const double *x) { struct mm t[6]; double c[6], s = 0; for (int i = 0; i < 5; i++) { c[i] = x[i] * x[i]; t[i].a = x[i]; t[i].k = i; t[i].p = c + i; } memmove(t + 1, t, 5 * sizeof *t); c[5] = x[0]; t[0].a = x[4] * x[3]; t[0].k = 7; t[0].p = c + 5; memmove(t, t + 2, 3 * sizeof *t); for (int i = 0; i < 6; i++) s += t[i].a * *t[i].p * (t[i].k + 1) + s * 0.1; return s; }"""),
    case("int_view_of_struct","f64(f64[4] x, i32 n)","""
struct iv { double a; float f; short s[2]; };
double int_view_of_struct(const double *x, int n) { struct iv u[4], w[4]; for (int i = 0; i < 4; i++) { u[i].a = x[i]; u[i].f = (float)x[(i + 1) % 4]; u[i].s[0] = i; u[i].s[1] = 2; } for (int k = 0; k < n; k++) { const uint64_t *p = (const uint64_t *)u; uint64_t *q = (uint64_t *)w; for (int i = 0; i < 8; i++) q[(i + 2) % 8] = p[i]; for (int i = 0; i < 4; i++) { u[i] = w[i]; u[i].a *= w[(i + 1) % 4].f; } } double s = 0; for (int i = 0; i < 4; i++) s += u[i].a * u[i].f * (u[i].s[0] + u[i].s[1]); return s; }""",n=3,tolerance=1e-4),
    case("realloc_structs","f64(f64[6] x, i32 n)","""
struct rs { const double *p; double v; int k; };
double realloc_structs(const double *x, int n) { struct rs *a = 0; int m = 0, cap = 0; double s = 0; for (int i = 0; i < n; i++) { if (m == cap) { cap = cap ? 2 * cap : 2; a = realloc(a, cap * sizeof *a); } a[m].p = x + i % 6; a[m].v = m ? a[m - 1].v * *a[m - 1].p + 0.5 : x[5]; a[m].k = i; m++; } for (int i = 0; i < m; i++) s += a[i].v * *a[i].p * a[i].k; free(a); return s; }""",n=7),
    case("flexible_rows","f64(f64[6] x, i32 n)","""
struct fr { int n; struct fr *up; double v[]; };
double flexible_rows(const double *x, int n) { struct fr *r = 0; double s = 0; for (int k = 1; k <= n; k++) { struct fr *t = malloc(sizeof *t + k * sizeof(double)); t->n = k; t->up = r; for (int i = 0; i < k; i++) t->v[i] = (r && i < r->n ? r->v[i] : 1) * x[(i + k) % 6]; r = t; } while (r) { for (int i = 0; i < r->n; i++) s += r->v[i] * (i + 1); struct fr *u = r->up; free(r); r = u; } return s; }""",n=4),
    case("qsort_pointers","f64(f64[7] x, i32 n)","""
static int qp_c(const void *a, const void *b) { double x = **(double *const *)a, y = **(double *const *)b; return (x > y) - (x < y); }
double qsort_pointers(const double *x, int n) { double *t = malloc(n * sizeof *t); double **p = malloc(n * sizeof *p); for (int i = 0; i < n; i++) { t[i] = x[i] * x[i]; p[i] = &t[i]; } qsort(p, n, sizeof *p, qp_c); double s = 0; for (int i = 0; i < n; i++) { s = s * 0.7 + *p[i] * (i + 1); *p[i] *= s; } for (int i = 0; i < n; i++) s += t[i] * i; free(t); free(p); return s; }""",n=7),
)
