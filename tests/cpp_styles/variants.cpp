// Variants of three structs in a growing vector, told apart by a visitor.
#include <cmath>
#include <variant>
#include <vector>
struct Circle {
  double r;
};
struct Rect {
  double w, h;
};
struct Tri {
  double a, b, c;
};
using Shape = std::variant<Circle, Rect, Tri>;
extern "C" double loss(const double *x, long n) {
  std::vector<Shape> shapes;
  for (int i = 0; i < n; i++)
    if (i % 3 == 0)
      shapes.push_back(Circle{x[i]});
    else if (i % 3 == 1)
      shapes.push_back(Rect{x[i], x[i - 1]});
    else
      shapes.push_back(Tri{x[i], x[i - 1], x[i - 2]});
  double s = 0;
  for (auto &sh : shapes)
    s += std::visit(
        [](auto &v) -> double {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Circle>)
            return 3.14 * v.r * v.r;
          else if constexpr (std::is_same_v<T, Rect>)
            return v.w * v.h;
          else
            return std::sin(v.a) * v.b + v.c;
        },
        sh);
  return s;
}
