// Expression templates that know what they are (CRTP).
#include <cmath>
#include <cstddef>
#include <vector>
template <class D> struct Expr {
  const D &self() const { return static_cast<const D &>(*this); }
  double operator[](size_t i) const { return self()[i]; }
  size_t size() const { return self().size(); }
};
struct Vec : Expr<Vec> {
  std::vector<double> d;
  explicit Vec(size_t n) : d(n) {}
  template <class E> Vec(const Expr<E> &e) : d(e.size()) {
    for (size_t i = 0; i < d.size(); i++) d[i] = e.self()[i];
  }
  template <class E> Vec &operator+=(const Expr<E> &e) {
    for (size_t i = 0; i < d.size(); i++) d[i] += e.self()[i];
    return *this;
  }
  double operator[](size_t i) const { return d[i]; }
  double &operator[](size_t i) { return d[i]; }
  size_t size() const { return d.size(); }
};
template <class A, class B> struct Sum : Expr<Sum<A, B>> {
  const A &a;
  const B &b;
  Sum(const A &a, const B &b) : a(a), b(b) {}
  double operator[](size_t i) const { return a[i] + b[i]; }
  size_t size() const { return a.size(); }
};
template <class A, class B> struct Mul : Expr<Mul<A, B>> {
  const A &a;
  const B &b;
  Mul(const A &a, const B &b) : a(a), b(b) {}
  double operator[](size_t i) const { return a[i] * b[i]; }
  size_t size() const { return a.size(); }
};
template <class A> struct Sin : Expr<Sin<A>> {
  const A &a;
  explicit Sin(const A &a) : a(a) {}
  double operator[](size_t i) const { return std::sin(a[i]); }
  size_t size() const { return a.size(); }
};
template <class A, class B> Sum<A, B> operator+(const Expr<A> &a, const Expr<B> &b) { return {a.self(), b.self()}; }
template <class A, class B> Mul<A, B> operator*(const Expr<A> &a, const Expr<B> &b) { return {a.self(), b.self()}; }
extern "C" double loss(const double *x, long n) {
  Vec a(n), b(n);
  for (long i = 0; i < n; i++) {
    a[i] = x[i];
    b[i] = x[n - 1 - i] * x[i];
  }
  Vec c = a * b + a;
  c += Sin<Vec>(c) * b;
  Vec e = c * c + b;
  double s = 0;
  for (long i = 0; i < n; i++) s += e[i] * (i + 1);
  return s;
}
