/* Right-hand side of the Brusselator with diffusion on an n x n periodic grid:
 *   du = a + u^2 v - (b + 1) u + alpha lap(u),   dv = b u - u^2 v + alpha lap(v) */
#include <stdlib.h>

static double laplacian(const double *q, long n, long i, long j)
{
    long up = i == 0 ? n - 1 : i - 1, down = i == n - 1 ? 0 : i + 1;
    long left = j == 0 ? n - 1 : j - 1, right = j == n - 1 ? 0 : j + 1;
    return q[up * n + j] + q[down * n + j] + q[i * n + left] + q[i * n + right] - 4.0 * q[i * n + j];
}

void brusselator(const double *u, const double *v, double *du, double *dv, long n, double a, double b, double alpha)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            long at = i * n + j;
            double reaction = u[at] * u[at] * v[at];
            du[at] = a + reaction - (b + 1.0) * u[at] + alpha * laplacian(u, n, i, j);
            dv[at] = b * u[at] - reaction + alpha * laplacian(v, n, i, j);
        }
}

/* half the squared norm of the right-hand side */
double brusselator_cost(const double *u, const double *v, long n, double a, double b, double alpha)
{
    double *du = malloc(n * n * sizeof(double)), *dv = malloc(n * n * sizeof(double)), s = 0.0;
    brusselator(u, v, du, dv, n, a, b, alpha);
    for (long i = 0; i < n * n; i++)
        s += du[i] * du[i] + dv[i] * dv[i];
    free(du);
    free(dv);
    return 0.5 * s;
}
