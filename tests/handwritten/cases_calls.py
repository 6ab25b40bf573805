"""Calls: helpers, recursion, function pointers, what only prints or checks."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .cases import case

CASES = (
    case("helper", "f64(f64[4] x)", """
static NOINLINE double helper_h(double a, double b) { return a * sin(b); }
double helper(const double *x) { double s = x[0]; for (int i = 1; i < 4; i++) s = helper_h(s, x[i]) + helper_h(x[i], s); return s; }
""", second=True),
    case("helper_out", "f64(f64[4] x)", """
static NOINLINE void helper_out_h(const double *x, double *s, double *p) { *s = 0; *p = 1; for (int i = 0; i < 4; i++) { *s += x[i]; *p *= x[i]; } }
double helper_out(const double *x) { double s, p; helper_out_h(x, &s, &p); double q, r; helper_out_h(x, &q, &r); return s * p + q * q * r; }
"""),
    case("helper_partly_active", "f64(f64[4] x, f64 k)", """
static NOINLINE double helper_partly_active_h(double a, double k, const double *w) { return a * k + w[1] * a * a; }
static const double helper_partly_active_w[2] = {0.5, 1.5};
double helper_partly_active(const double *x, double k) { return helper_partly_active_h(x[0], 2.0, helper_partly_active_w) * helper_partly_active_h(3.0, k, x) + helper_partly_active_h(1.0, 2.0, helper_partly_active_w); }
"""),
    case("helper_inplace", "void(inout f64[6] x)", """
static NOINLINE void helper_inplace_h(double *x, int n) { for (int i = 1; i < n; i++) x[i] *= x[i - 1]; }
void helper_inplace(double *x) { helper_inplace_h(x, 6); helper_inplace_h(x + 2, 3); for (int i = 0; i < 3; i++) helper_inplace_h(x + i, 2); }
"""),
    case("recursion_factorial", "f64(f64 x, i32 n)", "double recursion_factorial(double x, int n) { return n <= 0 ? 1 : (x + n) * recursion_factorial(x * 0.9, n - 1); }", n=6),
    case("recursion_tree", "f64(f64[4] x, i32 n)", """
static double recursion_tree_r(const double *x, double a, int d) { if (d == 0) return sin(a * x[0]); double l = recursion_tree_r(x, a * 0.9, d - 1); return l * x[d % 4] + recursion_tree_r(x, l * 0.5, d -
  1); }
double recursion_tree(const double *x, int n) { return recursion_tree_r(x, x[1], n); }
""", n=4),
    case("recursion_inplace", "void(inout f64[8] x)", """
static void recursion_inplace_r(double *x, int n) { if (n < 2) return; int h = n / 2; for (int i = 0; i < h; i++) { double a = x[i], b = x[i + h]; x[i] = a + b; x[i + h] = (a - b) * a; } recursion_inplace_r(x, h);
  recursion_inplace_r(x + h, h); }
void recursion_inplace(double *x) { recursion_inplace_r(x, 8); }
"""),
    case("recursion_on_data", "f64(f64 x)", "double recursion_on_data(double x) { return x > 3 ? x : sin(x) + 0.7 * recursion_on_data(x * 1.5 + 0.2); }", x=0.3),
    case("mutual_recursion", "f64(f64 x, i32 n)", """
static double mutual_recursion_b(double x, int n); static double mutual_recursion_a(double x, int n) { return n <= 0 ? x * x : mutual_recursion_b(sin(x), n - 1) * x; }
static double mutual_recursion_b(double x, int n) { return n <= 0 ? x : mutual_recursion_a(x + 0.5, n - 2) + mutual_recursion_a(x * 0.5, n - 1); }
double mutual_recursion(double x, int n) { return mutual_recursion_a(x, n); }
""", n=6),
    case("table_of_functions", "f64(f64[6] x, i32[6] k)", """
static double table_of_functions_a(double v) { return v * v; } static double table_of_functions_b(double v) { return sin(v); } static double table_of_functions_c(double v) { return 2 / (1 + v * v); }
static double (*const table_of_functions_t[3])(double) = {table_of_functions_a, table_of_functions_b, table_of_functions_c};
double table_of_functions(const double *x, const int *k) { double s = 0.3; for (int i = 0; i < 6; i++) s += table_of_functions_t[k[i]](x[i] * s); return s; }
""", k=[2, 0, 1, 1, 0, 2]),
    case("table_mutable", "f64(f64[5] x, i32[5] k)", """
