/* Vector-Jacobian and Jacobian-vector products of kernels/brusselator.c, derived by hand. The periodic Laplacian is
 * symmetric, so that its transpose gathers as well. */
static double laplacian(const double *q, long n, long i, long j)
{
    long up = (i == 0 ? n : i) - 1, down = i == n - 1 ? 0 : i + 1, left = (j == 0 ? n : j) - 1, right = j == n - 1 ? 0 : j + 1;
    return q[up * n + j] + q[down * n + j] + q[i * n + left] + q[i * n + right] - 4.0 * q[i * n + j];
}

void brusselator_vjp(const double *u, const double *v, long n, double b, double alpha, const double *wu, const double *wv,
                     double *gu, double *gv)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            long at = i * n + j;
            double across = wu[at] - wv[at];
            gu[at] = 2.0 * u[at] * v[at] * across - (b + 1.0) * wu[at] + b * wv[at] + alpha * laplacian(wu, n, i, j);
            gv[at] = u[at] * u[at] * across + alpha * laplacian(wv, n, i, j);
        }
}

void brusselator_jvp(const double *u, const double *v, long n, double b, double alpha, const double *tu, const double *tv,
                     double *tdu, double *tdv)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            long at = i * n + j;
            double reaction = 2.0 * u[at] * v[at] * tu[at] + u[at] * u[at] * tv[at];
            tdu[at] = reaction - (b + 1.0) * tu[at] + alpha * laplacian(tu, n, i, j);
            tdv[at] = b * tu[at] - reaction + alpha * laplacian(tv, n, i, j);
        }
}
