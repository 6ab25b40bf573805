/* Gravitational potential energy of n bodies, softened. */
#include <math.h>

double energy(const double *pos, const double *mass, long n)
{
    double e = 0.0;
    for (long i = 0; i < n; i++)
        for (long j = i + 1; j < n; j++) {
            double dx = pos[3 * i] - pos[3 * j];
            double dy = pos[3 * i + 1] - pos[3 * j + 1];
            double dz = pos[3 * i + 2] - pos[3 * j + 2];
            e -= mass[i] * mass[j] / sqrt(dx * dx + dy * dy + dz * dz + 1e-4);
        }
    return e;
}
