/* Gradient of kernels/nbody.c, derived by hand: minus the softened force, pair by pair. */
#include <math.h>
#include <string.h>

void energy_grad(const double *pos, const double *mass, long n, double *g)
{
    memset(g, 0, 3 * n * sizeof(double));
    for (long i = 0; i < n; i++) {
        double own[3] = {0, 0, 0};
        for (long j = i + 1; j < n; j++) {
            double d[3], r2 = 1e-4;
            for (int c = 0; c < 3; c++) {
                d[c] = pos[3 * i + c] - pos[3 * j + c];
                r2 += d[c] * d[c];
            }
            double inverse = 1.0 / sqrt(r2), f = mass[i] * mass[j] * inverse * inverse * inverse;
            for (int c = 0; c < 3; c++) {
                own[c] += f * d[c];
                g[3 * j + c] -= f * d[c];
            }
        }
        for (int c = 0; c < 3; c++)
            g[3 * i + c] += own[c];
    }
}
