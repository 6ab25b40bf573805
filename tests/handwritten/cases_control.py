"""Control flow: every shape of loop and branch."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .cases import case

CASES = (
    case("straight", "f64(f64 x, f64 y)", "double straight(double x, double y) { return sin(x) * y + x / (2 + y * y); }", second=True),
    case("branch", "f64(f64 x)", "double branch(double x) { if (x > 0.3) return x * x; else return sin(x); }", x=0.7, second=True),
    case("branch_else", "f64(f64 x)", "double branch_else(double x) { if (x > 0.3) return x * x; return sin(x) * 3; }", x=-0.7),
    case("branch_store", "void(f64[4] x, inout f64[4] y)", """
void branch_store(const double *x, double *y) { for (int i = 0; i < 4; i++) { if (x[i] > 0) y[i] *= x[i]; else y[i] = x[i] * x[3 - i]; } }
"""),
    case("select_kink", "f64(f64[6] x)", """
double select_kink(const double *x) { double s = 0; for (int i = 0; i < 6; i++) s += x[i] > 0 ? x[i] * x[i] : -0.5 * x[i]; return s; }
"""),
    case("switch_data", "f64(f64[8] x, i32[8] k)", """
double switch_data(const double *x, const int *k) {
  double s = 1; for (int i = 0; i < 8; i++) switch (k[i]) {
    case 0: s *= x[i]; break; case 1: s += sin(x[i]); break; case 2: s -= x[i]; /* falls through */
    case 3: s = s * 0.5 + x[i] * x[i]; break; case 17: s = tanh(s); break; default: s += 0.1; }
  return s; }
""", k=[0, 1, 2, 3, 4, 17, 2, -5]),
    case("switch_table", "f64(f64 x, i32 k)", """
double switch_table(double x, int k) { switch (k) { case 0: return x; case 1: return x * x; case 2: return x * x * x; case 3: return sin(x);
  case 4: return cos(x); case 5: return exp(x); case 6: return 0.25; default: return -x; } }
""", k=4),
    case("phi_swap", "f64(f64 a, f64 b, i32 n)", """
double phi_swap(double a, double b, int n) { for (int i = 0; i < n; i++) { double t = a; a = b; b = t * 0.9; } return a * a - 3 * b; }
""", n=5),
    case("fibonacci_phi", "f64(f64 a, f64 b, i32 n)", """
double fibonacci_phi(double a, double b, int n) { for (int i = 0; i < n; i++) { double c = sin(a) + 0.5 * b; a = b; b = c; } return a * b; }
""", n=7, second=True),
    case("three_phi_rotate", "f64(f64[3] x, i32 n)", """
double three_phi_rotate(const double *x, int n) { double a = x[0], b = x[1], c = x[2];
  for (int i = 0; i < n; i++) { double t = a; a = b; b = c; c = t * a; } return a + 2 * b + 3 * c; }
""", n=4),
    case("counted", "f64(f64[16] x)", "double counted(const double *x) { double s = 0; for (int i = 0; i < 16; i++) s += x[i] * x[i]; return s; }",
         second=True),
    case("counted_down", "f64(f64[9] x)", """
double counted_down(const double *x) { double s = 1; for (int i = 8; i >= 0; i--) s = s * x[i] + 0.5; return s; }
"""),
    case("strided", "f64(f64[n] x, i64 n)", """
double strided(const double *x, long n) { double s = 0; for (long i = 1; i < n; i += 3) s += x[i] * x[i - 1]; return s; }
""", x=[0.3, -0.2, 0.5, 0.9, -1.1, 0.7, 0.8, 0.1, 0.6, -0.4, 1.2]),
    case("continue_before_stores", "f64(f64[8] x, i32 n, i32 k)", """
double continue_before_stores(const double *x, int n, int k) { double y[8]; for (int i = 0; i < 8; i++) y[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) { if (k < 5 || x[0] > 0.9) continue; for (int j = i; j < 5; j++) y[(unsigned)i % 8u] *= 0.9 * x[j]; if (x[0] > 1.4 || i > k) break; }
  return y[0] * y[1] + y[2] * y[3]; }
""", n=4, k=6),
    case("unsigned_down", "f64(f64[8] x, i32 n)", """
double unsigned_down(const double *x, unsigned n) { double s = 1; while (n-- > 0) s = 0.5 * s * x[n] + x[n]; return s; }
""", n=8),
    case("zero_trip", "f64(f64 x, i32 n)", """
