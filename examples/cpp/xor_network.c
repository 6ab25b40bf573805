/* A network of one hidden layer in C, its weights in a struct, learns exclusive or. Adam by hand. */
#include "check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);

enum { inputs = 2, hidden = 6 };
typedef struct {
  double in[hidden][inputs], bias[hidden], out[hidden], offset;
} Network;
typedef struct {
  const double (*x)[inputs];
  const double *y;
  int count;
} Data;

static double predict(const Network *net, const double *x) {
  double sum = net->offset;
  for (int i = 0; i < hidden; i++) {
    double a = net->bias[i];
    for (int j = 0; j < inputs; j++) a += net->in[i][j] * x[j];
    sum += net->out[i] * tanh(a);
  }
  return 1 / (1 + exp(-sum));
}

static double cross_entropy(const Network *net, const Data *data) {
  double *p = malloc(data->count * sizeof *p), sum = 0;
  for (int i = 0; i < data->count; i++) p[i] = predict(net, data->x[i]);
  for (int i = 0; i < data->count; i++) sum -= data->y[i] * log(p[i]) + (1 - data->y[i]) * log(1 - p[i]);
  free(p);
  return sum / data->count;
}

static void adam(Network *net, const Network *slope, Network *mean, Network *square, int round) {
  double *w = (double *)net, *m = (double *)mean, *v = (double *)square;
  const double *g = (const double *)slope;
  for (size_t i = 0; i < sizeof *net / sizeof *w; i++) {
    m[i] = 0.9 * m[i] + 0.1 * g[i];
    v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
    w[i] -= 0.05 * (m[i] / (1 - pow(0.9, round))) / (sqrt(v[i] / (1 - pow(0.999, round))) + 1e-8);
  }
}

int main(void) {
  const double x[4][inputs] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, y[4] = {0, 1, 1, 0};
  const Data data = {x, y, 4};
  Network net, slope, mean, square;
  memset(&mean, 0, sizeof mean);
  memset(&square, 0, sizeof square);
  double *w = (double *)&net;
  const int count = sizeof net / sizeof *w;
  for (int i = 0; i < count; i++) w[i] = sin(2.3 * i + 0.4);

  for (int round = 1; round <= 400; round++) {
    memset(&slope, 0, sizeof slope);
    __enzyme_autodiff((void *)cross_entropy, enzyme_dup, &net, &slope, enzyme_const, &data);
    if (round == 1)
      for (int i = 0; i < count; i++) {
        const double h = 1e-5, kept = w[i];
        w[i] = kept + h;
        const double up = cross_entropy(&net, &data);
        w[i] = kept - h;
        const double down = cross_entropy(&net, &data);
        w[i] = kept;
        expect("weight", ((double *)&slope)[i], (up - down) / (2 * h), 1e-8);
      }
    adam(&net, &slope, &mean, &square, round);
  }
  for (int i = 0; i < 4; i++) printf("%g xor %g: %.0f\n", x[i][0], x[i][1], predict(&net, x[i]));
  return wrong();
}
