"""Memory: in-place updates, aliasing, heap, globals, block copies."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .cases import case

CASES = (
    case("inplace_product", "void(inout f64[8] x)", "void inplace_product(double *x) { for (int i = 1; i < 7; i++) x[i] = x[i - 1] * x[i + 1]; }"),
    case("inplace_product_sum", "f64(inout f64[8] x)", """
double inplace_product_sum(double *x) { double s = 0; for (int i = 1; i < 7; i++) x[i] = x[i - 1] * x[i + 1]; for (int i = 0; i < 8; i++) s += x[i] * x[i];
  return s; }
"""),
    case("inplace_backward", "void(inout f64[8] x)", "void inplace_backward(double *x) { for (int i = 6; i > 0; i--) x[i] = sin(x[i - 1]) * x[i + 1]; }"),
    case("inplace_far", "void(inout f64[12] x)", "void inplace_far(double *x) { for (int i = 4; i < 12; i++) x[i] = x[i] * x[i - 4] + x[(i * 5) % 12]; }"),
    case("inplace_sweeps", "void(inout f64[7] x, i32 n)", """
void inplace_sweeps(double *x, int n) { for (int k = 0; k < n; k++) for (int i = 1; i < 6; i++) x[i] = 0.3 * x[i - 1] * x[i] + 0.5 * cos(x[i + 1]); }
""", n=4),
    case("inplace_scatter", "void(inout f64[6] x, i32[9] p)", """
void inplace_scatter(double *x, const int *p) { for (int i = 0; i < 9; i++) x[p[i]] = x[p[(i + 1) % 9]] * x[p[i]] + 0.3; }
""", p=[0, 3, 3, 1, 5, 2, 0, 4, 4]),
    case("prefix_sum", "void(inout f64[9] x)", "void prefix_sum(double *x) { for (int i = 1; i < 9; i++) x[i] += x[i - 1] * x[i]; }"),
    case("reverse_inplace", "void(inout f64[7] x)", """
void reverse_inplace(double *x) { for (int i = 0; i < 3; i++) { double t = x[i]; x[i] = x[6 - i] * 2; x[6 - i] = t * t; } }
"""),
    case("transpose_inplace", "void(inout f64[4,4] a)", """
void transpose_inplace(double *a) { for (int i = 0; i < 4; i++) for (int j = 0; j < i; j++) { double t = a[4 * i + j]; a[4 * i + j] = a[4 * j + i]; a[4 * j + i] =
  t * a[5 * i]; } }
"""),
    case("bubble_sort", "f64(inout f64[6] x)", """
double bubble_sort(double *x) { for (int i = 0; i < 6; i++) for (int j = 0; j + 1 < 6; j++) if (x[j] > x[j + 1]) { double t = x[j]; x[j] = x[j + 1]; x[j + 1] =
  t; } return x[0] * x[1] + x[5] * x[5]; }
"""),
    case("cholesky", "void(inout f64[4,4] a)", """
void cholesky(double *a) { for (int j = 0; j < 4; j++) { for (int k = 0; k < j; k++) a[5 * j] -= a[4 * j + k] * a[4 * j + k]; a[5 * j] = sqrt(a[5 * j]);
  for (int i = j + 1; i < 4; i++) { for (int k = 0; k < j; k++) a[4 * i + j] -= a[4 * i + k] * a[4 * j + k]; a[4 * i + j] /= a[5 * j]; } } }
""", a=[[4, 1, 0.5, 0.2], [1, 3, 0.4, 0.6], [0.5, 0.4, 5, 0.7], [0.2, 0.6, 0.7, 2]]),
    case("lu_pivot", "f64(inout f64[4,4] a)", """
double lu_pivot(double *a) { double det = 1; for (int k = 0; k < 4; k++) { int p = k; for (int i = k + 1; i < 4; i++) if (fabs(a[4 * i + k]) > fabs(a[4 * p + k]))
  p = i; if (p != k) { det = -det; for (int j = 0; j < 4; j++) { double t = a[4 * k + j]; a[4 * k + j] = a[4 * p + j]; a[4 * p + j] = t; } }
  det *= a[5 * k]; for (int i = k + 1; i < 4; i++) { double m = a[4 * i + k] / a[5 * k]; for (int j = k; j < 4; j++) a[4 * i + j] -= m * a[4 * k + j]; } }
  return det; }
