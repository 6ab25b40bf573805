// A workspace for each thread, which a constructor makes and the function grows.
#include <vector>
struct workspace { std::vector<double> rows; double scale = 2; };
static workspace &mine() { static thread_local workspace w; return w; }
extern "C" double loss(const double *x, long n) {
  workspace &w = mine();
  if ((long)w.rows.size() < 2 * n) w.rows.resize(2 * n);
  for (long i = 0; i < n; i++) { w.rows[i] = x[i] * x[(i + 1) % n] * w.scale; w.rows[n + i] = w.rows[i] * x[0]; }
  double s = 0;
  for (long i = 0; i < 2 * n; i++) s += w.rows[i] * w.rows[(i + 3) % (2 * n)];
  return s;
}