double zero_trip(double x, int n) { double s = x; for (int i = 0; i < n; i++) s *= x; return s; }
""", n=0),
    case("negative_trip", "f64(f64 x, i32 n)", """
double negative_trip(double x, int n) { double s = x * x; for (int i = 0; i < n; i++) for (int j = i; j < n; j++) s *= x; return s; }
""", n=-3),
    case("while_newton", "f64(f64 a)", """
double while_newton(double a) { double x = 1; while (fabs(x * x - a) > 1e-12) x = 0.5 * (x + a / x); return x; }
""", a=2.3, tolerance=1e-9),
    case("do_while", "f64(f64 x, i32 n)", "double do_while(double x, int n) { double s = 0; do { s = sin(s + x); } while (--n > 0); return s; }", n=6),
    case("do_while_once", "f64(f64 x, i32 n)", """
double do_while_once(double x, int n) { double s = 1; do { s = s * x; } while (--n > 0); return s; }
""", n=-4),
    case("break_data", "f64(f64[8] x)", """
double break_data(const double *x) { double p = 1; for (int i = 0; i < 8; i++) { if (x[i] < -0.5) break; p = p * 0.7 + x[i] * p; } return p; }
""", x=[0.2, 0.4, -0.1, 0.9, -0.7, 0.3, 1.0, 0.5]),
    case("break_twice", "f64(f64[8] x, f64 lim)", """
double break_twice(const double *x, double lim) { double s = 0, p = 1; for (int i = 0; i < 8; i++) { s += x[i] * x[i]; if (s > lim) break;
  p *= cos(s); if (p < 0.05) break; } return s * p; }
""", lim=1.7),
    case("continue_data", "f64(f64[8] x)", """
double continue_data(const double *x) { double s = 0; for (int i = 0; i < 8; i++) { if (x[i] < 0) continue; s = sin(s) + x[i] * x[i]; } return s; }
"""),
    case("early_return", "f64(f64[8] x, f64 lim)", """
double early_return(const double *x, double lim) { double s = 0; for (int i = 0; i < 8; i++) for (int j = 0; j <= i; j++) { s += x[i] * x[j];
  if (s > lim) return s * s + x[j]; } return s; }
""", lim=1.0),
    case("return_in_nest", "f64(f64[3,3] a)", """
double return_in_nest(const double *a) { double p = 1; for (int i = 0; i < 3; i++) { double m = a[3 * i]; for (int j = 1; j < 3; j++) {
  if (a[3 * i + j] < -1.0) return p * m; if (a[3 * i + j] > m) m = a[3 * i + j]; } p *= m; } return p; }
"""),
    case("goto_forward", "f64(f64 x)", """
double goto_forward(double x) { double s = x; if (x > 2) goto end; s = s * s; if (s > 0.1) goto mid; s += 4; mid: s = s * x; end: return s; }
"""),
    case("goto_loop", "f64(f64 x, i32 n)", """
double goto_loop(double x, int n) { double s = 0.5; int i = 0; again: s = sin(s * x); if (++i < n) goto again; return s; }
""", n=5),
    case("goto_out_of_nest", "f64(f64[12] x)", """
double goto_out_of_nest(const double *x) { double s = 0; for (int i = 0; i < 3; i++) for (int j = 0; j < 4; j++) { s += x[4 * i + j] * x[j];
  if (s > 1.2) goto done; } s = -s; done: return s * s; }
"""),
    case("irreducible", "f64(f64 x, i32 n)", """
double irreducible(double x, int n) { double s = 0.3; int i = 0; if (x > 0) goto inside; head: s = sin(s + x); inside: s = s * x + 0.1;
  if (++i < n) goto head; return s; }
""", x=0.8, n=5),
    case("irreducible_other", "f64(f64 x, i32 n)", """
double irreducible_other(double x, int n) { double s = 0.3; int i = 0; if (n & 1) goto b; a: s = s * x; if (s > 5) return s; b: s = s + x * x;
  if (++i < n) { if (i % 3) goto a; goto b; } return s; }
""", x=0.8, n=7),
    case("computed_goto_like", "f64(f64 x, i32[6] op)", """
double computed_goto_like(double x, const int *op) { double acc = x; for (int pc = 0; pc < 6;) { switch (op[pc]) { case 0: acc = sin(acc); pc++; break;
  case 1: acc *= x; pc += 2; break; case 2: if (acc > 0.2) pc++; else pc += 2; break; default: return acc; } } return acc * 2; }
