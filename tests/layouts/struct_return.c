/* Structs as results and arguments, in registers and in memory. */
typedef struct {
  double v;
  int k;
  float f;
} R;
typedef struct {
  double a, b, c;
  long n;
} Q;
__attribute__((noinline)) static R mk(double v, int k) {
  R r = {v * v, k, 0.5f};
  return r;
}
__attribute__((noinline)) static Q mq(R r, double y) {
  Q q = {r.v * y, r.v + y, y * r.k, r.k};
  return q;
}
double loss(const double *x, long n) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    R r = mk(x[i], i + 1);
    Q q = mq(r, x[(i + 1) % n]);
    s += q.a * q.b + q.c * q.n * r.f;
  }
  return s;
}