static double table_mutable_a(double v, double w) { return v * w; } static double table_mutable_b(double v, double w) { return v - sin(w); }
double table_mutable(const double *x, const int *k) { double (*t[2])(double, double) = {table_mutable_a, table_mutable_b}; double s = 1; for (int i = 0; i < 5; i++) { s = t[k[i]](s, x[i]); if (i == 2) { double (*f)(double,
  double) = t[0]; t[0] = t[1]; t[1] = f; } } return s; }
""", k=[0, 1, 1, 0, 1]),
    case("table_of_procedures", "void(inout f64[4] x, i32[5] k)", """
static void table_of_procedures_a(double *x) { x[0] *= x[1]; } static void table_of_procedures_b(double *x) { x[2] = sin(x[3]) + x[0]; } static void table_of_procedures_c(double *x) { double t = x[0]; x[0] = x[3]; x[3] =
  t * t; }
void table_of_procedures(double *x, const int *k) { static void (*const t[])(double *) = {table_of_procedures_a, table_of_procedures_b, table_of_procedures_c}; for (int i = 0; i < 5; i++) t[k[i]](x); }
""", k=[0, 1, 2, 0, 1]),
    case("pointer_to_function_argument", "f64(f64 a, f64 b, i32 n)", """
static double pointer_to_function_argument_f(double x, double p) { return sin(p * x) * x; } static double pointer_to_function_argument_g(double x, double p) { return x * x + p; }
static NOINLINE double pointer_to_function_argument_i(double (*f)(double, double), double a, double b, double p, int n) { double h = (b - a) / n, s = 0.5 * (f(a, p) + f(b, p)); for (int i = 1; i < n; i++) s += f(a +
  i * h, p); return s * h; }
double pointer_to_function_argument(double a, double b, int n) { return pointer_to_function_argument_i(n > 3 ? pointer_to_function_argument_f : pointer_to_function_argument_g, a, b, a * b, n) *
  pointer_to_function_argument_i(pointer_to_function_argument_g, 0, b, 1.5, 4); }
""", n=6),
    case("function_pointer_of_libm", "f64(f64 x, i32 k)", """
double function_pointer_of_libm(double x, int k) { double (*t[4])(double) = {sin, cos, exp, tanh}; double s = x; for (int i = 0; i < 4; i++) s = t[(i + k) % 4](s) + 0.1; return s; }
""", k=1),
    case("callback_with_context", "f64(f64[3] x)", """
struct callback_with_context_c { double k; double seen; };
static double callback_with_context_f(double v, void *c) { struct callback_with_context_c *p = c; p->seen += v; return v * p->k; }
static NOINLINE double callback_with_context_map(const double *x, int n, double (*f)(double, void *), void *c) { double s = 0; for (int i = 0; i < n; i++) s += f(x[i] * x[i], c); return s; }
double callback_with_context(const double *x) { struct callback_with_context_c c = {x[0], 0}; double s = callback_with_context_map(x, 3, callback_with_context_f, &c); return s * c.seen; }
"""),
    case("prints", "f64(f64 x)", 'double prints(double x) { if (x > 100) printf("large %f\\n", x); if (x > 200) puts("very"); return x * sin(x); }'),
    case("asserts", "f64(f64[4] x)", "double asserts(const double *x) { double s = 0; for (int i = 0; i < 4; i++) { assert(x[i] < 50); s += x[i] * x[i]; } assert(s > 0); return sqrt(s); }"),
    case("aborts_on_error", "f64(f64 x)", """
static NOINLINE void aborts_on_error_fail(const char *m, double v) { fprintf(stderr, "%s %f\\n", m, v); abort(); }
double aborts_on_error(double x) { if (x < -50) aborts_on_error_fail("too small", x); return log(x + 60) * x; }
"""),
    case("returns_through_nested", "f64(f64[3] x)", """
static double returns_through_nested_c(const double *p, int i) { if (i > 2) return 1; if (p[i] > 0) return p[i] * returns_through_nested_c(p, i + 1); return returns_through_nested_c(p, i + 1) - p[i]; }
double returns_through_nested(const double *x) { return returns_through_nested_c(x, 0) * x[0]; }
"""),
    case("lstm", "f64(f64[4,3] W, f64[4,3] U, f64[12] b, f64[5,4] x)", """
