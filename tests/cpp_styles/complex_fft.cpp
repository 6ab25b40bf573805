// A Fourier transform of valarrays of complex numbers with slices; functions of them.
#include <cmath>
#include <complex>
#include <valarray>
#include <vector>
using C = std::complex<double>;
static void fft(std::valarray<C> &a) {
  size_t n = a.size();
  if (n <= 1) return;
  std::valarray<C> e = a[std::slice(0, n / 2, 2)], o = a[std::slice(1, n / 2, 2)];
  fft(e);
  fft(o);
  for (size_t k = 0; k < n / 2; k++) {
    C t = std::polar(1.0, -2 * M_PI * k / n) * o[k];
    a[k] = e[k] + t;
    a[k + n / 2] = e[k] - t;
  }
}
extern "C" double loss(const double *x, long n) {
  std::valarray<C> a(8);
  for (int i = 0; i < 8; i++) a[i] = C(x[i % n], x[(i * 3 + 1) % n] * (i > 5));
  fft(a);
  double s = 0;
  for (int i = 0; i < 8; i++) s += std::norm(a[i]) * i + std::abs(a[i] + C(0.1, 2.0)) + std::real(std::exp(a[i] * 0.1));
  std::valarray<double> v(x, n);
  v = std::sin(v) * v + 2.0;
  v[std::slice(0, 3, 2)] *= std::valarray<double>(v[std::slice(1, 3, 2)]);
  return s + (v * v).sum() + v.max();
}
