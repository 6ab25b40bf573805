/* Checkpointing by hand, in split mode: a long simulation is swept backwards a segment at a time, each with a tape of its
 * own, so that only one segment's tape exists at once. */
#include "check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
void *__enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);

enum { n = 24, segment = 50, segments = 8 };

/* A ring of coupled pendulums; `state` holds angles, then velocities. */
static void advance(double *state, const double *coupling, int steps) {
  const double h = 0.01;
  double *angle = state, *velocity = state + n;
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n; i++) {
      const double left = angle[(i + n - 1) % n] - angle[i], right = angle[(i + 1) % n] - angle[i];
      velocity[i] += h * (coupling[i] * left + coupling[(i + 1) % n] * right - sin(angle[i]));
    }
    for (int i = 0; i < n; i++) angle[i] += h * velocity[i];
  }
}

static double energy(const double *state) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += 0.5 * state[n + i] * state[n + i] + 1 - cos(state[i]);
  return sum;
}

static double at_once(const double *start, const double *coupling) {
  double state[2 * n];
  memcpy(state, start, sizeof state);
  advance(state, coupling, segment * segments);
  return energy(state);
}

int main(void) {
  double start[2 * n], coupling[n];
  for (int i = 0; i < n; i++) {
    start[i] = 0.5 * sin(i * 0.9);
    start[n + i] = 0.1 * cos(i * 0.4);
    coupling[i] = 1 + 0.3 * sin(i * 1.7);
  }

  /* Forward, keeping the state where each segment begins. */
  double saved[segments][2 * n], state[2 * n];
  memcpy(state, start, sizeof state);
  for (int k = 0; k < segments; k++) {
    memcpy(saved[k], state, sizeof state);
    advance(state, coupling, segment);
  }
  /* Backwards: run a segment again with its tape, then reverse it. */
  double d_state[2 * n] = {0}, d_coupling[n] = {0};
  __enzyme_autodiff((void *)energy, enzyme_dup, state, d_state);
  for (int k = segments; k-- > 0;) {
    memcpy(state, saved[k], sizeof state);
    void *tape = __enzyme_augmentfwd((void *)advance, enzyme_dup, state, d_state, enzyme_dup, coupling, d_coupling,
                                     enzyme_const, segment);
    memset(state, 0, sizeof state); /* the tape holds what is needed */
    __enzyme_reverse((void *)advance, enzyme_dup, state, d_state, enzyme_dup, coupling, d_coupling, enzyme_const,
                     segment, tape);
  }

  double whole_state[2 * n] = {0}, whole_coupling[n] = {0};
  __enzyme_autodiff((void *)at_once, enzyme_dup, start, whole_state, enzyme_dup, coupling, whole_coupling);
  for (int i = 0; i < 2 * n; i++) expect("state", d_state[i], whole_state[i], 1e-12);
  for (int i = 0; i < n; i++) expect("coupling", d_coupling[i], whole_coupling[i], 1e-12);
  for (int i = 0; i < n; i += 5) {
    const double h = 1e-5, kept = coupling[i];
    coupling[i] = kept + h;
    const double up = at_once(start, coupling);
    coupling[i] = kept - h;
    const double down = at_once(start, coupling);
    coupling[i] = kept;
    expect("coupling by differences", d_coupling[i], (up - down) / (2 * h), 1e-7);
  }
  printf("%d segments of %d steps\n", segments, segment);
  return wrong();
}
