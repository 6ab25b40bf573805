/* Static and file-scope workspaces. */
#include <math.h>
static struct { int calls; double buffer[64]; int used; } state;
static double table[8][8];
static double smooth(const double *x, int n) {
  static double previous[64];
  state.used = n;
  for (int i = 0; i < n; i++) { state.buffer[i] = x[i] * x[i]; previous[i] = i ? 0.5 * (state.buffer[i] + previous[i - 1]) : state.buffer[i]; }
  for (int i = 0; i < n && i < 8; i++) for (int j = 0; j < 8; j++) table[i][j] = previous[i] * (j + 1);
  double s = 0;
  for (int i = 0; i < state.used; i++) s += previous[i] * cos(state.buffer[i]);
  for (int j = 0; j < 8; j++) s += table[j % (n < 8 ? n : 8)][j];
  return s;
}
double loss(const double *x, long n) { state.calls = 1; return smooth(x, (int)n) * state.calls; }
