#pragma once
#include <memory>
#include <vector>
#define CLOTH_API __attribute__((visibility("default")))
namespace cloth {
struct Vec { double x, y; };
struct Mesh { std::vector<Vec> at; std::vector<std::pair<int, int>> edges; };
CLOTH_API Mesh square(int side);
struct CLOTH_API Force {
  virtual ~Force() = default;
  virtual double energy(const double *at, int n) const = 0;
};
CLOTH_API std::unique_ptr<Force> springs(const Mesh &mesh, double stiffness);
CLOTH_API std::unique_ptr<Force> gravity(double g);
CLOTH_API double energy(const Force *const *forces, int count, const double *at, int n);
CLOTH_API void gradient(const Force *const *forces, int count, const double *at, double *slope, int n);
}
