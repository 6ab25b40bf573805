/* Dense kernels: factorisations, products, solvers, stencils in time and dynamic programming, in place where one would
   write them so. Matrices are rows of n (or m) numbers. */
#include <math.h>
#include <stdlib.h>

/* Lower factor of a symmetric positive definite matrix, in its lower triangle. */
void cholesky(double *a, long n)
{
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < i; j++) {
            for (long k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
            a[i * n + j] /= a[j * n + j];
        }
        for (long k = 0; k < i; k++)
            a[i * n + i] -= a[i * n + k] * a[i * n + k];
        a[i * n + i] = sqrt(a[i * n + i]);
    }
}

/* Both factors of a matrix, without pivots. */
void lu(double *a, long n)
{
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < i; j++) {
            for (long k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
            a[i * n + j] /= a[j * n + j];
        }
        for (long j = i; j < n; j++)
            for (long k = 0; k < i; k++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
}

/* Lower triangle of beta c + alpha a a'. */
void syrk(const double *a, double *c, long n, long m, double alpha, double beta)
{
    for (long i = 0; i < n; i++) {
        for (long j = 0; j <= i; j++)
            c[i * n + j] *= beta;
        for (long k = 0; k < m; k++)
            for (long j = 0; j <= i; j++)
                c[i * n + j] += alpha * a[i * m + k] * a[j * m + k];
    }
}

/* Lower triangle of beta c + alpha (a b' + b a'). */
void syr2k(const double *a, const double *b, double *c, long n, long m, double alpha, double beta)
{
    for (long i = 0; i < n; i++) {
        for (long j = 0; j <= i; j++)
            c[i * n + j] *= beta;
        for (long k = 0; k < m; k++)
            for (long j = 0; j <= i; j++)
                c[i * n + j] += a[j * m + k] * alpha * b[i * m + k] + b[j * m + k] * alpha * a[i * m + k];
    }
}

/* Solution of l x = b, l lower triangular. */
void trisolv(const double *l, const double *b, double *x, long n)
{
    for (long i = 0; i < n; i++) {
        x[i] = b[i];
        for (long j = 0; j < i; j++)
            x[i] -= l[i * n + j] * x[j];
        x[i] /= l[i * n + i];
    }
}

/* Solution of the Yule-Walker equations: Durbin's recursion. */
void durbin(const double *r, double *y, long n)
{
    double *z = malloc(n * sizeof *z), alpha = -r[0], beta = 1.0;
    y[0] = -r[0];
    for (long k = 1; k < n; k++) {
        double sum = 0.0;
        beta *= 1.0 - alpha * alpha;
        for (long i = 0; i < k; i++)
            sum += r[k - i - 1] * y[i];
        alpha = -(r[k] + sum) / beta;
        for (long i = 0; i < k; i++)
            z[i] = y[i] + alpha * y[k - i - 1];
        for (long i = 0; i < k; i++)
            y[i] = z[i];
        y[k] = alpha;
    }
    free(z);
}

/* Orthonormal columns q and the triangle r with q r = a; modified Gram-Schmidt, a is used up. */
void gramschmidt(double *a, double *r, double *q, long m, long n)
{
    for (long k = 0; k < n; k++) {
        double norm = 0.0;
        for (long i = 0; i < m; i++)
            norm += a[i * n + k] * a[i * n + k];
        r[k * n + k] = sqrt(norm);
        for (long i = 0; i < m; i++)
            q[i * n + k] = a[i * n + k] / r[k * n + k];
        for (long j = k + 1; j < n; j++) {
            r[k * n + j] = 0.0;
            for (long i = 0; i < m; i++)
                r[k * n + j] += q[i * n + k] * a[i * n + j];
            for (long i = 0; i < m; i++)
                a[i * n + j] -= q[i * n + k] * r[k * n + j];
        }
    }
}

/* Heat on a square by alternating directions: a tridiagonal solution a line, columns and rows in turn. */
void adi(double *u, long n, long steps, double across, double along)
{
    double *v = calloc(n * n, sizeof *v), *p = calloc(n * n, sizeof *p), *q = calloc(n * n, sizeof *q);
    double a = -across / 2, b = 1 + across, d = -along / 2, e = 1 + along;
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++) {
            v[i] = 1.0;
            p[i * n] = 0.0;
            q[i * n] = v[i];
            for (long j = 1; j < n - 1; j++) {
                double below = a * p[i * n + j - 1] + b;
                p[i * n + j] = -a / below;
                q[i * n + j] = (-d * u[j * n + i - 1] + (1 + 2 * d) * u[j * n + i] - d * u[j * n + i + 1]
                                - a * q[i * n + j - 1]) / below;
            }
            v[(n - 1) * n + i] = 1.0;
            for (long j = n - 2; j >= 1; j--)
                v[j * n + i] = p[i * n + j] * v[(j + 1) * n + i] + q[i * n + j];
        }
        for (long i = 1; i < n - 1; i++) {
            u[i * n] = 1.0;
            p[i * n] = 0.0;
            q[i * n] = u[i * n];
            for (long j = 1; j < n - 1; j++) {
                double below = d * p[i * n + j - 1] + e;
                p[i * n + j] = -d / below;
                q[i * n + j] = (-a * v[(i - 1) * n + j] + (1 + 2 * a) * v[i * n + j] - a * v[(i + 1) * n + j]
                                - d * q[i * n + j - 1]) / below;
            }
            u[i * n + n - 1] = 1.0;
            for (long j = n - 2; j >= 1; j--)
                u[i * n + j] = p[i * n + j] * u[i * n + j + 1] + q[i * n + j];
        }
    }
    free(v);
    free(p);
    free(q);
}

