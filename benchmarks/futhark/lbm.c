/* Lattice Boltzmann, D3Q19, relaxation by one rate, periodic: f[q][z][y][x], pulled and relaxed in one step.
 *
 * The result is the kinetic energy after the last step. */
#include <stdlib.h>
#include <string.h>

static const int C[19][3] = {{0, 0, 0},  {1, 0, 0},  {-1, 0, 0}, {0, 1, 0},   {0, -1, 0}, {0, 0, 1},  {0, 0, -1},
                             {1, 1, 0},  {-1, -1, 0}, {1, -1, 0}, {-1, 1, 0},  {1, 0, 1},  {-1, 0, -1}, {1, 0, -1},
                             {-1, 0, 1}, {0, 1, 1},  {0, -1, -1}, {0, 1, -1}, {0, -1, 1}};

static double part(int q) { return q == 0 ? 1.0 / 3.0 : q < 7 ? 1.0 / 18.0 : 1.0 / 36.0; }

/* One cell of a step. */
static void relax(const double *restrict f, double *restrict g, long n, double omega, long x, long y, long z)
{
    long cells = n * n * n;
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
        g[q * cells + (z * n + y) * n + x] = h[q] + omega * (balance - h[q]);
    }
}

static void step(const double *restrict f, double *restrict g, long n, double omega)
{
    #pragma omp parallel for
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++)
                relax(f, g, n, omega, x, y, z);
}

static double kinetic(const double *f, long n)
{
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

double lbm(double *f, double *g, double omega, long n, long steps)
{
    for (long t = 0; t < steps; t++) {
        step(f, g, n, omega);
        memcpy(f, g, 19 * n * n * n * sizeof *f);
    }
    return kinetic(f, n);
}
