/* Sorting and searching on the way: a robust location estimate by qsort and bsearch, and how each sample moves it. */
#include "check.h"
#include <stdlib.h>
#include <string.h>

extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The mean of the middle, and a pull from the quantile q by linear interpolation. The buffer grows as samples come. */
static double location(const double *sample, int n, double q) {
  double *sorted = NULL;
  int room = 0;
  for (int i = 0; i < n; i++) {
    if (i == room) sorted = realloc(sorted, (room = 2 * room + 4) * sizeof *sorted);
    sorted[i] = sample[i];
  }
  qsort(sorted, n, sizeof *sorted, by_value);
  const int cut = n / 4;
  double sum = 0;
  for (int i = cut; i < n - cut; i++) sum += sorted[i];
  const double place = q * (n - 1);
  const int below = (int)place;
  const double quantile = sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
  const double *found = bsearch(&sorted[below], sorted, n, sizeof *sorted, by_value);
  const double result = sum / (n - 2 * cut) + 0.1 * quantile * quantile + 0.01 * *found;
  free(sorted);
  return result;
}

int main(void) {
  enum { n = 21 };
  double sample[n], slope[n];
  for (int i = 0; i < n; i++) sample[i] = (i * 8 % 21) * 0.37 - 3 + (i == 5 ? 100 : 0);
  memset(slope, 0, sizeof slope);
  const double dq = __enzyme_autodiff((void *)location, enzyme_dup, sample, slope, enzyme_const, n, 0.33);
  const double h = 1e-6;
  expect("quantile", dq, (location(sample, n, 0.33 + h) - location(sample, n, 0.33 - h)) / (2 * h), 1e-8);
  int without = 0;
  double total = 0;
  for (int i = 0; i < n; i++) {
    const double kept = sample[i];
    sample[i] = kept + h;
    const double up = location(sample, n, 0.33);
    sample[i] = kept - h;
    const double down = location(sample, n, 0.33);
    sample[i] = kept;
    expect("sample", slope[i], (up - down) / (2 * h), 1e-8);
    without += slope[i] == 0;
    total += slope[i];
  }
  expect("the outlier has no influence", slope[5], 0, 0);
  printf("%d samples without influence\n", without);
  return wrong();
}
