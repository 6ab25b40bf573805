/* Gradient of kernels/gmm.c, derived by hand.
 *
 * With responsibilities r_j = softmax_j(terms): d alpha_j = r_j, and from term_j = ... - |Q_j c|^2 / 2 with z = Q_j c:
 * d z = -r_j z, d c = Q^T d z, d diagonal_i = d z_i c_i, d below_(j,i) = d z_j c_i. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void softmax(long n, const double *v, double *out)
{
    double top = v[0], s = 0.0;
    for (long i = 1; i < n; i++)
        top = fmax(top, v[i]);
    for (long i = 0; i < n; i++)
        s += out[i] = exp(v[i] - top);
    for (long i = 0; i < n; i++)
        out[i] /= s;
}

void gmm_grad(const double *alphas, const double *means, const double *icf, const double *x, double gamma, long m, long k,
              long d, long n, double *galphas, double *gmeans, double *gicf)
{
    long below = d * (d - 1) / 2, row = d + below;
    double *diagonals = malloc(k * d * sizeof(double)), *sums = calloc(k, sizeof(double));
    double *centred = malloc(k * d * sizeof(double)), *z = malloc(k * d * sizeof(double));
    double *terms = malloc(k * sizeof(double)), *r = malloc(k * sizeof(double)), *dc = malloc(d * sizeof(double));
    for (long j = 0; j < k; j++)
        for (long i = 0; i < d; i++) {
            sums[j] += icf[j * row + i];
            diagonals[j * d + i] = exp(icf[j * row + i]);
        }
    softmax(k, alphas, r);
    for (long j = 0; j < k; j++) {
        galphas[j] = -n * r[j];
        for (long i = 0; i < d; i++)
            gicf[j * row + i] = gamma * gamma * diagonals[j * d + i] * diagonals[j * d + i] - m;
        for (long i = d; i < row; i++)
            gicf[j * row + i] = gamma * gamma * icf[j * row + i];
    }
    memset(gmeans, 0, k * d * sizeof(double));
    for (long p = 0; p < n; p++) {
        for (long j = 0; j < k; j++) {
            const double *q = diagonals + j * d, *l = icf + j * row + d;
            double *c = centred + j * d, *zj = z + j * d, squares = 0.0;
            for (long i = 0; i < d; i++) {
                c[i] = x[p * d + i] - means[j * d + i];
                zj[i] = q[i] * c[i];
            }
            for (long i = 0; i < d; l += d - 1 - i, i++)
                for (long t = i + 1; t < d; t++)
                    zj[t] += l[t - i - 1] * c[i];
            for (long i = 0; i < d; i++)
                squares += zj[i] * zj[i];
            terms[j] = alphas[j] + sums[j] - 0.5 * squares;
        }
        softmax(k, terms, r);
        for (long j = 0; j < k; j++) {
            const double *q = diagonals + j * d, *l = icf + j * row + d;
            double *c = centred + j * d, *zj = z + j * d, *gq = gicf + j * row, *gl = gq + d;
            galphas[j] += r[j];
            for (long i = 0; i < d; i++) {
                zj[i] *= -r[j];
                gq[i] += r[j] + zj[i] * c[i] * q[i];
                dc[i] = q[i] * zj[i];
            }
            for (long i = 0; i < d; l += d - 1 - i, gl += d - 1 - i, i++) {
                double s = 0.0;
                for (long t = i + 1; t < d; t++) {
                    s += l[t - i - 1] * zj[t];
                    gl[t - i - 1] += zj[t] * c[i];
                }
                dc[i] += s;
            }
            for (long i = 0; i < d; i++)
                gmeans[j * d + i] -= dc[i];
        }
    }
    free(diagonals), free(sums), free(centred), free(z), free(terms), free(r), free(dc);
}
