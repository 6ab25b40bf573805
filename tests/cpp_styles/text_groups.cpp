// A hash table whose keys are texts that grow at both ends; its hash reads them word by word.
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>
extern "C" double loss(const double *x, long n) {
  std::unordered_map<std::string, std::vector<double>> groups;
  for (int i = 0; i < n; i++) {
    std::string key = "g";
    key += char('a' + i % 3);
    key.append("-suffix");
    key.insert(0, "pre:");
    groups[key].push_back(x[i]);
  }
  double s = 0;
  for (auto &[key, values] : groups) {
    double m = 0;
    for (double d : values) m += d * d;
    s += std::sqrt(m) * key.size();
  }
  return s;
}
