#include "selfcheck.h"
#include <vector>
struct Moments {
  double sum = 0, square = 0;
  void add(double v) { sum += v, square += v * v; }
  Moments &operator+=(const Moments &other) {
    sum += other.sum, square += other.square;
    return *this;
  }
};
#pragma omp declare reduction(+ : Moments : omp_out += omp_in)
struct Scale {
  double by;
  Scale(double by) : by(by) {}
  Scale(const Scale &other) : by(other.by) {}
  ~Scale() {}
};
extern "C" double f(const double *x, double *y, int n) {
  Moments m;
  Scale scale(x[0]);
  std::vector<double> own(x, x + n);
#pragma omp parallel for reduction(+ : m) firstprivate(scale)
  for (int i = 0; i < n; i++) m.add(own[i] * scale.by);
#pragma omp parallel
  {
#pragma omp single
    {
#pragma omp task firstprivate(scale)
      y[0] = scale.by * m.sum;
    }
  }
  return m.square - m.sum * m.sum / n;
}
