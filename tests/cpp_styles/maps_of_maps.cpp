// Containers in containers whose nodes hold strings beside other containers: maps of numbers, of lists and of functions
// in one structure, hash tables of structures with a map and a hash table in them, copied and moved.
#include <cmath>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
namespace {
struct Model {
  std::map<std::string, double> values;
  std::map<std::string, std::list<double>> series;
  std::map<std::string, std::function<double(double)>> laws;
};
struct Part {
  double weight = 0;
  std::map<int, double> ordered;
  std::unordered_map<int, double> hashed;
  double first() const { return ordered.empty() ? 0.3 : ordered.begin()->second; }
};
double of_model(const double *x, long n) {
  Model m;
  for (long i = 0; i < n; i++) {
    m.values["coefficient_number_" + std::to_string(i)] = x[i];
    m.series["a series with a long name " + std::to_string(i % 3)].push_back(x[i] * x[i]);
  }
  double k = x[0];
  m.laws["quadratic"] = [k](double t) { return k * t * t; };
  m.laws["a cubic law with a long name"] = [](double t) { return t * t * t; };
  double s = 0;
  for (auto &[name, v] : m.values)
    for (auto &[law, g] : m.laws) s += g(v) * (name.size() % 3 + law.size());
  for (auto &[name, l] : m.series) {
    double p = 1;
    for (double y : l) p *= y;
    s += p * name.size();
  }
  return s;
}
double of_parts(const double *x, long n) {
  std::unordered_map<int, Part> parts;
  for (int i = 0; i < 3; i++) {
    Part part;
    part.weight = std::exp(-x[i % n]);
    std::unordered_map<int, double> fresh;
    for (int j = 0; j < n; j++) {
      part.ordered[(2 * j) % 4] = x[j] * x[i];
      fresh[j % 4] = x[(i + j) % n];
    }
    part.hashed = std::move(fresh);
    parts.insert_or_assign(i, part);
  }
  auto copies = parts;
  if (copies.count(2)) copies.at(2).ordered.begin()->second = std::sin(x[1]) * x[2];
  parts = std::move(copies);
  double s = 0;
  for (auto &[key, part] : parts) {
    s = 0.9 * s + part.weight * part.first();
    for (auto &[k, v] : part.ordered) s += std::sin(v) * (1 + k);
    for (auto &[k, v] : part.hashed) s = 0.9 * s + v * x[0] + 0.01 * k;
  }
  return s;
}
}
extern "C" double loss(const double *x, long n) { return of_model(x, n) + of_parts(x, n); }
