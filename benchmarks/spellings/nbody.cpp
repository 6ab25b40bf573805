/* Gravitational potential energy of n bodies, softened. */
#include "spelling.h"

#if SPELLING == PLAIN
static double energy(const double *pos, const double *mass, int n) {
    double e = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            double r = 1e-4;
            for (int l = 0; l < 3; l++) r += (pos[3 * i + l] - pos[3 * j + l]) * (pos[3 * i + l] - pos[3 * j + l]);
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
double primal() { return energy(in[0].flat(), in[1].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)energy, enzyme_dup, FLAT(0), enzyme_const, in[1].flat(), enzyme_const, size[0]); }

#elif SPELLING == VECTORS
template <class T> static T pair(const Matrix<T> &pos, const std::vector<T> &mass, int i, int j) {
    T r = 1e-4;
    for (int l = 0; l < 3; l++) {
        T delta = pos(i, l) - pos(j, l);
        r += delta * delta;
    }
    return mass[i] * mass[j] / sqrt(r);
}
template <class T> static T energy(const Matrix<T> &pos, const std::vector<T> &mass) {
    T e = 0;
    for (int i = 0; i < pos.rows; i++)
        for (int j = 0; j < i; j++) e -= pair(pos, mass, i, j);
    return e;
}
double primal() { return energy<double>(in[0].matrix, in[1].vec()); }
void gradient() {
    __enzyme_autodiff((void *)energy<double>, enzyme_dup, &in[0].matrix, &grad[0].matrix, enzyme_const, &in[1].vec());
}

#elif SPELLING == STRUCTS
struct Vec {
    double x, y, z;
    Vec operator-(const Vec &o) const { return {x - o.x, y - o.y, z - o.z}; }
    double dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
};
struct System {
    const Vec *pos;
    int n;
    double energy(const double *mass) const {
        double e = 0;
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++) {
                Vec r = pos[i] - pos[j];
                e -= mass[i] * mass[j] / sqrt(r.dot(r) + 1e-4);
            }
        return e;
    }
};
static double energy(const System *system, const double *mass) { return system->energy(mass); }
static System make(Array *from) { return {(const Vec *)from[0].flat(), size[0]}; }
double primal() {
    System system = make(in);
    return energy(&system, in[1].flat());
}
void gradient() {
    System system = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)energy, enzyme_dup, &system, &shadow, enzyme_const, in[1].flat());
}

#elif SPELLING == ROWS
static double energy(double **pos, const double *mass, int n) {
    double e = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            double dx = pos[i][0] - pos[j][0], dy = pos[i][1] - pos[j][1], dz = pos[i][2] - pos[j][2];
            e -= mass[i] * mass[j] / sqrt(dx * dx + dy * dy + dz * dz + 1e-4);
        }
    return e;
}
double primal() { return energy(in[0].rows(), in[1].flat(), size[0]); }
void gradient() {
    __enzyme_autodiff((void *)energy, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[1].flat(), enzyme_const,
                      size[0]);
}

#elif SPELLING == CELLS
static void energy(const double *pos, const double *mass, int n, double *e) {
    *e = 0;
    for (int i = n - 1; i >= 0; i--) {
        int j = n;
        while (j-- > 0) {
            if (j >= i) continue;
            double dx = pos[3 * i] - pos[3 * j], dy = pos[3 * i + 1] - pos[3 * j + 1], dz = pos[3 * i + 2] - pos[3 * j + 2];
            *e -= mass[i] * mass[j] / sqrt(dx * dx + dy * dy + dz * dz + 1e-4);
        }
    }
}
double primal() {
    double out;
    energy(in[0].flat(), in[1].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)energy, enzyme_dup, FLAT(0), enzyme_const, in[1].flat(), enzyme_const, size[0],
                      enzyme_dupnoneed, &out, &seed);
}
#endif
