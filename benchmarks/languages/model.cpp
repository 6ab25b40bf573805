#include <array>
#include <cmath>
#include <vector>

using State = std::array<double, 3>;

extern "C" double energy(const State *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (std::size_t k = 0; k < 3; k++) r += (pos[i][k] - pos[j][k]) * (pos[i][k] - pos[j][k]);
            e -= mass[i] * mass[j] / std::sqrt(r);
        }
    return e;
}

static State slope(const State &y) {
    return {10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3 * y[2]};
}

extern "C" void rk4(State &y, double h, long steps) {
    for (long s = 0; s < steps; s++) {
        std::array<State, 4> k;
        k[0] = slope(y);
        for (std::size_t m = 1; m < 4; m++) {
            const double w = m == 3 ? h : h / 2;
            State t;
            for (std::size_t i = 0; i < 3; i++) t[i] = y[i] + w * k[m - 1][i];
            k[m] = slope(t);
        }
        for (std::size_t i = 0; i < 3; i++) y[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}

extern "C" void diffuse(const double *u, double *v, long n) {
    std::vector<double> flux(n);
    for (long i = 1; i < n - 1; i++) flux[i] = 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * std::exp(-u[i]);
    for (long i = 0; i < n; i++) v[i] = u[i] + flux[i];
}
