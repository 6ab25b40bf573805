/* Indirect memory: a weighted histogram, and a gather from a table. */
#include <stdlib.h>

/* half the squared norm of the histogram of the weights x over the bins */
double histogram(const double *x, const int *bin, long n, long bins)
{
    double *h = calloc(bins, sizeof(double));
    for (long i = 0; i < n; i++)
        h[bin[i]] += x[i];
    double s = 0.0;
    for (long j = 0; j < bins; j++)
        s += h[j] * h[j];
    free(h);
    return 0.5 * s;
}

/* sum of w table[index]^2 */
double gather(const double *table, const int *index, const double *w, long n)
{
    double s = 0.0;
    for (long i = 0; i < n; i++) {
        double t = table[index[i]];
        s += w[i] * t * t;
    }
    return s;
}
