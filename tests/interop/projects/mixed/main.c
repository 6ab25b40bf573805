#include "registry.h"
#include "table.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
static double square(double (*f)(const double *, double), const double *p) {
  double sum = 0;
  for (int i = 0; i < POINTS; i++) { double d = f(p, i) - table[i]; sum += d * d; }
  return sum;
}
static double damped_misfit(const double *p) {
  double sum = 0;
  for (int i = 0; i < POINTS; i++) { double d = p[0] * exp(-p[1] * i) * cos(p[2] * i) - table[i]; sum += d * d; }
  return sum;
}
static double found[3] = {0.9, 0.06, 0.29};
static void *fit(void *unused) {
  (void)unused;
  for (int t = 0; t < 4000; t++) {
    double slope[3] = {0};
    __enzyme_autodiff((void *)damped_misfit, enzyme_dup, found, slope);
    const double rate[3] = {1e-2, 1e-5, 1e-5};
    for (int i = 0; i < 3; i++) found[i] -= rate[i] * slope[i];
  }
  return NULL;
}
int main(void) {
  model damped = find_model("damped"), line = find_model("line");
  if (!damped || !line) { puts("a plug-in was left out"); return 1; }
  double p[3] = {1, 2, 3};
  if (line(p, 2) != 5) return 2;
  pthread_t thread;
  if (pthread_create(&thread, NULL, fit, NULL) || pthread_join(thread, NULL)) return 3;
  double rest = square(damped, found);
  printf("%.9f %.9f %.9f, misfit %.3g\n", found[0], found[1], found[2], rest);
  return !(fabs(found[0] - 1) < 1e-4 && fabs(found[1] - 0.05) < 1e-5 && fabs(found[2] - 0.3) < 1e-5);
}