static double lstm_s(double v) { return 1 / (1 + exp(-v)); }
double lstm(const double *W, const double *U, const double *b, const double *x) { double h[3] = {0}, c[3] = {0}, loss = 0; for (int t = 0; t < 5; t++) { double g[4][3]; for (int k = 0; k < 4; k++) for (int j = 0; j < 3; j++) {
  double a = b[3 * k + j]; for (int i = 0; i < 4; i++) a += W[3 * i + j] * x[4 * t + i] * (k + 1); for (int i = 0; i < 3; i++) a += U[3 * k + i] * h[i]; g[k][j] = a; }
  for (int j = 0; j < 3; j++) { double f = lstm_s(g[0][j]), i = lstm_s(g[1][j]), o = lstm_s(g[2][j]); c[j] = f * c[j] + i * tanh(g[3][j]); h[j] = o * tanh(c[j]); } for (int j = 0; j < 3; j++) loss += h[j] * h[j] *
  (t + 1); } return loss; }
""", tolerance=1e-9),
    case("lstm_vectorised", "f64(f64[8,8] W, f64[8] b, f64[6,8] x)", """
double lstm_vectorised(const double *restrict W, const double *restrict b, const double *restrict x) { double h[8] = {0}, c[8] = {0}, loss = 0; for (int t = 0; t < 6; t++) { double a[8]; for (int j = 0; j < 8; j++) { a[j] = b[j];
  for (int i = 0; i < 8; i++) a[j] += W[8 * i + j] * (x[8 * t + i] + h[i]); } for (int j = 0; j < 8; j++) { double f = 1 / (1 + a[j] * a[j]); c[j] = f * c[j] + (1 - f) * a[j]; h[j] = f * c[j]; } for (int j = 0; j < 8; j++) loss +=
  h[j] * h[j]; } return loss; }
""", tolerance=1e-9),
    case("table_of_tables","f64(f64[6] x, i32[6] k)","""
static double tt_a(double v) { return v * v; } static double tt_b(double v) { return sin(v); } static double tt_c(double v) { return exp(-v); }
typedef double (*tt_f)(double); static const tt_f tt_1[2] = {tt_a, tt_b}, tt_2[2] = {tt_c, tanh}; static const tt_f *const tt_all[2] = {tt_1, tt_2};
double table_of_tables(const double *x, const int *k) { double s = 0.3; for (int i = 0; i < 6; i++) s = tt_all[k[i] & 1][k[i] >> 1](s) + x[i] * s; return s; }""",k=[0,1,2,3,1,2]),
    case("function_struct_heap","f64(f64[4] x, i32 n)","""
struct fs { double (*f)(struct fs *, double); double gain; struct fs *next; };
static double fs_lin(struct fs *s, double v) { return s->gain * v; } static double fs_sq(struct fs *s, double v) { s->gain *= 0.9; return s->gain * v * v; }
double function_struct_heap(const double *x, int n) { struct fs *head = 0; for (int i = 0; i < 4; i++) { struct fs *s = malloc(sizeof *s); s->f = i % 2 ? fs_sq : fs_lin; s->gain = x[i]; s->next = head; head = s; } double v = 1; for (int k = 0; k < n; k++) for (struct fs *s = head; s; s = s->next) { v = s->f(s, v) + 0.5; if (k == 1) s->f = s->f == fs_lin ? fs_sq : fs_lin; } while (head) { struct fs *t = head->next; v += head->gain; free(head); head = t; } return v; }""",n=3),
    case("newton_nested","f64(f64[3] x)","""
static double nn_root(double a) { double y = 1; for (int i = 0; i < 50; i++) { double r = y * y * y + y - a; if (fabs(r) < 1e-14) break; y -= r / (3 * y * y + 1); } return y; }
double newton_nested(const double *x) { double s = 0; for (int i = 0; i < 3; i++) { s += nn_root(x[i] + s); } return s; }"""),
    case("global_state","f64(f64[5] x, i32 n)","""
static double gs_hist[8]; static int gs_n; static void gs_push(double v) { gs_hist[gs_n & 7] = v; gs_n++; } static double gs_last(int k) { return gs_hist[(gs_n - k) & 7]; }
double global_state(const double *x, int n) { gs_n = 0; for (int i = 0; i < 8; i++) gs_hist[i] = 0; gs_push(x[0]); gs_push(x[1]); for (int i = 0; i < n; i++) gs_push(gs_last(1) * gs_last(2) + x[i % 5]); return gs_last(1) + gs_last(3); }""",n=9),
)
