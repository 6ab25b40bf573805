#include "orbit.h"
static void pull(const struct body *b, double mass, double *force) {
  double r = norm(b->at), f = -mass / (r * r * r);
  for (int i = 0; i < 3; i++) force[i] = f * b->at[i];
}
void advance(struct body *b, double mass, double dt, int steps) {
  double force[3];
  pull(b, mass, force);
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < 3; i++) b->at[i] += dt * (b->speed[i] += 0.5 * dt * force[i]);
    pull(b, mass, force);
    for (int i = 0; i < 3; i++) b->speed[i] += 0.5 * dt * force[i];
  }
}
double miss(const double *speed, const double *target, double mass) {
  struct body b = {{1, 0, 0}, {speed[0], speed[1], speed[2]}};
  advance(&b, mass, 0.01, 150);
  double sum = 0;
  for (int i = 0; i < 3; i++) sum += (b.at[i] - target[i]) * (b.at[i] - target[i]);
  return sum;
}
