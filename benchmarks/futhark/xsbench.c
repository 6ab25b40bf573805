/* Macroscopic cross sections by look-up in pointwise tables (Monte-Carlo neutron transport; after XSBench).
 *
 * energy[i][g] is the ascending grid of nuclide i, micro[i][g] its five cross sections there; material m is a mixture of
 * all nuclides with the densities density[m]. The result is the weighted sum over all look-ups. */
#include <stddef.h>

static long search(const double *grid, long n, double e)
{
    long low = 0, high = n - 1;
    while (high - low > 1) {
        long middle = low + (high - low) / 2;
        if (grid[middle] > e)
            high = middle;
        else
            low = middle;
    }
    return low;
}

double xsbench(const double *energy, const double *micro, const double *density, const double *at, const long *material,
               const double *weight, long nuclides, long points, long materials, long n)
{
    double sum = 0.0;
    #pragma omp simd reduction(+:sum)
    for (long p = 0; p < n; p++) {
        double macro[5] = {0, 0, 0, 0, 0};
        for (long i = 0; i < nuclides; i++) {
            const double *grid = energy + i * points;
            long g = search(grid, points, at[p]);
            double f = (grid[g + 1] - at[p]) / (grid[g + 1] - grid[g]);
            const double *low = micro + (i * points + g) * 5, *high = low + 5;
            double rho = density[material[p] * nuclides + i];
            for (int c = 0; c < 5; c++)
                macro[c] += rho * (high[c] - f * (high[c] - low[c]));
        }
        for (int c = 0; c < 5; c++)
            sum += weight[c] * macro[c];
    }
    return sum;
}
