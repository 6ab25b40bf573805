/* Gradients of kernels/indexed.c, derived by hand. */
#include <stdlib.h>
#include <string.h>

void histogram_grad(const double *x, const int *bin, long n, long bins, double *gx)
{
    double *h = calloc(bins, sizeof(double));
    for (long i = 0; i < n; i++)
        h[bin[i]] += x[i];
    for (long i = 0; i < n; i++)
        gx[i] = h[bin[i]];
    free(h);
}

void gather_grad(const double *table, const int *index, const double *w, long n, long m, double *gtable)
{
    memset(gtable, 0, m * sizeof(double));
    for (long i = 0; i < n; i++)
        gtable[index[i]] += 2.0 * w[i] * table[index[i]];
}
