#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_dup, enzyme_out;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int failed = 0;
static void near_(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) { printf("%s: %.15g, not %.15g\n", what, got, want); failed = 1; }
}
static double noise(double x) { return x * x; }
static double logged = 0;
static void log_(const double *x) { logged += *x; }
void *__enzyme_inactivefn_noise[] = {(void *)noise};
void *__enzyme_inactivefn_log = (void *)log_;
double with_noise(double x) { log_(&x); return x * noise(x); }

__attribute__((annotate("enzyme_inactive"))) static double quiet(double x) { return 2 * x; }
double with_quiet(double x) { return x * quiet(x); }
__attribute__((enzyme_inactive)) static double quiet2(double x) { return 3 * x; }
double with_quiet2(double x) { return x * quiet2(x); }

static double gain = 2;
void *__enzyme_inactive_global_gain = (void *)&gain;
double with_gain(double x) { gain = x; return gain * x; }
__attribute__((annotate("enzyme_inactive"))) double tally = 0;
double with_tally(double x) { tally += x; return tally * x * x; }

double mylog(double a) { return 2 * a; }
void *__enzyme_function_like[2] = {(void *)mylog, "log1p"};
double with_log(double x) { return mylog(x * x); }
__attribute__((annotate("enzyme_function_like=exp"))) double myexp(double a) { return 7; }
double with_exp(double x) { return myexp(x * x); }
__attribute__((enzyme_function_like("pow"))) double mypow(double a, double b) { return pow(a, b) ; }
double with_pow(double x) { return mypow(x, 2 * x); }

static char pool[4096];
static int offset = 0, frees = 0;
static void *take(void *from, int bytes, int *at) { char *p = (char *)from + *at; *at += bytes; return p; }
static void give(int *at, void *p) { (void)p; *at = 0; frees++; }
void *__enzyme_allocation_like[4] = {(void *)take, (void *)1, (void *)"2,-1", (void *)give};
__attribute__((noinline)) static double *put(double x) { double *m = take(pool, 2 * sizeof(double), &offset); m[0] = x; m[1] = x * x; return m; }
double with_pool(double x) { double *t = put(x); double r = t[0] * t[1]; give(&offset, t); return r; }

static double steady(const double *x) { return x[0] * x[0]; }
void *__enzyme_nofree_steady = (void *)steady;
double with_steady(double x) { return steady(&x); }

int main(void) {
  near_("noise", __enzyme_autodiff((void *)with_noise, 3.0), 9);
  near_("logged", logged, 3);
  near_("quiet", __enzyme_autodiff((void *)with_quiet, 3.0), 6);
  near_("quiet2", __enzyme_autodiff((void *)with_quiet2, 3.0), 9);
  near_("quiet fwd", __enzyme_fwddiff((void *)with_quiet, 3.0, 1.0), 6);
  near_("gain", __enzyme_autodiff((void *)with_gain, 3.0), 3);
  near_("gain fwd", __enzyme_fwddiff((void *)with_gain, 3.0, 1.0), 3);
  near_("tally", __enzyme_autodiff((void *)with_tally, 3.0), 2 * 3 * 3);
  near_("tally is", tally, 3);
  near_("log", __enzyme_autodiff((void *)with_log, 2.0), 4 / (1 + 4.0));
  near_("exp", __enzyme_autodiff((void *)with_exp, 1.0), 2 * 7);
  near_("pow", __enzyme_autodiff((void *)with_pow, 2.0), 16 * (4 / 2.0 + 2 * log(2)));
  near_("pool", __enzyme_autodiff((void *)with_pool, 2.0), 12);
  near_("pool fwd", __enzyme_fwddiff((void *)with_pool, 2.0, 1.0), 12);
  near_("steady", __enzyme_autodiff((void *)with_steady, 2.0), 4);
  puts(failed ? "wrong" : "all right");
  return failed;
}
