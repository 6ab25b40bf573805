/* What a call through JAX costs: kernels that do almost nothing, one that moves memory, one that computes. */
#include <math.h>

void shifted(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] + 1.0;
}

double squares(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i];
    return s;
}

void rounds(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) {
        double s = x[i];
        for (int k = 0; k < 4; k++) s = sin(s) * x[i] + exp(-x[i] * x[i]);
        y[i] = s;
    }
}
