// A map whose keys are texts that are put together: short ones lie in the nodes, in place of a pointer.
#include <cmath>
#include <map>
#include <string>
extern "C" double loss(const double *x, long n) {
  std::map<std::string, double> p;
  for (int i = 0; i < n; i++) p["k" + std::to_string(i)] = x[i] * x[i];
  double s = 0;
  for (int i = 0; i < n; i++) s += std::sin(p["k" + std::to_string((i * 5) % n)]) * p.at("k" + std::to_string(i));
  for (auto &[k, v] : p) s += v * k.size();
  return s;
}
