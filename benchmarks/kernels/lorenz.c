/* The Lorenz system, integrated from y0; returns half the squared norm of the last state. */
static void slope(const double *y, const double *par, double *dy)
{
    dy[0] = par[0] * (y[1] - y[0]);
    dy[1] = y[0] * (par[1] - y[2]) - y[1];
    dy[2] = y[0] * y[1] - par[2] * y[2];
}

double rk4(const double *y0, const double *par, long steps, double dt)
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
    return 0.5 * (y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
}

double euler(const double *y0, const double *par, long steps, double dt)
{
    double y[3] = {y0[0], y0[1], y0[2]}, dy[3];
    for (long t = 0; t < steps; t++) {
        slope(y, par, dy);
        for (int i = 0; i < 3; i++)
            y[i] += dt * dy[i];
    }
    return 0.5 * (y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
}
