/* Explicit hydrodynamics on an unstructured mesh of hexahedra, in Lagrange's coordinates: forces of elements are scattered
   to their corners, corners move, volumes give density, energy and pressure (with branches) of the next step. */
#include <math.h>
#include <stdlib.h>

static double triple(const double *a, const double *b, const double *c)
{
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/* Volume of a hexahedron with corners numbered around the bottom, then around the top. */
static double volume(double x[8][3])
{
    double e[7][3];
    for (int k = 0; k < 7; k++)
        for (int d = 0; d < 3; d++)
            e[k][d] = x[k + 1][d] - x[0][d];
    return (triple(e[0], e[1], e[5]) + triple(e[1], e[2], e[5]) + triple(e[2], e[6], e[5]) + triple(e[2], e[3], e[6])
            + triple(e[3], e[4], e[6]) + triple(e[4], e[5], e[6])) / 6.0;
}

/* A corner's share of the surface of its element: half the cross products of the edges that meet there. */
static void normals(double x[8][3], double b[8][3])
{
    static const int next[8][3] = {{1, 3, 4}, {2, 0, 5}, {3, 1, 6}, {0, 2, 7}, {7, 5, 0}, {4, 6, 1}, {5, 7, 2}, {6, 4, 3}};
    for (int k = 0; k < 8; k++) {
        double e[3][3];
        for (int s = 0; s < 3; s++)
            for (int d = 0; d < 3; d++)
                e[s][d] = x[next[k][s]][d] - x[k][d];
        for (int d = 0; d < 3; d++) {
            int p = (d + 1) % 3, q = (d + 2) % 3;
            b[k][d] = -0.25 * (e[0][p] * e[1][q] - e[0][q] * e[1][p] + e[1][p] * e[2][q] - e[1][q] * e[2][p]
                               + e[2][p] * e[0][q] - e[2][q] * e[0][p]);
        }
    }
}

static void gather(double at[8][3], const double *x, const int *corners)
{
    for (int k = 0; k < 8; k++)
        for (int d = 0; d < 3; d++)
            at[k][d] = x[3 * corners[k] + d];
}

void hydrodynamics(double *x, double *v, double *energy, const double *mass, const double *start, const int *corners,
                   long nodes, long elements, long steps, double dt)
{
    double *force = malloc(3 * nodes * sizeof *force), *pressure = malloc(elements * sizeof *pressure);
    double *last = malloc(elements * sizeof *last);
    for (long e = 0; e < elements; e++) {
        double at[8][3];
        gather(at, x, corners + 8 * e);
        last[e] = volume(at);
        pressure[e] = energy[e] > 0.0 ? 0.4 * energy[e] : 0.0;
    }
    for (long t = 0; t < steps; t++) {
        for (long i = 0; i < 3 * nodes; i++)
            force[i] = 0.0;
        for (long e = 0; e < elements; e++) {
            double at[8][3], b[8][3];
            gather(at, x, corners + 8 * e);
            normals(at, b);
            for (int k = 0; k < 8; k++)
                for (int d = 0; d < 3; d++)
                    force[3 * corners[8 * e + k] + d] += pressure[e] * b[k][d];
        }
        for (long i = 0; i < nodes; i++)
            for (int d = 0; d < 3; d++) {
                v[3 * i + d] += dt * force[3 * i + d] / mass[i];
                if (fabs(v[3 * i + d]) < 1e-9)
                    v[3 * i + d] = 0.0;
                x[3 * i + d] += dt * v[3 * i + d];
            }
        for (long e = 0; e < elements; e++) {
            double at[8][3];
            gather(at, x, corners + 8 * e);
            double now = volume(at), change = now - last[e], rate = change / (dt * now), viscosity = 0.0;
            if (rate < 0.0) {
                double length = cbrt(now);
                viscosity = start[e] / now * (2.0 * length * length * rate * rate - 0.25 * length * rate);
            }
            double compression = start[e] / now - 1.0, bulk = 0.4 * (compression + 1.0);
            energy[e] -= 0.5 * change * (pressure[e] + viscosity);
            if (energy[e] < 1e-7)
                energy[e] = 1e-7;
            double p = bulk * energy[e] / start[e];
            if (compression > 0.5)
                p *= 1.0 + 0.1 * (compression - 0.5);
            if (p < 1e-9)
                p = 0.0;
            pressure[e] = p + viscosity;
            last[e] = now;
        }
    }
    free(force);
    free(pressure);
    free(last);
}
