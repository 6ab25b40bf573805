/* Gradients of kernels/sums.c, derived by hand. */
#include <math.h>
#include <stdlib.h>

void expsin_grad(const double *x, long n, double *gx)
{
    for (long i = 0; i < n; i++)
        gx[i] = exp(x[i]) * (sin(x[i]) + cos(x[i]));
}

void logsumexp_grad(const double *x, long n, double *gx)
{
    double top = x[0], s = 0.0;
    for (long i = 1; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (long i = 0; i < n; i++)
        s += gx[i] = exp(x[i] - top);
    double inverse = 1.0 / s;
    for (long i = 0; i < n; i++)
        gx[i] *= inverse;
}

/* Products of all before and of all after. */
void product_grad(const double *x, long n, double *gx)
{
    double p = 1.0;
    for (long i = 0; i < n; i++) {
        gx[i] = p;
        p *= x[i];
    }
    p = 1.0;
    for (long i = n - 1; i >= 0; i--) {
        gx[i] *= p;
        p *= x[i];
    }
}

/* adjoint of h: lambda_i = 1 + a_(i+1) lambda_(i+1) */
void recurrence_grad(const double *a, const double *b, long n, double *ga, double *gb)
{
    double h = 0.0, lambda = 0.0;
    for (long i = 0; i < n; i++) {
        ga[i] = h;
        h = a[i] * h + b[i];
    }
    for (long i = n - 1; i >= 0; i--) {
        lambda += 1.0;
        gb[i] = lambda;
        ga[i] *= lambda;
        lambda *= a[i];
    }
}
