/* Log-likelihood of a Gaussian mixture with a Wishart prior on the precisions.
 *
 * Component j has weight softmax(alphas)_j, mean means_j and precision Q_j^T Q_j, where Q_j is lower triangular:
 * exp(icf_j[0..d)) on the diagonal, icf_j[d..) strictly below it, column by column. */
#include <math.h>
#include <stdlib.h>

static double sum_of_squares(long n, const double *v)
{
    double s = 0.0;
    for (long i = 0; i < n; i++)
        s += v[i] * v[i];
    return s;
}

static double log_sum_exp(long n, const double *v)
{
    double top = v[0];
    for (long i = 1; i < n; i++)
        if (v[i] > top)
            top = v[i];
    double s = 0.0;
    for (long i = 0; i < n; i++)
        s += exp(v[i] - top);
    return top + log(s);
}

/* out = Q v for one component. */
static void apply_factor(long d, const double *diagonal, const double *below, const double *v, double *out)
{
    for (long i = 0; i < d; i++)
        out[i] = diagonal[i] * v[i];
    long at = 0;
    for (long i = 0; i < d; i++)
        for (long j = i + 1; j < d; j++)
            out[j] += below[at++] * v[i];
}

static double log_multivariate_gamma(double a, long p)
{
    double s = 0.25 * p * (p - 1) * log(M_PI);
    for (long j = 1; j <= p; j++)
        s += lgamma(a + 0.5 * (1 - j));
    return s;
}

static double log_wishart_prior(long d, long k, double gamma, long m, const double *sums, const double *diagonals,
                                const double *icf)
{
    long below = d * (d - 1) / 2, row = d + below, n = d + m + 1;
    double constant = n * d * (log(gamma) - 0.5 * log(2.0)) - log_multivariate_gamma(0.5 * n, d);
    double s = 0.0;
    for (long j = 0; j < k; j++) {
        double frobenius = sum_of_squares(d, diagonals + j * d) + sum_of_squares(below, icf + j * row + d);
        s += 0.5 * gamma * gamma * frobenius - m * sums[j];
    }
    return s - k * constant;
}

double gmm(const double *alphas, const double *means, const double *icf, const double *x, double gamma, long m, long k,
           long d, long n)
{
    long row = d + d * (d - 1) / 2;
    double *diagonals = malloc(k * d * sizeof(double));
    double *sums = malloc(k * sizeof(double));
    double *centred = malloc(d * sizeof(double));
    double *scaled = malloc(d * sizeof(double));
    double *terms = malloc(k * sizeof(double));

    for (long j = 0; j < k; j++) {
        sums[j] = 0.0;
        for (long i = 0; i < d; i++) {
            sums[j] += icf[j * row + i];
            diagonals[j * d + i] = exp(icf[j * row + i]);
        }
    }
    double likelihood = 0.0;
    for (long p = 0; p < n; p++) {
        for (long j = 0; j < k; j++) {
            for (long i = 0; i < d; i++)
                centred[i] = x[p * d + i] - means[j * d + i];
            apply_factor(d, diagonals + j * d, icf + j * row + d, centred, scaled);
            terms[j] = alphas[j] + sums[j] - 0.5 * sum_of_squares(d, scaled);
        }
        likelihood += log_sum_exp(k, terms);
    }
    double result = -0.5 * n * d * log(2.0 * M_PI) + likelihood - n * log_sum_exp(k, alphas) +
                    log_wishart_prior(d, k, gamma, m, sums, diagonals, icf);
    free(diagonals);
    free(sums);
    free(centred);
    free(scaled);
    free(terms);
    return result;
}
