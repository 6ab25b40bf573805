/* Gradients of kernels/linear.c, derived by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void dense(const double *in, const double *w, const double *b, double *out, long batch, long from, long to)
{
    double *turned = malloc(from * to * sizeof(double));
    for (long j = 0; j < to; j++)
        for (long i = 0; i < from; i++)
            turned[i * to + j] = w[j * from + i];
    for (long s = 0; s < batch; s++) {
        memcpy(out + s * to, b, to * sizeof(double));
        for (long i = 0; i < from; i++)
            for (long j = 0; j < to; j++)
                out[s * to + j] += in[s * from + i] * turned[i * to + j];
    }
    free(turned);
}

/* gw = g^T in, gb = sum g, and where wanted gin = g w */
static void dense_back(const double *in, const double *w, const double *g, double *gw, double *gb, double *gin, long batch,
                       long from, long to)
{
    memset(gw, 0, from * to * sizeof(double));
    memset(gb, 0, to * sizeof(double));
    if (gin)
        memset(gin, 0, batch * from * sizeof(double));
    for (long s = 0; s < batch; s++)
        for (long j = 0; j < to; j++) {
            double a = g[s * to + j];
            gb[j] += a;
            for (long i = 0; i < from; i++)
                gw[j * from + i] += a * in[s * from + i];
            for (long i = 0; gin && i < from; i++)
                gin[s * from + i] += a * w[j * from + i];
        }
}

void mlp_grad(const double *w1, const double *b1, const double *w2, const double *b2, const double *w3, const double *b3,
              const double *x, const double *y, long batch, long in, long hidden, long second, double *gw1, double *gb1,
              double *gw2, double *gb2, double *gw3, double *gb3)
{
    double *h1 = malloc(batch * hidden * sizeof(double)), *h2 = malloc(batch * second * sizeof(double));
    double *g1 = malloc(batch * hidden * sizeof(double)), *g2 = malloc(batch * second * sizeof(double));
    double *out = malloc(batch * sizeof(double));
    dense(x, w1, b1, h1, batch, in, hidden);
    for (long i = 0; i < batch * hidden; i++)
        h1[i] = tanh(h1[i]);
    dense(h1, w2, b2, h2, batch, hidden, second);
    for (long i = 0; i < batch * second; i++)
        h2[i] = tanh(h2[i]);
    dense(h2, w3, b3, out, batch, second, 1);
    for (long s = 0; s < batch; s++)
        out[s] = 2.0 * (out[s] - y[s]) / batch;
    dense_back(h2, w3, out, gw3, gb3, g2, batch, second, 1);
    for (long i = 0; i < batch * second; i++)
        g2[i] *= 1.0 - h2[i] * h2[i];
    dense_back(h1, w2, g2, gw2, gb2, g1, batch, hidden, second);
    for (long i = 0; i < batch * hidden; i++)
        g1[i] *= 1.0 - h1[i] * h1[i];
    dense_back(x, w1, g1, gw1, gb1, NULL, batch, in, hidden);
    free(h1), free(h2), free(g1), free(g2), free(out);
}

/* C = A B: ga = C B^T, gb = A^T C */
void matmul_grad(const double *a, const double *b, long n, double *ga, double *gb)
{
    double *c = calloc(n * n, sizeof(double)), *bt = malloc(n * n * sizeof(double));
    memset(ga, 0, n * n * sizeof(double));
    memset(gb, 0, n * n * sizeof(double));
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            bt[j * n + i] = b[i * n + j];
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++) {
                ga[i * n + j] += c[i * n + k] * bt[k * n + j];
                gb[k * n + j] += a[i * n + k] * c[i * n + j];
            }
    free(c), free(bt);
}

/* y = A x: gx = A^T y, one pass per row while it is in the cache */
void matvec_grad(const double *a, const double *x, long n, double *gx)
{
    memset(gx, 0, n * sizeof(double));
    for (long i = 0; i < n; i++) {
        double part[8] = {0}, y = 0.0;
        long j = 0;
        for (; j + 8 <= n; j += 8)
            for (int q = 0; q < 8; q++)
                part[q] += a[i * n + j + q] * x[j + q];
        for (; j < n; j++)
            y += a[i * n + j] * x[j];
        for (int q = 0; q < 8; q++)
            y += part[q];
        for (j = 0; j < n; j++)
            gx[j] += y * a[i * n + j];
    }
}
