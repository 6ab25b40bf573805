#include <cloth/cloth.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
int main(int argc, char **argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 10;
  auto mesh = cloth::square(5);
  auto first = cloth::springs(mesh, 3.0), second = cloth::gravity(0.05);
  const cloth::Force *forces[] = {first.get(), second.get()};
  int n = (int)mesh.at.size();
  std::vector<double> at;
  for (auto p : mesh.at) at.insert(at.end(), {1.1 * p.x + 0.01 * p.y, 0.9 * p.y});
  double before = cloth::energy(forces, 2, at.data(), n), worst = 0;
  for (int t = 0; t < steps; t++) {
    std::vector<double> slope(at.size());
    cloth::gradient(forces, 2, at.data(), slope.data(), n);
    for (size_t i = 0; t == 0 && i < at.size(); i++) {
      double kept = at[i], h = 1e-6;
      at[i] = kept + h; double more = cloth::energy(forces, 2, at.data(), n);
      at[i] = kept - h; double less = cloth::energy(forces, 2, at.data(), n);
      at[i] = kept;
      worst = std::fmax(worst, std::fabs((more - less) / (2 * h) - slope[i]));
    }
    for (size_t i = 0; i < at.size(); i++) at[i] -= 0.05 * slope[i];
  }
  double after = cloth::energy(forces, 2, at.data(), n);
  std::printf("%s %.6f %.6f %.2e\n", after < before && worst < 1e-7 ? "relaxed" : "wrong", before, after, worst);
}
