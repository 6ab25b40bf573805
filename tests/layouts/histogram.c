/* Counters and sums by bin: the bin of a number is known when the program runs. Pointers, and an int, beside them. */
#include <stdlib.h>

typedef struct {
  int n, counts[8];
  double sums[8];
  const double *x;
  double *squares;
  int last;
  double total;
} histogram;

static int bin(double v) { return (int)(v * 4 + 0.1); }

static void add(histogram *h, double v) {
  int b = bin(v);
  h->counts[b]++;
  h->sums[b] += v * v;
  h->last = b;
}

double loss(const double *x, long n) {
  histogram *h = calloc(1, sizeof *h);
  h->x = x;
  h->n = (int)n;
  h->squares = malloc(h->n * sizeof *h->squares);
  for (int i = 0; i < h->n; i++) {
    h->squares[i] = h->x[i] * h->x[i];
    add(h, h->x[i]);
  }
  for (int i = 0; i < h->n; i++) {
    int b = bin(h->x[i]);
    h->total += h->sums[b] * h->squares[i] / h->counts[b];
  }
  double result = h->total + h->last;
  free(h->squares);
  free(h);
  return result;
}
