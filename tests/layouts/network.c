/* A network in one block: a header with a size that nobody reads again, and behind it the weights and the outputs, which
   begin where the sizes say. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef struct { int sources, links; double *link, *level; } network;
__attribute__((noinline)) static network *network_new(int sources, int links) {
  network *net = malloc(sizeof *net + (links + sources) * sizeof(double));
  net->sources = sources; net->links = links;
  net->link = (double *)(net + 1);
  net->level = net->link + net->links;
  return net;
}
__attribute__((noinline)) static const double *fire(const network *net, const double *stimulus) {
  memcpy(net->level, stimulus, net->sources * sizeof(double));
  double sum = 0;
  for (int i = 0; i < net->sources; i++) sum += net->level[i] * net->link[i];
  net->level[0] = tanh(sum);
  return net->level;
}
double loss(const double *x, long n) {
  double stimulus[16];
  for (int i = 0; i < 16; i++) stimulus[i] = 1.0 / (i + 2);
  network *net = network_new((int)n, (int)n);
  memcpy(net->link, x, n * sizeof(double));
  double out = *fire(net, stimulus);
  free(net);
  return out;
}
