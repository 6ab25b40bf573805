/* Macroscopic cross sections by the multipole method (Monte-Carlo neutron transport; after RSBench).
 *
 * pole[i][w][k] are poles of nuclide i in window w, with residues for total and absorption; fit[i][w] polynomials of the
 * background. All are pairs of real and imaginary part. The Faddeeva function is the series of Abrarov and Quine
 * (2011) near the origin, and two terms of its continued fraction far from it. */
#include <complex.h>
#include <math.h>

#pragma STDC CX_LIMITED_RANGE ON
#define TERMS 23
static const double PI = 3.14159265358979323846, TAU = 12.0;

void faddeeva(const double *z, double *w)
{
    double complex x = z[0] + I * z[1], found;
    if (z[0] * z[0] + z[1] * z[1] < 64.0) {
        double complex wave = cexp(I * TAU * x), sum = 0.0, square = TAU * TAU * x * x;
        double sign = -1.0;
        for (int n = 1; n <= TERMS; n++, sign = -sign) {
            double a = 2.0 * sqrt(PI) / TAU * exp(-n * n * PI * PI / (TAU * TAU));
            sum += a * (sign * wave - 1.0) / (n * n * PI * PI - square);
        }
        found = I * (1.0 - wave) / (TAU * x) + I * TAU * TAU * x / sqrt(PI) * sum;
    } else {
        double complex square = x * x;
        found = I * x * (0.512424224754768462984202823134979415014943561548661637413182 / (square - 0.275255128608410950901357962647054304017026259671664935783653) +
                         0.051765358792987823963876628425793170829107067780337219430904 / (square - 2.724744871391589049098642037352945695982973740328335064216346));
    }
    w[0] = creal(found);
    w[1] = cimag(found);
}

double rsbench(const double *pole, const double *total, const double *absorbed, const double *fit, const double *density,
               const double *at, double doppler, long nuclides, long windows, long poles, long n)
{
    double sum = 0.0;
    for (long p = 0; p < n; p++) {
        double root = sqrt(at[p]);
        long window = (long)(root * windows);
        for (long i = 0; i < nuclides; i++) {
            long place = i * windows + window;
            double sigma_t = at[p] * fit[2 * place], sigma_a = at[p] * fit[2 * place + 1];
            for (long k = 0; k < poles; k++) {
                long entry = 2 * (place * poles + k);
                double z[2] = {(root - pole[entry]) * doppler, -pole[entry + 1] * doppler}, w[2];
                faddeeva(z, w);
                sigma_t += total[entry] * w[0] - total[entry + 1] * w[1];
                sigma_a += absorbed[entry] * w[0] - absorbed[entry + 1] * w[1];
            }
            sum += density[i] * (sigma_t + 0.5 * sigma_a);
        }
    }
    return sum;
}
