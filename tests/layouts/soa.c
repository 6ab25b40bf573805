/* Structure of arrays: all arrays of a particle system in one block, integers among the floats, by offset. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  long n;
  double *px, *py, *vx, *vy;
  int *kind;
  float *charge;
  long *next;
  double *mass;
} particles;

static size_t bytes(long n) { return n * (5 * sizeof(double) + sizeof(int) + sizeof(float) + sizeof(long)) + 64; }

static particles make(long n) {
  particles p;
  char *block = malloc(bytes(n));
  p.n = n;
  p.px = (double *)block; block += n * sizeof(double);
  p.py = (double *)block; block += n * sizeof(double);
  p.next = (long *)block; block += n * sizeof(long);
  p.vx = (double *)block; block += n * sizeof(double);
  p.vy = (double *)block; block += n * sizeof(double);
  p.mass = (double *)block; block += n * sizeof(double);
  p.kind = (int *)block; block += n * sizeof(int);
  p.charge = (float *)block;
  return p;
}

static void step(particles *p, double dt) {
  for (long i = 0; i < p->n; i++) {
    double k = p->kind[i] == 1 ? 0.5 : 1.5;
    long j = p->next[i];
    double dx = p->px[j] - p->px[i], dy = p->py[j] - p->py[i];
    p->vx[i] += dt * (k * dx / p->mass[i] - 0.1 * p->charge[i] * p->py[i]);
    p->vy[i] += dt * (k * dy / p->mass[i] + 0.1 * p->charge[i] * p->px[i]);
  }
  for (long i = 0; i < p->n; i++) {
    p->px[i] += dt * p->vx[i];
    p->py[i] += dt * p->vy[i];
    p->kind[i] = 1 - p->kind[i];
  }
}

double loss(const double *x, long n) {
  particles p = make(n);
  for (long i = 0; i < n; i++) {
    p.px[i] = x[i];
    p.py[i] = sin(x[(i + 1) % n]);
    p.vx[i] = 0.1 * i;
    p.vy[i] = -0.2 * x[i];
    p.mass[i] = 1.0 + x[i] * x[i];
    p.charge[i] = (float)(0.3 + 0.1 * i);
    p.kind[i] = i % 2;
    p.next[i] = (i + 1) % n;
  }
  for (int t = 0; t < 5; t++) step(&p, 0.05);
  double sum = 0;
  for (long i = 0; i < n; i++) sum += p.px[i] * p.py[i] + 0.5 * p.mass[i] * (p.vx[i] * p.vx[i] + p.vy[i] * p.vy[i]);
  free(p.px);
  return sum;
}
