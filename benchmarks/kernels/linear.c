/* Dense linear algebra written as loops: a small network, a matrix product, a matrix times a vector. */
#include <math.h>
#include <stdlib.h>

/* out = w in + b for every sample, w of shape (to, from) */
static void dense(const double *in, const double *w, const double *b, double *out, long batch, long from, long to)
{
    for (long s = 0; s < batch; s++)
        for (long j = 0; j < to; j++) {
            double sum = b[j];
            for (long i = 0; i < from; i++)
                sum += w[j * from + i] * in[s * from + i];
            out[s * to + j] = sum;
        }
}

/* mean squared error of the network h1 -> h2 -> 1 with tanh in between */
double mlp(const double *w1, const double *b1, const double *w2, const double *b2, const double *w3, const double *b3,
           const double *x, const double *y, long batch, long in, long hidden, long second)
{
    double *h1 = malloc(batch * hidden * sizeof(double));
    double *h2 = malloc(batch * second * sizeof(double));
    double *out = malloc(batch * sizeof(double));
    dense(x, w1, b1, h1, batch, in, hidden);
    for (long i = 0; i < batch * hidden; i++)
        h1[i] = tanh(h1[i]);
    dense(h1, w2, b2, h2, batch, hidden, second);
    for (long i = 0; i < batch * second; i++)
        h2[i] = tanh(h2[i]);
    dense(h2, w3, b3, out, batch, second, 1);
    double loss = 0.0;
    for (long s = 0; s < batch; s++)
        loss += (out[s] - y[s]) * (out[s] - y[s]);
    free(h1);
    free(h2);
    free(out);
    return loss / batch;
}

/* half the squared Frobenius norm of A B */
double matmul(const double *a, const double *b, long n)
{
    double *c = calloc(n * n, sizeof(double));
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    double s = 0.0;
    for (long i = 0; i < n * n; i++)
        s += c[i] * c[i];
    free(c);
    return 0.5 * s;
}

/* half the squared norm of A x */
double matvec(const double *a, const double *x, long n)
{
    double s = 0.0;
    for (long i = 0; i < n; i++) {
        double y = 0.0;
        for (long j = 0; j < n; j++)
            y += a[i * n + j] * x[j];
        s += y * y;
    }
    return 0.5 * s;
}
