/* Kernels for GPUs: of one sample each (`midpoint`, `cell`), and a large one whose loops are promised independent. */
#include <math.h>

#include "../futhark/lbm.c"

/* A damped pendulum by explicit midpoint steps; p = {gravity over length, damping}. */
double midpoint(const double *x, const double *p, long n)
{
    double y = x[0], v = x[1], h = 0.01;
    for (long i = 0; i < n; i++) {
        double a = y + 0.5 * h * v, b = v - 0.5 * h * (p[0] * sin(y) + p[1] * v);
        v -= h * (p[0] * sin(a) + p[1] * b);
        y += h * b;
    }
    return y * y + v * v;
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/* The state of a unit of a hierarchical multiscale LSTM (Chung, Ahn, Bengio, 2017): flush, update or copy. */
float cell(float c, float f, float i, float g, float ended, float below)
{
    if (ended > 0.5f)
        return sigmoid(i) * tanhf(g);
    if (below > 0.5f)
        return sigmoid(f) * c + sigmoid(i) * tanhf(g);
    return c;
}

static void collide(const double *restrict f, double *restrict g, long n, double omega)
{
    long cells = n * n * n;
    #pragma clang loop vectorize(assume_safety)
    for (long cell = 0; cell < cells; cell++)
        relax(f, g, n, omega, cell % n, cell / n % n, cell / (n * n));
}

/* Lattice Boltzmann, two steps a turn: f to g and back. The result is the kinetic energy. */
double boltzmann(double *f, double *g, double omega, long n, long turns)
{
    for (long t = 0; t < turns; t++) {
        collide(f, g, n, omega);
        collide(g, f, n, omega);
    }
    return kinetic(f, n);
}