"""),
    case("burgers_swapped", "f64(f64[10] u0, i32 steps, f64 nu)", """
double burgers_swapped(const double *u0, int steps, double nu) { double a[10], b[10], *u = a, *v = b; for (int i = 0; i < 10; i++) { u[i] = u0[i]; v[i] = 0; }
  for (int s = 0; s < steps; s++) { v[0] = u[0]; v[9] = u[9]; for (int i = 1; i < 9; i++) v[i] = u[i] - 0.1 * u[i] * (u[i] - u[i - 1]) +
  nu * (u[i + 1] - 2 * u[i] + u[i - 1]); double *t = u; u = v; v = t; }
  double e = 0; for (int i = 0; i < 10; i++) e += u[i] * u[i]; return e; }
""", steps=5, nu=0.1, second=True),
    case("burgers_swapped_args", "void(inout f64[8] a, inout f64[8] b, i32 steps)", """
void burgers_swapped_args(double *a, double *b, int steps) { double *u = a, *v = b; for (int s = 0; s < steps; s++) { for (int i = 1; i < 7; i++)
  v[i] = u[i] - 0.1 * u[i] * (u[i] - u[i - 1]) + 0.2 * (u[i + 1] - 2 * u[i] + u[i - 1]); double *t = u; u = v; v = t; } }
""", steps=3),
    case("swap_heap", "f64(f64[6] x, i32 n)", """
double swap_heap(const double *x, int n) { double *p = malloc(6 * sizeof *p), *q = malloc(6 * sizeof *q); memcpy(p, x, 48); memset(q, 0, 48);
  for (int k = 0; k < n; k++) { for (int i = 0; i < 6; i++) q[i] = p[i] * p[(i + 1) % 6]; double *t = p; p = q; q = t; }
  double s = 0; for (int i = 0; i < 6; i++) s += p[i] + 0.5 * q[i]; free(p); free(q); return s; }
""", n=3),
    case("alias_x_and_x1", "f64(inout f64[8] x)", """
static NOINLINE void alias_x_and_x1_h(double *o, const double *a, int n) { for (int i = 0; i < n; i++) o[i] = 0.5 * a[i] * a[i] + o[i]; }
double alias_x_and_x1(double *x) { alias_x_and_x1_h(x + 1, x, 7); alias_x_and_x1_h(x, x + 1, 6); return x[7] * x[0] + x[3]; }
"""),
    case("alias_same", "f64(inout f64[6] x)", """
static NOINLINE double alias_same_h(double *a, double *b) { for (int i = 0; i < 6; i++) { a[i] = b[i] * b[5 - i]; } return a[2] * b[2]; }
double alias_same(double *x) { return alias_same_h(x, x); }
"""),
    case("pointer_chosen", "void(inout f64[6] x, i32 k)", """
void pointer_chosen(double *x, int k) { double t[3] = {x[0], x[1] * x[1], 0.5}; double *p = k > 2 ? t : x + 3; p[1] = p[0] * p[1]; *p += 2 * p[2]; x[5] = t[0] * t[1] + x[3]; }
""", k=3),
    case("pointer_data_chosen", "f64(inout f64[6] x)", """
double pointer_data_chosen(double *x) { double *p = x[0] > x[1] ? x : x + 2; double *q = p + (x[2] > 0); *q *= x[5]; *p = sin(*p) + *q; return x[0] + 2 * x[1] + 3 * x[2] + x[3]; }
"""),
    case("array_of_pointers", "f64(inout f64[9] x, i32[3] p)", """
double array_of_pointers(double *x, const int *p) { double *row[3] = {x, x + 3, x + 6}; double *t = row[p[0]]; row[p[0]] = row[p[1]]; row[p[1]] = t;
  for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) row[i][j] = row[(i + 1) % 3][j] * (i + 1) + row[i][j] * row[p[2]][j]; return row[0][0] * row[2][2]; }
""", p=[2, 0, 1]),
    case("double_pointer_rows", "f64(f64[6] x, i32 m)", """
