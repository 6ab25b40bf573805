/* Gradient and Hessian-vector product of kernels/kmeans.c by the centres, derived by hand. Off the borders of the cells the
 * cost is, per cell, a sum of squares: gradient 2 sum (c - x), Hessian 2 count I. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static long nearest(const double *centres, const double *x, long k, long d)
{
    double best = INFINITY;
    long at = 0;
    for (long j = 0; j < k; j++) {
        double distance = 0.0;
        for (long i = 0; i < d; i++)
            distance += (x[i] - centres[j * d + i]) * (x[i] - centres[j * d + i]);
        if (distance < best)
            best = distance, at = j;
    }
    return at;
}

void kmeans_grad(const double *centres, const double *x, long n, long k, long d, double *g)
{
    memset(g, 0, k * d * sizeof(double));
    for (long p = 0; p < n; p++) {
        long j = nearest(centres, x + p * d, k, d);
        for (long i = 0; i < d; i++)
            g[j * d + i] += 2.0 * (centres[j * d + i] - x[p * d + i]);
    }
}

void kmeans_hvp(const double *centres, const double *x, const double *v, long n, long k, long d, double *h)
{
    memset(h, 0, k * d * sizeof(double));
    for (long p = 0; p < n; p++) {
        long j = nearest(centres, x + p * d, k, d);
        for (long i = 0; i < d; i++)
            h[j * d + i] += 2.0 * v[j * d + i];
    }
}
