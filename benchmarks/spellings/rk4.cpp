/* The Lorenz system by the classical Runge-Kutta method; half the squared norm of the last state. */
#include "spelling.h"

#if SPELLING == PLAIN
static void slope(const double *y, const double *par, double *dy) {
    dy[0] = par[0] * (y[1] - y[0]);
    dy[1] = y[0] * (par[1] - y[2]) - y[1];
    dy[2] = y[0] * y[1] - par[2] * y[2];
}
static double rk4(const double *y0, const double *par, int steps, double dt) {
    double y[3], at[3], k[4][3], s = 0;
    memcpy(y, y0, sizeof y);
    for (int t = 0; t < steps; t++) {
        slope(y, par, k[0]);
        for (int i = 0; i < 3; i++) at[i] = y[i] + 0.5 * dt * k[0][i];
        slope(at, par, k[1]);
        for (int i = 0; i < 3; i++) at[i] = y[i] + 0.5 * dt * k[1][i];
        slope(at, par, k[2]);
        for (int i = 0; i < 3; i++) at[i] = y[i] + dt * k[2][i];
        slope(at, par, k[3]);
        for (int i = 0; i < 3; i++) y[i] += dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
    for (int i = 0; i < 3; i++) s += y[i] * y[i];
    return 0.5 * s;
}
double primal() { return rk4(in[0].flat(), in[1].flat(), size[0], real[0]); }
void gradient() {
    __enzyme_autodiff((void *)rk4, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_const, real[0]);
}

#elif SPELLING == VECTORS
template <class T> struct Lorenz {
    const std::vector<T> &par;
    void operator()(const std::vector<T> &y, std::vector<T> &dy) const {
        dy[0] = par[0] * (y[1] - y[0]);
        dy[1] = y[0] * (par[1] - y[2]) - y[1];
        dy[2] = y[0] * y[1] - par[2] * y[2];
    }
};
template <class T, class F> struct Stepper {
    F system;
    std::vector<T> k1, k2, k3, k4, at;
    Stepper(F system, size_t n) : system(system), k1(n), k2(n), k3(n), k4(n), at(n) {}
    void move(const std::vector<T> &y, const std::vector<T> &k, double by) {
        for (size_t i = 0; i < y.size(); i++) at[i] = y[i] + by * k[i];
    }
    void step(std::vector<T> &y, double dt) {
        system(y, k1);
        move(y, k1, 0.5 * dt);
        system(at, k2);
        move(y, k2, 0.5 * dt);
        system(at, k3);
        move(y, k3, dt);
        system(at, k4);
        for (size_t i = 0; i < y.size(); i++) y[i] += dt / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
};
template <class T> static T rk4(const std::vector<T> &y0, const std::vector<T> &par, int steps, double dt) {
    std::vector<T> y = y0;
    Stepper<T, Lorenz<T>> stepper(Lorenz<T>{par}, y.size());
    for (int t = 0; t < steps; t++) stepper.step(y, dt);
    T s = 0;
    for (const T &item : y) s += item * item;
    return 0.5 * s;
}
double primal() { return rk4<double>(in[0].vec(), in[1].vec(), size[0], real[0]); }
void gradient() {
    __enzyme_autodiff((void *)rk4<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_dup, &in[1].vec(),
                      &grad[1].vec(), enzyme_const, size[0], enzyme_const, real[0]);
}

#elif SPELLING == STRUCTS
struct State {
    double x, y, z;
    State operator+(const State &o) const { return {x + o.x, y + o.y, z + o.z}; }
    State operator*(double by) const { return {x * by, y * by, z * by}; }
};
struct Lorenz {
    double sigma, rho, beta;
    State slope(const State &s) const {
        return {sigma * (s.y - s.x), s.x * (rho - s.z) - s.y, s.x * s.y - beta * s.z};
    }
    void step(State &s, double dt) const {
        State k1 = slope(s), k2 = slope(s + k1 * (0.5 * dt)), k3 = slope(s + k2 * (0.5 * dt)), k4 = slope(s + k3 * dt);
        s = s + (k1 + k2 * 2 + k3 * 2 + k4) * (dt / 6);
    }
};
static double rk4(const State *start, const Lorenz *system, int steps, double dt) {
    State s = *start;
    for (int t = 0; t < steps; t++) system->step(s, dt);
    return 0.5 * (s.x * s.x + s.y * s.y + s.z * s.z);
}
double primal() { return rk4((State *)in[0].flat(), (Lorenz *)in[1].flat(), size[0], real[0]); }
void gradient() {
    __enzyme_autodiff((void *)rk4, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_const, real[0]);
}

#elif SPELLING == ROWS
static void slope(const double *y, const double *par, double *dy) {
    dy[0] = par[0] * (y[1] - y[0]);
    dy[1] = y[0] * (par[1] - y[2]) - y[1];
    dy[2] = y[0] * y[1] - par[2] * y[2];
}
static void moved(const double *y, const double *k, double by, double *at) {
    for (int i = 0; i < 3; i++) at[i] = y[i] + by * k[i];
}
static double rk4(const double *y0, const double *par, int steps, double dt) {
    double **k = (double **)malloc(4 * sizeof(double *)), y[3], at[3], s = 0;
    for (int j = 0; j < 4; j++) k[j] = (double *)malloc(3 * sizeof(double));
    for (int i = 0; i < 3; i++) y[i] = y0[i];
    for (int t = 0; t < steps; t++) {
        slope(y, par, k[0]);
        moved(y, k[0], 0.5 * dt, at);
        slope(at, par, k[1]);
        moved(y, k[1], 0.5 * dt, at);
        slope(at, par, k[2]);
        moved(y, k[2], dt, at);
        slope(at, par, k[3]);
        for (int i = 0; i < 3; i++) y[i] += dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
    for (int i = 0; i < 3; i++) s += y[i] * y[i];
    for (int j = 0; j < 4; j++) free(k[j]);
    free(k);
    return 0.5 * s;
}
double primal() { return rk4(in[0].flat(), in[1].flat(), size[0], real[0]); }
void gradient() {
    __enzyme_autodiff((void *)rk4, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_const, real[0]);
}

#elif SPELLING == CELLS
static void slope(const double *y, const double *par, double *dy) {
    dy[2] = y[0] * y[1];
    dy[2] -= par[2] * y[2];
    dy[1] = y[0] * (par[1] - y[2]);
    dy[1] -= y[1];
    dy[0] = par[0] * (y[1] - y[0]);
}
static void rk4(const double *y0, const double *par, int steps, double dt, double *out) {
    double y[3], at[3], sum[3], k[3];
    for (int i = 2; i >= 0; i--) y[i] = y0[i];
    while (steps-- > 0) {
        for (int i = 2; i >= 0; i--) at[i] = y[i], sum[i] = 0;
        for (int stage = 0; stage < 4; stage++) {
            slope(at, par, k);
            for (int i = 2; i >= 0; i--) {
                sum[i] += (stage == 0 || stage == 3 ? 1 : 2) * k[i];
                if (stage == 3) continue;
                at[i] = y[i] + (stage == 2 ? dt : 0.5 * dt) * k[i];
            }
        }
        for (int i = 2; i >= 0; i--) y[i] += dt / 6 * sum[i];
    }
    *out = 0;
    for (int i = 2; i >= 0; i--) *out += 0.5 * y[i] * y[i];
}
double primal() {
    double out;
    rk4(in[0].flat(), in[1].flat(), size[0], real[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)rk4, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_const, real[0],
                      enzyme_dupnoneed, &out, &seed);
}
#endif
