/* k-means cost: every point's squared distance to its nearest centre, summed. */
#include <math.h>

double kmeans(const double *centres, const double *x, long n, long k, long d)
{
    double cost = 0.0;
    for (long p = 0; p < n; p++) {
        double best = INFINITY;
        for (long j = 0; j < k; j++) {
            double distance = 0.0;
            for (long i = 0; i < d; i++) {
                double delta = x[p * d + i] - centres[j * d + i];
                distance += delta * delta;
            }
            if (distance < best)
                best = distance;
        }
        cost += best;
    }
    return cost;
}
