"""A C++ class with containers behind an extern "C" function. Page: cookbook.md#a-c-class; lines: 41."""

import numpy as np

import irgrad as ig

lib = ig.load(r"""
#include <memory>
#include <vector>
#include <cmath>
struct Force { virtual double energy(double x) const = 0; virtual ~Force() = default; };
struct Spring : Force {
    double k;
    Spring(double k) : k(k) {}
    double energy(double x) const override { return k * x * x / 2; }
};
struct Well : Force {
    double depth;
    Well(double depth) : depth(depth) {}
    double energy(double x) const override { return -depth * std::exp(-x * x); }
};
class System {
    std::vector<std::unique_ptr<Force>> forces;
    std::vector<double> positions;
public:
    void add(std::unique_ptr<Force> f, double x) { forces.push_back(std::move(f)); positions.push_back(x); }
    double energy() const {
        double sum = 0;
        for (std::size_t i = 0; i < forces.size(); i++) sum += forces[i]->energy(positions[i]);
        return sum;
    }
};
extern "C" double energy(const double *x, const double *k, long n) {
    System system;
    for (long i = 0; i < n; i++) {
        if (i % 2) system.add(std::make_unique<Spring>(k[i]), x[i]);
        else system.add(std::make_unique<Well>(k[i]), x[i]);
    }
    return system.energy();
}""", language="c++")
energy = lib.kernel("energy", "f64(f64[n] x, f64[n] k, i64 n)")
x, k = np.array([0.5, 1.5, -0.5]), np.array([2.0, 3.0, 4.0])
by_x, by_k = ig.grad(energy, wrt=("x", "k"))(x, k)
np.testing.assert_allclose(by_x, [2 * 2 * 0.5 * np.exp(-0.25), 4.5, -4 * np.exp(-0.25)])
assert ig.check(energy, x, k)