double double_pointer_rows(const double *x, int m) { double **a = malloc(m * sizeof *a); for (int i = 0; i < m; i++) { a[i] = malloc(3 * sizeof(double));
  for (int j = 0; j < 3; j++) a[i][j] = x[(i + 2 * j) % 6] * (i + 1); } for (int i = 1; i < m; i++) for (int j = 0; j < 3; j++) a[i][j] += a[i - 1][j] * a[i][2 - j];
  double s = 0; for (int j = 0; j < 3; j++) s += a[m - 1][j]; for (int i = 0; i < m; i++) free(a[i]); free(a); return s; }
""", m=4),
    case("linked_list", "f64(f64[6] x)", """
struct linked_list_n { double v; struct linked_list_n *next; };
double linked_list(const double *x) { struct linked_list_n *h = 0; for (int i = 0; i < 6; i++) { struct linked_list_n *e = malloc(sizeof *e); e->v = sin(x[i]);
  e->next = h; h = e; } double s = 1; for (struct linked_list_n *e = h; e->next; e = e->next) e->v *= e->next->v;
  while (h) { s = s * 0.5 + h->v; struct linked_list_n *e = h->next; free(h); h = e; } return s; }
"""),
    case("linked_list_reversed", "f64(f64[5] x)", """
struct linked_list_reversed_n { struct linked_list_reversed_n *next; float pad; double v; };
double linked_list_reversed(const double *x) { struct linked_list_reversed_n a[5], *h = 0; for (int i = 0; i < 5; i++) { a[i].v = x[i]; a[i].pad = i; a[i].next =
  h; h = a + i; } struct linked_list_reversed_n *r = 0; while (h) { struct linked_list_reversed_n *t = h->next; h->next = r; r = h; h = t; }
  double s = 1; for (; r; r = r->next) s = s * r->v + r->pad; return s; }
"""),
    case("tree_sum", "f64(f64[7] x)", """
struct tree_sum_t { double v; struct tree_sum_t *l, *r; };
static struct tree_sum_t *tree_sum_put(struct tree_sum_t *t, double v) { if (!t) { t = calloc(1, sizeof *t); t->v = v; return t; } if (v < t->v) t->l =
  tree_sum_put(t->l, v); else t->r = tree_sum_put(t->r, v); return t; }
static double tree_sum_fold(struct tree_sum_t *t, double w) { if (!t) return w; return t->v * tree_sum_fold(t->l, w * 0.5) + tree_sum_fold(t->r, w * 0.25); }
static void tree_sum_free(struct tree_sum_t *t) { if (t) { tree_sum_free(t->l); tree_sum_free(t->r); free(t); } }
double tree_sum(const double *x) { struct tree_sum_t *t = 0; for (int i = 0; i < 7; i++) t = tree_sum_put(t, x[i]); double s = tree_sum_fold(t, 1.0);
  tree_sum_free(t); return s; }
"""),
    case("malloc_inside", "f64(f64[5] x)", """
double malloc_inside(const double *x) { double *t = malloc(5 * sizeof *t); for (int i = 0; i < 5; i++) t[i] = x[i] * x[4 - i]; double s = 0; for (int i = 0; i < 5; i++)
  s += t[i] * t[(i + 1) % 5]; free(t); return s; }
""", second=True),
    case("malloc_in_loop", "f64(f64[5] x)", """
double malloc_in_loop(const double *x) { double s = 1; for (int i = 0; i < 5; i++) { double *t = malloc((i + 1) * sizeof *t); for (int j = 0; j <= i; j++) t[j] =
  s * x[j]; for (int j = 0; j <= i; j++) s = 0.5 * s + t[j] * t[i - j]; free(t); } return s; }
"""),
    case("malloc_across_loop", "f64(f64[6] x)", """
double malloc_across_loop(const double *x) { double *prev = 0, s = 0; for (int i = 0; i < 6; i++) { double *t = malloc(2 * sizeof *t); t[0] = x[i]; t[1] = prev ?
  prev[1] * x[i] : 1; if (prev) free(prev); prev = t; s += t[1]; } s += prev[0] * prev[1]; free(prev); return s; }
"""),
    case("malloc_conditional", "f64(f64[5] x, i32 k)", """
double malloc_conditional(const double *x, int k) { double b[5], *t = k > 3 ? malloc(5 * sizeof *t) : b; for (int i = 0; i < 5; i++) t[i] = x[i] * x[i]; double s =
  t[0] * t[4]; if (t != b) free(t); return s; }
""", k=5),
    case("calloc_accumulate", "f64(f64[8] x, i32[8] bin)", """
