#include <math.h>
double energy(const double *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) { double d = pos[3*i+k] - pos[3*j+k]; r += d * d; }
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
static void slope(const double *y, double *dy) {
    dy[0] = 10 * (y[1] - y[0]); dy[1] = y[0] * (28 - y[2]) - y[1]; dy[2] = y[0] * y[1] - 8.0 / 3 * y[2];
}
void rk4(double *y, double h, long steps) {
    for (long s = 0; s < steps; s++) {
        double k[4][3], t[3];
        slope(y, k[0]);
        for (int m = 1; m < 4; m++) {
            double w = m == 3 ? h : h / 2;
            for (int i = 0; i < 3; i++) t[i] = y[i] + w * k[m - 1][i];
            slope(t, k[m]);
        }
        for (int i = 0; i < 3; i++) y[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}
void diffuse(const double *u, double *v, long n) {
    v[0] = u[0]; v[n - 1] = u[n - 1];
    for (long i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * exp(-u[i]);
}
