/* k-means cost of sparse points (compressed rows): each point's squared distance to its nearest centre, summed. */
#include <math.h>
#include <stdlib.h>

double kmeans_sparse(const double *centres, const double *value, const long *column, const long *row, long k, long d,
                     long entries, long n)
{
    double *norm = calloc(k, sizeof *norm), cost = 0.0;
    for (long j = 0; j < k; j++)
        for (long i = 0; i < d; i++)
            norm[j] += centres[j * d + i] * centres[j * d + i];
    for (long p = 0; p < n; p++) {
        double best = INFINITY;
        for (long j = 0; j < k; j++) {
            double distance = norm[j];
            for (long e = row[p]; e < row[p + 1]; e++)
                distance += value[e] * (value[e] - 2.0 * centres[j * d + column[e]]);
            if (distance < best)
                best = distance;
        }
        cost += best;
    }
    free(norm);
    return cost;
}