double calloc_accumulate(const double *x, const int *bin) { double *h = calloc(4, sizeof *h), s = 1; for (int i = 0; i < 8; i++) h[bin[i]] += x[i] * x[i];
  for (int i = 0; i < 4; i++) s *= 1 + h[i]; free(h); return s; }
""", bin=[0, 1, 1, 3, 0, 3, 3, 1]),
    case("realloc_growing", "f64(f64[4] x, i32 n)", """
double realloc_growing(const double *x, int n) { int cap = 1, m = 0; double *t = malloc(sizeof *t); for (int i = 0; i < n; i++) { if (m == cap) { cap *= 2; t =
  realloc(t, cap * sizeof *t); } t[m] = m ? t[m - 1] * x[i % 4] + 0.3 : x[0]; m++; } double s = 0; for (int i = 0; i < m; i++) s += t[i] * t[i]; free(t); return s; }
""", n=9),
    case("realloc_from_null", "f64(f64[6] x)", """
double realloc_from_null(const double *x) { double *t = 0, s = 0; for (int i = 0; i < 6; i++) { t = realloc(t, (i + 1) * sizeof *t); t[i] = x[i] + (i ? t[i - 1] * x[i] : 0); }
  for (int i = 0; i < 6; i++) s += t[i] * t[5 - i]; free(t); return s; }
"""),
    case("early_free", "f64(f64[4] x)", """
double early_free(const double *x) { double *t = malloc(32); for (int i = 0; i < 4; i++) t[i] = exp(x[i]); double a = t[0] * t[1], b = t[2] / t[3]; free(t);
  double *u = malloc(32); for (int i = 0; i < 4; i++) u[i] = a * x[i]; double s = u[1] * b + u[3]; free(u); return s; }
"""),
    case("aligned_alloc_", "f64(f64[8] x)", """
double aligned_alloc_(const double *x) { double *t = aligned_alloc(64, 64), s = 0; for (int i = 0; i < 8; i++) t[i] = x[i] * x[7 - i]; for (int i = 0; i < 8; i++) s +=
  sin(t[i]); free(t); return s; }
"""),
    case("posix_memalign_", "f64(f64[8] x)", """
double posix_memalign_(const double *x) { void *p = 0; if (posix_memalign(&p, 64, 64)) return 0; double *t = p, s = 0; for (int i = 0; i < 8; i++) t[i] = x[i] * x[i];
  for (int i = 1; i < 8; i++) { t[i] *= t[i - 1] + 1; s += t[i]; } free(p); return s; }
"""),
    case("heap_returned", "f64(f64[4] x)", """
static NOINLINE double *heap_returned_make(const double *x, double a) { double *t = malloc(32); for (int i = 0; i < 4; i++) t[i] = x[i] * a; return t; }
double heap_returned(const double *x) { double *t = heap_returned_make(x, x[1]), *u = heap_returned_make(t, x[2]); double s = t[0] * u[3] + u[1]; free(t); free(u);
  return s; }
"""),
    case("memcpy_local", "f64(f64[6] x)", """
double memcpy_local(const double *x) { double t[6]; memcpy(t, x, sizeof t); for (int i = 1; i < 6; i++) t[i] *= t[i - 1]; return t[5] + t[2] * x[1]; }
"""),
    case("memcpy_variable", "void(f64[8] x, inout f64[8] y, i64 n)", """
void memcpy_variable(const double *x, double *y, long n) { memcpy(y + 1, x, n * sizeof *x); for (int i = 0; i < 8; i++) y[i] *= y[i]; }
""", n=5),
    case("memcpy_of_result", "void(inout f64[8] y)", """
void memcpy_of_result(double *y) { double t[4]; for (int k = 0; k < 3; k++) { for (int i = 0; i < 4; i++) t[i] = y[i] * y[i + 4]; memcpy(y + (k & 1) * 4, t, sizeof t); } }
"""),
    case("memmove_up", "void(inout f64[8] x)", "void memmove_up(double *x) { memmove(x + 1, x, 6 * sizeof *x); x[0] = x[1] * x[2]; x[7] *= x[6]; }"),
    case("memmove_down", "void(inout f64[8] x)", """
