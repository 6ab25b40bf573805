/* Gradient of kernels/burgers.c (both forms compute the same), derived by hand: every level is kept, and the adjoint of
 * the stencil gathers. With mu the adjoint of the new level's inner cells:
 *   lambda_k = mu_k (1 - c (u_(k+1) - u_(k-1)) - 2 d) + mu_(k-1) (d - c u_(k-1)) + mu_(k+1) (d + c u_(k+1)). */
#include <stdlib.h>
#include <string.h>

void burgers_grad(const double *u0, long n, long steps, double dt, double dx, double nu, double *g)
{
    double c = dt / (2.0 * dx), d = nu * dt / (dx * dx);
    double *levels = malloc((steps + 1) * n * sizeof(double)), *mu = malloc(n * sizeof(double));
    memcpy(levels, u0, n * sizeof(double));
    for (long t = 0; t < steps; t++) {
        const double *u = levels + t * n;
        double *next = levels + (t + 1) * n;
        next[0] = u[0];
        next[n - 1] = u[n - 1];
        for (long i = 1; i < n - 1; i++)
            next[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1]) + d * (u[i + 1] - 2.0 * u[i] + u[i - 1]);
    }
    memcpy(g, levels + steps * n, n * sizeof(double));
    for (long t = steps - 1; t >= 0; t--) {
        const double *u = levels + t * n;
        memcpy(mu, g, n * sizeof(double));
        mu[0] = mu[n - 1] = 0.0;
        for (long k = 1; k < n - 1; k++)
            g[k] = mu[k] * (1.0 - c * (u[k + 1] - u[k - 1]) - 2.0 * d) + mu[k - 1] * (d - c * u[k - 1]) +
                   mu[k + 1] * (d + c * u[k + 1]);
        g[0] += mu[1] * (d + c * u[1]);
        g[n - 1] += mu[n - 2] * (d - c * u[n - 2]);
    }
    free(levels), free(mu);
}
