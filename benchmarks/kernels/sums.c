/* Maps and reductions over one array. */
#include <math.h>

/* sum of exp(x) sin(x) */
double expsin(const double *x, long n)
{
    double s = 0.0;
    for (long i = 0; i < n; i++)
        s += exp(x[i]) * sin(x[i]);
    return s;
}

/* log of the sum of exp(x), shifted by the largest entry */
double logsumexp(const double *x, long n)
{
    double top = x[0];
    for (long i = 1; i < n; i++)
        top = fmax(top, x[i]);
    double s = 0.0;
    for (long i = 0; i < n; i++)
        s += exp(x[i] - top);
    return top + log(s);
}

double product(const double *x, long n)
{
    double p = 1.0;
    for (long i = 0; i < n; i++)
        p *= x[i];
    return p;
}

/* h <- a h + b, summed over the steps */
double recurrence(const double *a, const double *b, long n)
{
    double h = 0.0, s = 0.0;
    for (long i = 0; i < n; i++) {
        h = a[i] * h + b[i];
        s += h;
    }
    return s;
}