void memmove_down(double *x) { for (int k = 0; k < 3; k++) { double f = x[0]; memmove(x, x + 1, 7 * sizeof *x); x[7] = f * x[3]; } }
"""),
    case("memset_part", "void(inout f64[8] x)", "void memset_part(double *x) { double a = x[2] * x[3]; memset(x + 2, 0, 3 * sizeof *x); x[3] += a * x[7]; }"),
    case("memset_loop", "f64(f64[6] x)", """
double memset_loop(const double *x) { double t[3], s = 0; for (int k = 0; k < 4; k++) { memset(t, 0, sizeof t); for (int i = 0; i < 6; i++) t[i % 3] += x[i] * (s + k);
  s += 0.1 * t[0] * t[1] + 0.2 * t[2]; } return s; }
"""),
    case("overwritten_output", "void(f64[4] x, inout f64[4] y)", """
void overwritten_output(const double *x, double *y) { for (int i = 0; i < 4; i++) y[i] = 7; for (int i = 0; i < 4; i++) y[i] = x[i] * x[i] + y[(i + 1) % 4]; }
"""),
    case("output_read_back", "void(f64[5] x, out f64[5] y)", """
void output_read_back(const double *x, double *y) { y[0] = x[0]; for (int i = 1; i < 5; i++) y[i] = y[i - 1] * x[i]; for (int i = 0; i < 5; i++) y[i] *= y[4 - i]; }
"""),
    case("inout_accumulate", "void(f64[3,4] a, f64[4] x, inout f64[3] y)", """
void inout_accumulate(const double *a, const double *x, double *y) { for (int i = 0; i < 3; i++) for (int j = 0; j < 4; j++) y[i] += a[4 * i + j] * x[j] * y[(i + 1) % 3]; }
"""),
    case("scalar_inout", "f64(inout f64[1] s, f64 a)", "double scalar_inout(double *s, double a) { *s = *s * a; *s += sin(*s); return *s * a; }"),
    case("local_array", "f64(f64[4] x, i32 k)", """
double local_array(const double *x, int k) { double t[8] = {0}; for (int i = 0; i < 8; i++) t[(i * k) % 8] += x[i % 4] * (i + 1); return t[0] * t[3] + t[5] * t[7] + t[1]; }
""", k=3),
    case("local_array_per_iteration", "f64(f64[6] x)", """
double local_array_per_iteration(const double *x) { double s = 0; for (int k = 0; k < 6; k++) { double t[4]; for (int i = 0; i < 4; i++) t[i] = x[(k + i) % 6]; for (int i = 1;
  i < 4; i++) t[i] *= t[i - 1]; s = sin(s) + t[3]; } return s; }
"""),
    case("vla", "f64(f64[6] x, i32 n)", """
double vla(const double *x, int n) { double s = 0; for (int k = 1; k <= n; k++) { double t[k]; for (int i = 0; i < k; i++) t[i] = x[i % 6] * (s + 1); for (int i = 1; i < k; i++)
  t[i] = 0.5 * t[i] * t[i - 1]; s += t[k - 1]; } return s; }
""", n=5),
    case("alloca_dynamic", "f64(f64[6] x, i32 n)", """
double alloca_dynamic(const double *x, int n) { double *t = __builtin_alloca(n * sizeof *t); for (int i = 0; i < n; i++) t[i] = x[i % 6]; for (int i = 1; i < n; i++) t[i] +=
  t[i - 1] * t[i]; return t[n - 1] * t[0]; }
""", n=7),
    case("const_global", "f64(f64[4] x)", """
static const double const_global_c[4] = {0.5, -1.25, 2.0, 0.125};
double const_global(const double *x) { double s = 0; for (int i = 0; i < 4; i++) s += const_global_c[i] * x[i] * x[(i + 1) % 4]; return s; }
"""),
    case("mutable_global", "f64(f64[4] x)", """
static double mutable_global_g[4]; static double mutable_global_s;
double mutable_global(const double *x) { mutable_global_s = 1; for (int i = 0; i < 4; i++) mutable_global_g[i] = x[i] * x[i]; for (int i = 1; i < 4; i++) { mutable_global_g[i] *=
  mutable_global_g[i - 1]; mutable_global_s += mutable_global_g[i] * mutable_global_s; } return mutable_global_s; }
"""),
    case("mutable_global_helper", "f64(f64 x, i32 n)", """
