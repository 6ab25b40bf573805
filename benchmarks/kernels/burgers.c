/* Viscous Burgers' equation u_t + u u_x = nu u_xx, explicit central differences, fixed ends; returns half |u|^2. */
#include <stdlib.h>
#include <string.h>

static double half_energy(const double *u, long n)
{
    double s = 0.0;
    for (long i = 0; i < n; i++)
        s += u[i] * u[i];
    return 0.5 * s;
}

/* The new level is computed aside and copied back. */
double burgers_copy(const double *u0, long n, long steps, double dt, double dx, double nu)
{
    double *u = malloc(n * sizeof(double));
    double *next = malloc(n * sizeof(double));
    memcpy(u, u0, n * sizeof(double));
    double advect = dt / (2.0 * dx), diffuse = nu * dt / (dx * dx);
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++)
            next[i] = u[i] - advect * u[i] * (u[i + 1] - u[i - 1]) + diffuse * (u[i + 1] - 2.0 * u[i] + u[i - 1]);
        for (long i = 1; i < n - 1; i++)
            u[i] = next[i];
    }
    double result = half_energy(u, n);
    free(u);
    free(next);
    return result;
}

/* The two levels change places by exchanging pointers. */
double burgers_swap(const double *u0, long n, long steps, double dt, double dx, double nu)
{
    double *u = malloc(n * sizeof(double));
    double *next = malloc(n * sizeof(double));
    memcpy(u, u0, n * sizeof(double));
    next[0] = u[0];
    next[n - 1] = u[n - 1];
    double advect = dt / (2.0 * dx), diffuse = nu * dt / (dx * dx);
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++)
            next[i] = u[i] - advect * u[i] * (u[i + 1] - u[i - 1]) + diffuse * (u[i + 1] - 2.0 * u[i] + u[i - 1]);
        double *old = u;
        u = next;
        next = old;
    }
    double result = half_energy(u, n);
    free(u);
    free(next);
    return result;
}
