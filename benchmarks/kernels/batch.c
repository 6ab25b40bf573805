/* Functions with several outputs, for many derivatives at once. */
#include <math.h>

static void slope(const double *y, const double *par, double *dy)
{
    dy[0] = par[0] * (y[1] - y[0]);
    dy[1] = y[0] * (par[1] - y[2]) - y[1];
    dy[2] = y[0] * y[1] - par[2] * y[2];
}

/* The Lorenz system, integrated from y0 by the classical Runge-Kutta method */
void rk4_state(const double *y0, const double *par, double *out, long steps, double dt)
{
    double y[3] = {y0[0], y0[1], y0[2]};
    double k1[3], k2[3], k3[3], k4[3], at[3];
    for (long t = 0; t < steps; t++) {
        slope(y, par, k1);
        for (int i = 0; i < 3; i++)
            at[i] = y[i] + 0.5 * dt * k1[i];
        slope(at, par, k2);
        for (int i = 0; i < 3; i++)
            at[i] = y[i] + 0.5 * dt * k2[i];
        slope(at, par, k3);
        for (int i = 0; i < 3; i++)
            at[i] = y[i] + dt * k3[i];
        slope(at, par, k4);
        for (int i = 0; i < 3; i++)
            y[i] += dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
    for (int i = 0; i < 3; i++)
        out[i] = y[i];
}

/* y = tanh(W3 tanh(W2 tanh(W1 x + b1) + b2) + b3), all layers n wide */
void layers(const double *x, const double *w, const double *b, double *y, long n)
{
    double first[256], second[256];
    const double *in = x;
    for (int layer = 0; layer < 3; layer++) {
        double *to = layer == 0 ? first : layer == 1 ? second : y;
        for (long i = 0; i < n; i++) {
            double s = b[layer * n + i];
            for (long j = 0; j < n; j++)
                s += w[(layer * n + i) * n + j] * in[j];
            to[i] = tanh(s);
        }
        in = to;
    }
}

/* y = exp(x) sin(x), element by element */
void expsin_map(const double *x, double *y, long n)
{
    for (long i = 0; i < n; i++)
        y[i] = exp(x[i]) * sin(x[i]);
}

/* Gravitational acceleration of n bodies, softened */
void acceleration(const double *pos, const double *mass, double *acc, long n)
{
    for (long i = 0; i < n; i++) {
        double ax = 0.0, ay = 0.0, az = 0.0;
        for (long j = 0; j < n; j++) {
            double dx = pos[3 * j] - pos[3 * i];
            double dy = pos[3 * j + 1] - pos[3 * i + 1];
            double dz = pos[3 * j + 2] - pos[3 * i + 2];
            double r2 = dx * dx + dy * dy + dz * dz + 1e-2;
            double f = mass[j] / (r2 * sqrt(r2));
            ax += f * dx;
            ay += f * dy;
            az += f * dz;
        }
        acc[3 * i] = ax;
        acc[3 * i + 1] = ay;
        acc[3 * i + 2] = az;
    }
}