static double mutable_global_helper_g;
static NOINLINE void mutable_global_helper_h(double v) { mutable_global_helper_g = sin(mutable_global_helper_g) + v * mutable_global_helper_g; }
double mutable_global_helper(double x, int n) { mutable_global_helper_g = x; for (int i = 0; i < n; i++) mutable_global_helper_h(x * i * 0.1); return mutable_global_helper_g; }
""", n=4),
    case("static_local_pointer", "f64(f64[4] x)", """
static double static_local_pointer_b[4], *static_local_pointer_p;
double static_local_pointer(const double *x) { static_local_pointer_p = static_local_pointer_b; for (int i = 0; i < 4; i++) static_local_pointer_p[i] = x[i] * 2;
  static_local_pointer_p++; return static_local_pointer_p[0] * static_local_pointer_p[2] * static_local_pointer_b[0]; }
"""),
    case("pointer_walk", "f64(f64[7] x)", """
double pointer_walk(const double *x) { double s = 1; for (const double *p = x, *e = x + 7; p != e; ++p) s = s * 0.8 + *p * *p; return s; }
"""),
    case("pointer_as_integer", "f64(f64[7] x)", """
double pointer_as_integer(const double *x) { uintptr_t p = (uintptr_t)x; double s = 1; for (int i = 0; i < 7; i++, p += sizeof(double)) s = s * 0.7 + sin(*(const double *)p); return s; }
"""),
    case("two_dimensional", "f64(f64[3,4] a, f64[4,2] b)", """
double two_dimensional(const double (*a)[4], const double (*b)[2]) { double c[3][2]; for (int i = 0; i < 3; i++) for (int j = 0; j < 2; j++) { c[i][j] = 0; for (int k = 0; k < 4;
  k++) c[i][j] += a[i][k] * b[k][j]; } double s = 0; for (int i = 0; i < 3; i++) for (int j = 0; j < 2; j++) s += c[i][j] * c[i][1 - j] * (i + 1); return s; }
""", second=True),
    case("ring_buffer", "f64(f64[12] x)", """
double ring_buffer(const double *x) { double b[3] = {1, 1, 1}, s = 0; int h = 0; for (int i = 0; i < 12; i++) { s += b[h] * x[i]; b[h] = 0.5 * b[(h + 1) % 3] + x[i]; h = (h + 1) % 3; }
  return s; }
"""),
    case("stack_machine", "f64(f64[4] x, i32[9] op)", """
double stack_machine(const double *x, const int *op) { double st[8]; int n = 0; for (int i = 0; i < 9; i++) { int o = op[i]; if (o < 4) st[n++] = x[o]; else if (o == 4) { n--; st[n -
  1] = st[n - 1] * st[n]; } else if (o == 5) { n--; st[n - 1] = st[n - 1] + st[n]; } else st[n - 1] = sin(st[n - 1]); } return st[0]; }
""", op=[0, 1, 4, 6, 2, 3, 5, 4, 6]),
    case("needs_stored_twice", "f64(inout f64[4] x)", """
double needs_stored_twice(double *x) { double s = 0; for (int k = 0; k < 3; k++) { for (int i = 0; i < 4; i++) { double v = x[i]; x[i] = v * v; s += x[i] * v; x[i] = x[i] * x[(i + 1) %
  4]; } } return s; }
"""),
    case("aligned_vectors", "f64(f64[8] x)", """
typedef double aligned_v4 __attribute__((vector_size(32)));
static NOINLINE double aligned_sum(const aligned_v4 *v, int n) { aligned_v4 t[3] = {v[0], v[1], v[0] * v[1]}; for (int k = 0; k < n; k++) t[k % 3] = t[k % 3] * v[k % 2] + t[(k + 1) % 3];
  return t[0][0] + t[1][1] * t[2][2] + t[0][3]; }
double aligned_vectors(const double *x) { double s = 0; for (int k = 0; k < 3; k++) { aligned_v4 *v = aligned_alloc(64, 2 * sizeof *v); memcpy(v, x, 2 * sizeof *v); v[0] *= v[1];
  s += aligned_sum(v, 4 + k) * x[k]; free(v); } return s; }
"""),
    case("restrict_args", "void(f64[8] x, out f64[8] y)", """
void restrict_args(const double *restrict x, double *restrict y) { for (int i = 0; i < 8; i++) { y[i] = x[i] * x[i]; if (i) y[i] += y[i - 1]; } }
"""),
)
