// An optional variant, handed on from turn to turn: an int lies over the bytes of a double.
#include <cmath>
#include <optional>
#include <variant>
struct Flat { double c; };
struct Line { int a; double b; };
struct Bend { int power; };
using Curve = std::variant<Flat, Line, Bend>;
struct At { double t; double operator()(const Flat &f) const { return f.c * f.c; }
  double operator()(const Line &l) const { return l.a + l.b * t * l.b; }
  double operator()(const Bend &b) const { return std::pow(t, b.power); } };
static std::optional<Curve> step(const std::optional<Curve> &p, double v, int i) {
  if (!p) return Flat{v};
  if (std::holds_alternative<Flat>(*p)) return Line{i, std::get<Flat>(*p).c * v};
  if (auto *l = std::get_if<Line>(&*p)) { if (i > 3) return std::nullopt; return Bend{l->a}; }
  return Flat{v * std::get<Bend>(*p).power};
}
extern "C" double loss(const double *x, long n) {
  std::optional<Curve> p;
  double s = 0.3;
  for (int i = 0; i < n; i++) {
    p = step(p, x[i], i);
    if (p) s += std::visit(At{s + x[i]}, *p);
  }
  return s;
}
