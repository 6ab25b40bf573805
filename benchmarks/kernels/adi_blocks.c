/* Five coupled fields on a cube by alternating directions: lines of 5x5 blocks are eliminated in x, y and z in turn. */
#include <math.h>

enum { N = 12, M = 5 };

typedef double Block[M][M];

/* The derivative of the flux of one point, scaled, and `shift` on its diagonal. */
static void linearised(Block to, const double *u, double scale, double shift)
{
    double pressure = 0.4 * (u[4] - 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0]);
    for (int r = 0; r < M; r++)
        for (int s = 0; s < M; s++)
            to[r][s] = scale * (u[r] * u[s] / (u[0] * u[0]) + (s == 4 ? 0.4 : 0.0) * pressure) + (r == s ? shift : 0.0);
}

/* right -= a left, for a vector. */
static void less_vector(const Block a, const double *left, double *right)
{
    for (int r = 0; r < M; r++)
        for (int s = 0; s < M; s++)
            right[r] -= a[r][s] * left[s];
}

/* c -= a b. */
static void less_product(const Block a, const Block b, Block c)
{
    for (int r = 0; r < M; r++)
        for (int s = 0; s < M; s++)
            for (int t = 0; t < M; t++)
                c[r][s] -= a[r][t] * b[t][s];
}

/* The inverse of a, times c and times v, by elimination; a is used up. */
static void solve(Block a, Block c, double *v)
{
    for (int p = 0; p < M; p++) {
        double pivot = 1.0 / a[p][p];
        for (int s = p + 1; s < M; s++)
            a[p][s] *= pivot;
        for (int s = 0; s < M; s++)
            c[p][s] *= pivot;
        v[p] *= pivot;
        for (int r = 0; r < M; r++) {
            if (r == p)
                continue;
            double factor = a[r][p];
            for (int s = p + 1; s < M; s++)
                a[r][s] -= factor * a[p][s];
            for (int s = 0; s < M; s++)
                c[r][s] -= factor * c[p][s];
            v[r] -= factor * v[p];
        }
    }
}

/* One line of N points, `stride` numbers apart. */
static void line(const double *u, double *rhs, long stride, double dt)
{
    Block lower[N], middle[N], upper[N];
    for (int i = 1; i < N - 1; i++) {
        linearised(lower[i], u + (i - 1) * stride, -dt, -dt);
        linearised(middle[i], u + i * stride, 0.1 * dt, 1 + 2 * dt);
        linearised(upper[i], u + (i + 1) * stride, dt, -dt);
    }
    for (int i = 1; i < N - 1; i++) {
        if (i > 1) {
            less_vector(lower[i], rhs + (i - 1) * stride, rhs + i * stride);
            less_product(lower[i], upper[i - 1], middle[i]);
        }
        solve(middle[i], upper[i], rhs + i * stride);
    }
    for (int i = N - 3; i >= 1; i--)
        less_vector(upper[i], rhs + (i + 1) * stride, rhs + i * stride);
}

static void right_hand_side(const double *u, double *rhs, double dt)
{
    const long at[3] = {N * N * M, N * M, M};
    for (long i = 1; i < N - 1; i++)
        for (long j = 1; j < N - 1; j++)
            for (long k = 1; k < N - 1; k++) {
                const double *here = u + ((i * N + j) * N + k) * M;
                double *to = rhs + (here - u);
                for (int m = 0; m < M; m++) {
                    double sum = 0.0;
                    for (int d = 0; d < 3; d++) {
                        const double *up = here + at[d], *down = here - at[d];
                        sum += up[m] - 2 * here[m] + down[m] - 0.5 * (up[m] * up[1 + d] / up[0] - down[m] * down[1 + d] / down[0]);
                    }
                    to[m] = dt * sum;
                }
            }
}

void adi_blocks(double *u, double *rhs, long steps, double dt)
{
    for (long t = 0; t < steps; t++) {
        right_hand_side(u, rhs, dt);
        for (long i = 1; i < N - 1; i++)
            for (long j = 1; j < N - 1; j++)
                line(u + (i * N + j) * N * M, rhs + (i * N + j) * N * M, M, dt);
        for (long i = 1; i < N - 1; i++)
            for (long k = 1; k < N - 1; k++)
                line(u + (i * N * N + k) * M, rhs + (i * N * N + k) * M, N * M, dt);
        for (long j = 1; j < N - 1; j++)
            for (long k = 1; k < N - 1; k++)
                line(u + (j * N + k) * M, rhs + (j * N + k) * M, N * N * M, dt);
        for (long i = 1; i < N - 1; i++)
            for (long j = 1; j < N - 1; j++)
                for (long k = 1; k < N - 1; k++)
                    for (int m = 0; m < M; m++)
                        u[((i * N + j) * N + k) * M + m] += rhs[((i * N + j) * N + k) * M + m];
    }
}
