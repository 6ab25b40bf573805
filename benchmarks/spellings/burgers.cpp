/* Viscous Burgers' equation by explicit central differences, two time levels that change places; half |u|^2. */
#include "spelling.h"

#if SPELLING == PLAIN
static double burgers(const double *u0, int n, int steps, double dt, double dx, double nu) {
    double *u = (double *)malloc(n * sizeof(double)), *next = (double *)malloc(n * sizeof(double)), s = 0;
    memcpy(u, u0, n * sizeof(double));
    next[0] = u[0], next[n - 1] = u[n - 1];
    double advect = dt / (2 * dx), diffuse = nu * dt / (dx * dx);
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++)
            next[i] = u[i] - advect * u[i] * (u[i + 1] - u[i - 1]) + diffuse * (u[i + 1] - 2 * u[i] + u[i - 1]);
        double *old = u;
        u = next, next = old;
    }
    for (int i = 0; i < n; i++) s += u[i] * u[i];
    free(u), free(next);
    return 0.5 * s;
}
double primal() { return burgers(in[0].flat(), size[0], size[1], real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)burgers, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_const, size[1], enzyme_const,
                      real[0], enzyme_const, real[1], enzyme_const, real[2]);
}

#elif SPELLING == VECTORS
template <class T> static void step(const std::vector<T> &u, std::vector<T> &next, double advect, double diffuse) {
    for (size_t i = 1; i + 1 < u.size(); i++)
        next[i] = u[i] - advect * u[i] * (u[i + 1] - u[i - 1]) + diffuse * (u[i + 1] - 2 * u[i] + u[i - 1]);
}
template <class T> static T burgers(const std::vector<T> &u0, int steps, double dt, double dx, double nu) {
    std::vector<T> u = u0, next = u0;
    for (int t = 0; t < steps; t++) {
        step(u, next, dt / (2 * dx), nu * dt / (dx * dx));
        std::swap(u, next);
    }
    T s = 0;
    for (const T &item : u) s += item * item;
    return 0.5 * s;
}
double primal() { return burgers<double>(in[0].vec(), size[1], real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)burgers<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_const, size[1],
                      enzyme_const, real[0], enzyme_const, real[1], enzyme_const, real[2]);
}

#elif SPELLING == STRUCTS
struct Solver {
    double *u, *next, advect, diffuse;
    int n;
    void step() {
        for (int i = 1; i < n - 1; i++)
            next[i] = u[i] - advect * u[i] * (u[i + 1] - u[i - 1]) + diffuse * (u[i + 1] - 2 * u[i] + u[i - 1]);
        std::swap(u, next);
    }
    double half_energy() const {
        double s = 0;
        for (int i = 0; i < n; i++) s += u[i] * u[i];
        return 0.5 * s;
    }
};
static double burgers(const double *u0, int n, int steps, double dt, double dx, double nu) {
    Solver solver = {new double[n], new double[n], dt / (2 * dx), nu * dt / (dx * dx), n};
    for (int i = 0; i < n; i++) solver.u[i] = solver.next[i] = u0[i];
    for (int t = 0; t < steps; t++) solver.step();
    double result = solver.half_energy();
    delete[] solver.u;
    delete[] solver.next;
    return result;
}
double primal() { return burgers(in[0].flat(), size[0], size[1], real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)burgers, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_const, size[1], enzyme_const,
                      real[0], enzyme_const, real[1], enzyme_const, real[2]);
}

#elif SPELLING == ROWS
static double burgers(const double *u0, int n, int steps, double dt, double dx, double nu) {
    double *levels[2] = {(double *)malloc(n * sizeof(double)), (double *)malloc(n * sizeof(double))}, s = 0;
    for (int i = 0; i < n; i++) levels[0][i] = levels[1][i] = u0[i];
    double advect = dt / (2 * dx), diffuse = nu * dt / (dx * dx);
    for (int t = 0; t < steps; t++) {
        double *u = levels[t % 2], *next = levels[(t + 1) % 2];
        for (int i = 1; i < n - 1; i++)
            next[i] = u[i] - advect * u[i] * (u[i + 1] - u[i - 1]) + diffuse * (u[i + 1] - 2 * u[i] + u[i - 1]);
    }
    for (int i = 0; i < n; i++) s += levels[steps % 2][i] * levels[steps % 2][i];
    free(levels[0]), free(levels[1]);
    return 0.5 * s;
}
double primal() { return burgers(in[0].flat(), size[0], size[1], real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)burgers, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_const, size[1], enzyme_const,
                      real[0], enzyme_const, real[1], enzyme_const, real[2]);
}

#elif SPELLING == CELLS
static void burgers(const double *u0, int n, int steps, double dt, double dx, double nu, double *out) {
    double *u = (double *)malloc(n * sizeof(double)), *next = (double *)malloc(n * sizeof(double));
    for (int i = n - 1; i >= 0; i--) u[i] = u0[i];
    double advect = dt / (2 * dx), diffuse = nu * dt / (dx * dx);
    while (steps-- > 0) {
        for (int i = 0; i < n; i++) {
            next[i] = u[i];
            if (i == 0 || i == n - 1) continue;
            next[i] -= advect * u[i] * (u[i + 1] - u[i - 1]);
            next[i] += diffuse * (u[i + 1] - 2 * u[i] + u[i - 1]);
        }
        memcpy(u, next, n * sizeof(double));
    }
    *out = 0;
    for (int i = n - 1; i >= 0; i--) *out += 0.5 * u[i] * u[i];
    free(u), free(next);
}
double primal() {
    double out;
    burgers(in[0].flat(), size[0], size[1], real[0], real[1], real[2], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)burgers, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_const, size[1], enzyme_const,
                      real[0], enzyme_const, real[1], enzyme_const, real[2], enzyme_dupnoneed, &out, &seed);
}
#endif
