/* Gravitational energy of n bodies: kinetic and potential, with softened forces. The kernel of `irgrad demo`. */
#include <math.h>

double energy(const double *pos, const double *vel, const double *mass, long n) {
    double kinetic = 0.0, potential = 0.0;
    for (long i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++)
            kinetic += 0.5 * mass[i] * vel[3 * i + k] * vel[3 * i + k];
        for (long j = 0; j < i; j++) {
            double r2 = 1e-3;
            for (int k = 0; k < 3; k++) {
                double d = pos[3 * i + k] - pos[3 * j + k];
                r2 += d * d;
            }
            potential -= mass[i] * mass[j] / sqrt(r2);
        }
    }
    return kinetic + potential;
}
