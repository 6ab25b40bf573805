/* Kernels for GPUs: of one sample each (`midpoint`, `cell`), and large ones whose loops are promised independent. */
#include <math.h>
#include <string.h>

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

/* Many look-ups in pointwise tables of cross sections; see futhark/xsbench.c. */
double lookups(const double *energy, const double *micro, const double *density, const double *at, const long *material,
               const double *weight, long nuclides, long points, long n)
{
    double sum = 0.0;
    #pragma omp simd reduction(+:sum)
    for (long p = 0; p < n; p++) {
        double macro[5] = {0, 0, 0, 0, 0};
        for (long i = 0; i < nuclides; i++) {
            const double *grid = energy + i * points;
            long low = 0, high = points - 1;
            while (high - low > 1) {
                long middle = low + (high - low) / 2;
                if (grid[middle] > at[p])
                    high = middle;
                else
                    low = middle;
            }
            double f = (grid[low + 1] - at[p]) / (grid[low + 1] - grid[low]);
            const double *left = micro + (i * points + low) * 5, *right = left + 5;
            double rho = density[material[p] * nuclides + i];
            for (int c = 0; c < 5; c++)
                macro[c] += rho * (right[c] - f * (right[c] - left[c]));
        }
        for (int c = 0; c < 5; c++)
            sum += weight[c] * macro[c];
    }
    return sum;
}

static const int C[19][3] = {{0, 0, 0},  {1, 0, 0},  {-1, 0, 0}, {0, 1, 0},   {0, -1, 0}, {0, 0, 1},  {0, 0, -1},
                             {1, 1, 0},  {-1, -1, 0}, {1, -1, 0}, {-1, 1, 0},  {1, 0, 1},  {-1, 0, -1}, {1, 0, -1},
                             {-1, 0, 1}, {0, 1, 1},  {0, -1, -1}, {0, 1, -1}, {0, -1, 1}};

static double part(int q) { return q == 0 ? 1.0 / 3.0 : q < 7 ? 1.0 / 18.0 : 1.0 / 36.0; }

static void collide(const double *restrict f, double *restrict g, long n, double omega)
{
    long cells = n * n * n;
    #pragma clang loop vectorize(assume_safety)
    for (long cell = 0; cell < cells; cell++) {
        long x = cell % n, y = cell / n % n, z = cell / (n * n);
        double h[19], rho = 0, u[3] = {0, 0, 0};
        for (int q = 0; q < 19; q++) {
            long a = (x - C[q][0] + n) % n, b = (y - C[q][1] + n) % n, c = (z - C[q][2] + n) % n;
            h[q] = f[q * cells + (c * n + b) * n + a];
            rho += h[q];
            for (int i = 0; i < 3; i++)
                u[i] += C[q][i] * h[q];
        }
        for (int i = 0; i < 3; i++)
            u[i] /= rho;
        double square = 1.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
        for (int q = 0; q < 19; q++) {
            double along = 3 * (C[q][0] * u[0] + C[q][1] * u[1] + C[q][2] * u[2]);
            double balance = part(q) * rho * (1 + along + 0.5 * along * along - square);
            g[q * cells + cell] = h[q] + omega * (balance - h[q]);
        }
    }
}

/* Lattice Boltzmann, D3Q19, as futhark/lbm.c, two steps a turn: f to g and back. The result is the kinetic energy. */
double boltzmann(double *f, double *g, double omega, long n, long turns)
{
    for (long t = 0; t < turns; t++) {
        collide(f, g, n, omega);
        collide(g, f, n, omega);
    }
    double energy = 0;
    long cells = n * n * n;
    #pragma omp simd reduction(+:energy)
    for (long at = 0; at < cells; at++) {
        double rho = 0, u[3] = {0, 0, 0};
        for (int q = 0; q < 19; q++) {
            rho += f[q * cells + at];
            for (int i = 0; i < 3; i++)
                u[i] += C[q][i] * f[q * cells + at];
        }
        energy += 0.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]) / rho;
    }
    return energy;
}
