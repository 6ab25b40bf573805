/* Gradients of kernels/lorenz.c, derived by hand: states kept per step, the stages of RK4 computed again. */
#include <stdlib.h>
#include <string.h>

static void slope(const double *y, const double *p, double *dy)
{
    dy[0] = p[0] * (y[1] - y[0]);
    dy[1] = y[0] * (p[1] - y[2]) - y[1];
    dy[2] = y[0] * y[1] - p[2] * y[2];
}

/* gy += (d slope/dy)^T w and gp += (d slope/dp)^T w */
static void pull(const double *y, const double *p, const double *w, double *gy, double *gp)
{
    gy[0] += -p[0] * w[0] + (p[1] - y[2]) * w[1] + y[1] * w[2];
    gy[1] += p[0] * w[0] - w[1] + y[0] * w[2];
    gy[2] += -y[0] * w[1] - p[2] * w[2];
    gp[0] += (y[1] - y[0]) * w[0];
    gp[1] += y[0] * w[1];
    gp[2] -= y[2] * w[2];
}

static void stages(const double *y, const double *p, double dt, double at[4][3], double k[4][3])
{
    static const double ahead[4] = {0.0, 0.5, 0.5, 1.0};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 3; i++)
            at[s][i] = s == 0 ? y[i] : y[i] + ahead[s] * dt * k[s - 1][i];
        slope(at[s], p, k[s]);
    }
}

void rk4_grad(const double *y0, const double *par, long steps, double dt, double *gy, double *gp)
{
    static const double share[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}, ahead[4] = {0.0, 0.5, 0.5, 1.0};
    double(*kept)[3] = malloc((steps + 1) * sizeof(*kept)), at[4][3], k[4][3], g[3], q[3] = {0, 0, 0};
    double p[3] = {par[0], par[1], par[2]};
    memcpy(kept[0], y0, sizeof(*kept));
    for (long t = 0; t < steps; t++) {
        stages(kept[t], p, dt, at, k);
        for (int i = 0; i < 3; i++)
            kept[t + 1][i] = kept[t][i] + dt / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    }
    memcpy(g, kept[steps], sizeof(g));
    for (long t = steps - 1; t >= 0; t--) {
        double below[3] = {0, 0, 0}, total[3] = {g[0], g[1], g[2]};
        stages(kept[t], p, dt, at, k);
        for (int s = 3; s >= 0; s--) {
            double w[3], gat[3] = {0, 0, 0};
            for (int i = 0; i < 3; i++)
                w[i] = dt * share[s] * g[i] + below[i];
            pull(at[s], p, w, gat, q);
            for (int i = 0; i < 3; i++) {
                total[i] += gat[i];
                below[i] = ahead[s] * dt * gat[i];
            }
        }
        memcpy(g, total, sizeof(g));
    }
    memcpy(gy, g, sizeof(g));
    memcpy(gp, q, sizeof(q));
    free(kept);
}

void euler_grad(const double *y0, const double *par, long steps, double dt, double *gy, double *gp)
{
    double(*kept)[3] = malloc(steps * sizeof(*kept)), y[3] = {y0[0], y0[1], y0[2]}, dy[3], q[3] = {0, 0, 0};
    double p[3] = {par[0], par[1], par[2]};
    for (long t = 0; t < steps; t++) {
        memcpy(kept[t], y, sizeof(y));
        slope(y, p, dy);
        for (int i = 0; i < 3; i++)
            y[i] += dt * dy[i];
    }
    for (long t = steps - 1; t >= 0; t--) {
        double w[3] = {dt * y[0], dt * y[1], dt * y[2]};
        pull(kept[t], p, w, y, q);
    }
    memcpy(gy, y, sizeof(y));
    memcpy(gp, q, sizeof(q));
    free(kept);
}
