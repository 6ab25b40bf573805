// Variants of a double, an int and a vector in a vector that grows.
#include <cmath>
#include <variant>
#include <vector>
using Value = std::variant<double, int, std::vector<double>>;
extern "C" double loss(const double *x, long n) {
  std::vector<Value> row;
  for (int i = 0; i < n; i++) switch (i % 3) {
    case 0:
      row.emplace_back(x[i] * x[i]);
      break;
    case 1:
      row.emplace_back(i);
      break;
    default:
      row.emplace_back(std::vector<double>{x[i], x[i - 1], std::sin(x[i])});
    }
  double s = 0;
  for (size_t i = 0; i < row.size(); i++) {
    if (auto *d = std::get_if<double>(&row[i]))
      s += std::exp(*d);
    else if (auto *k = std::get_if<int>(&row[i]))
      s += *k * x[0];
    else
      for (double v : std::get<std::vector<double>>(row[i])) s += v * v;
  }
  return s;
}