""", x=0.9, op=[0, 2, 1, 0, 0, 3]),
    case("triangular", "f64(f64[6] x)", """
double triangular(const double *x) { double s = 0.3; for (int i = 0; i < 6; i++) for (int j = 0; j < i; j++) s += x[i] * sin(x[j] * s); return s; }
""", second=True),
    case("triangular_depth3", "f64(f64[5] x)", """
double triangular_depth3(const double *x) { double s = 0.1; for (int i = 0; i < 5; i++) for (int j = i; j < 5; j++) for (int k = j; k > i; k--)
  s = cos(s) * x[i] + x[j] * x[k]; return s; }
"""),
    case("dynamic_inside_counted", "f64(f64[6] x)", """
double dynamic_inside_counted(const double *x) { double s = 0; for (int i = 0; i < 6; i++) { double t = 1 + x[i] * x[i]; while (t > 0.3) t *= 0.6 +
  0.1 * x[i] * x[i] / (1 + x[i] * x[i]); s += t * t; } return s; }
"""),
    case("counted_inside_dynamic", "f64(f64 x)", """
double counted_inside_dynamic(double x) { double s = x; int k = 0; while (s < 3 && k < 40) { for (int i = 0; i < 3; i++) s += 0.1 * s * s + 0.05; k++; }
  return s * x; }
""", x=0.4),
    case("count_from_data", "f64(f64[5] x, i32[5] m)", """
double count_from_data(const double *x, const int *m) { double s = 0; for (int i = 0; i < 5; i++) for (int j = 0; j < m[i]; j++) s = 0.5 * s * s + x[i];
  return s; }
""", m=[3, 0, 1, 4, 2]),
    case("bound_overwritten", "f64(f64[8] x, inout i32[1] n)", """
double bound_overwritten(const double *x, int *n) { double s = 1; for (int i = 0; i < *n; i++) { s *= x[i]; if (x[i] > 0.8) *n = *n - 2; } return s + *n; }
""", n=[8], x=[0.9, 1.1, 0.7, 0.5, 0.85, 0.4, 0.3, 0.2]),
    case("collatz", "f64(f64 x, i32 n)", """
double collatz(double x, int n) { double s = x; while (n != 1) { if (n & 1) { n = 3 * n + 1; s = s * 0.9 + 0.1; } else { n /= 2; s = s * x; } } return s; }
""", n=6),
    case("two_inductions", "f64(f64[10] x)", """
double two_inductions(const double *x) { double s = 0; for (int i = 0, j = 9; i < j; i++, j--) s += x[i] * x[j] * (i + 1); return s; }
"""),
    case("powers_of_two", "f64(f64[16] x)", """
double powers_of_two(const double *x) { double s = 1; for (int i = 1; i < 16; i *= 2) s = s * x[i] + 1; return s; }
"""),
    case("short_circuit", "f64(f64[4] x)", """
double short_circuit(const double *x) { double s = 0; for (int i = 0; i < 4; i++) if ((x[i] > 0 && x[3 - i] < 0.5) || x[i] * x[i] > 1) s += x[i] * x[i]; else
  s -= x[i]; return s; }
"""),
    case("unreachable_end", "f64(f64 x, i32 k)", """
double unreachable_end(double x, int k) { if (k == 0) return x * x; if (k == 1) return sin(x); __builtin_unreachable(); }
""", k=1),
    case("loop_with_two_latches", "f64(f64[6] x)", """
double loop_with_two_latches(const double *x) { double s = 0.2; int i = 0; top: if (i >= 6) return s; if (x[i] > 0) { s = s * x[i] + 1; i++; goto top; }
  s = s - x[i] * x[i]; i += 1; goto top; }
"""),
    case("sentinel_search", "f64(f64[7] x)", """
double sentinel_search(const double *x) { int i = 0; while (x[i] != 0.0) i++; double s = 1; for (int j = 0; j < i; j++) s *= 1 + 0.3 * x[j]; return s; }
""", x=[0.4, -0.2, 0.9, 0.7, 0.0, 0.5, 0.6]),
    case("argmax", "f64(f64[7] x)", """
double argmax(const double *x) { int k = 0; for (int i = 1; i < 7; i++) if (x[i] > x[k]) k = i; return x[k] * x[(k + 1) % 7]; }
"""),
    case("empty_array", "f64(f64[n] x, i64 n)", """
double empty_array(const double *x, long n) { double s = 2; for (long i = 0; i < n; i++) s *= x[i]; return s; }
""", x=[]),
)
