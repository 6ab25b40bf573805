// A program checks its function `double f(const double *x, double *y, int n)`: the derivatives of what it returns and
// stores, by both modes, against central differences. Exit status 0 when they agree.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef N
#define N 23
#endif
#ifndef TOLERANCE
#define TOLERANCE 2e-6
#endif

#ifdef __cplusplus
extern "C" {
#endif
double f(const double *x, double *y, int n);

double whole(const double *x, int n) {
  double *y = (double *)calloc(n, sizeof *y);
  double s = f(x, y, n);
  for (int i = 0; i < n; i++) s += sin(1.0 + i) * y[i];
  free(y);
  return s;
}

#ifdef PROGRAM
extern int enzyme_dup;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

int main(void) {
  double x[N], dx[N], slope[N], back = 0;
  for (int i = 0; i < N; i++) x[i] = 0.8 + 0.37 * sin(2.3 * i), dx[i] = 0, slope[i] = cos(1.7 * i);
  __enzyme_autodiff((void *)whole, enzyme_dup, x, dx, N);
  double ahead = __enzyme_fwddiff((void *)whole, enzyme_dup, x, slope, N), step = 1e-5, at[2];
  for (int side = 0; side < 2; side++) {
    double moved[N];
    for (int i = 0; i < N; i++) moved[i] = x[i] + (side ? step : -step) * slope[i];
    at[side] = whole(moved, N);
  }
  double differences = (at[1] - at[0]) / (2 * step);
  for (int i = 0; i < N; i++) back += dx[i] * slope[i];
  int good = fabs(back - ahead) <= 1e-11 * (1 + fabs(ahead)) && fabs(ahead - differences) <= TOLERANCE * (1 + fabs(ahead));
  printf("reverse %.12g forward %.12g differences %.12g: %s\n", back, ahead, differences, good ? "good" : "BAD");
  return !good;
}
#endif
#ifdef __cplusplus
}
#endif