/* Electric and magnetic fields in a plane, leapfrog. */
void fdtd_2d(double *ex, double *ey, double *hz, const double *source, long n, long steps)
{
    for (long t = 0; t < steps; t++) {
        for (long j = 0; j < n; j++)
            ey[j] = source[t];
        for (long i = 1; i < n; i++)
            for (long j = 0; j < n; j++)
                ey[i * n + j] -= 0.5 * (hz[i * n + j] - hz[(i - 1) * n + j]);
        for (long i = 0; i < n; i++)
            for (long j = 1; j < n; j++)
                ex[i * n + j] -= 0.5 * (hz[i * n + j] - hz[i * n + j - 1]);
        for (long i = 0; i < n - 1; i++)
            for (long j = 0; j < n - 1; j++)
                hz[i * n + j] -= 0.7 * (ex[i * n + j + 1] - ex[i * n + j] + ey[(i + 1) * n + j] - ey[i * n + j]);
    }
}

/* Means of five neighbours, there and back. */
void jacobi_2d(double *a, double *b, long n, long steps)
{
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                b[i * n + j] = 0.2 * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i + 1) * n + j]
                                      + a[(i - 1) * n + j]);
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                a[i * n + j] = 0.2 * (b[i * n + j] + b[i * n + j - 1] + b[i * n + j + 1] + b[(i + 1) * n + j]
                                      + b[(i - 1) * n + j]);
    }
}

/* Means of nine neighbours, in place. */
void seidel_2d(double *a, long n, long steps)
{
    for (long t = 0; t < steps; t++)
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                a[i * n + j] = (a[(i - 1) * n + j - 1] + a[(i - 1) * n + j] + a[(i - 1) * n + j + 1] + a[i * n + j - 1]
                                + a[i * n + j] + a[i * n + j + 1] + a[(i + 1) * n + j - 1] + a[(i + 1) * n + j]
                                + a[(i + 1) * n + j + 1]) / 9.0;
}

/* Least cost of multiplying a chain of matrices: dynamic programming over intervals. */
double intervals(const double *p, double *c, long n)
{
    for (long i = 0; i < n; i++)
        c[i * n + i] = 0.0;
    for (long length = 1; length < n; length++)
        for (long i = 0; i + length < n; i++) {
            long j = i + length;
            double best = INFINITY;
            for (long k = i; k < j; k++) {
                double cost = c[i * n + k] + c[(k + 1) * n + j] + p[i] * p[k + 1] * p[j + 1];
                if (cost < best)
                    best = cost;
            }
            c[i * n + j] = best;
        }
    return c[n - 1];
}
