/* Right-hand side of the Brusselator on a periodic grid, definitions as in kernels/brusselator.c; half its squared norm. */
#include "spelling.h"

#if SPELLING == PLAIN
static double laplacian(const double *q, int n, int i, int j) {
    int up = (i + n - 1) % n, down = (i + 1) % n, left = (j + n - 1) % n, right = (j + 1) % n;
    return q[up * n + j] + q[down * n + j] + q[i * n + left] + q[i * n + right] - 4 * q[i * n + j];
}
static double brusselator(const double *u, const double *v, int n, double a, double b, double alpha) {
    double *du = (double *)malloc(n * n * sizeof(double)), *dv = (double *)malloc(n * n * sizeof(double)), s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int at = i * n + j;
            double reaction = u[at] * u[at] * v[at];
            du[at] = a + reaction - (b + 1) * u[at] + alpha * laplacian(u, n, i, j);
            dv[at] = b * u[at] - reaction + alpha * laplacian(v, n, i, j);
        }
    for (int i = 0; i < n * n; i++) s += du[i] * du[i] + dv[i] * dv[i];
    free(du), free(dv);
    return 0.5 * s;
}
double primal() { return brusselator(in[0].flat(), in[1].flat(), size[0], real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)brusselator, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_const,
                      real[0], enzyme_const, real[1], enzyme_const, real[2]);
}

#elif SPELLING == VECTORS
template <class T> static T laplacian(const Matrix<T> &q, int i, int j) {
    const int up = i == 0 ? q.rows - 1 : i - 1, down = i == q.rows - 1 ? 0 : i + 1;
    const int left = j == 0 ? q.cols - 1 : j - 1, right = j == q.cols - 1 ? 0 : j + 1;
    return q(up, j) + q(down, j) + q(i, left) + q(i, right) - 4.0 * q(i, j);
}
template <class T> static T square(const Matrix<T> &q) {
    T s = 0;
    for (const T &item : q.data) s += item * item;
    return s;
}
template <class T> static T brusselator(const Matrix<T> &u, const Matrix<T> &v, double a, double b, double alpha) {
    Matrix<T> du = u, dv = v;
    for (int i = 0; i < u.rows; i++)
        for (int j = 0; j < u.cols; j++) {
            T reaction = u(i, j) * u(i, j) * v(i, j);
            du(i, j) = a + reaction - (b + 1.0) * u(i, j) + alpha * laplacian(u, i, j);
            dv(i, j) = b * u(i, j) - reaction + alpha * laplacian(v, i, j);
        }
    return 0.5 * (square(du) + square(dv));
}
double primal() { return brusselator<double>(in[0].matrix, in[1].matrix, real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)brusselator<double>, enzyme_dup, &in[0].matrix, &grad[0].matrix, enzyme_dup,
                      &in[1].matrix, &grad[1].matrix, enzyme_const, real[0], enzyme_const, real[1], enzyme_const, real[2]);
}

#elif SPELLING == STRUCTS
struct Grid {
    double *at;
    int n;
    double &operator()(int i, int j) const { return at[(size_t)i * n + j]; }
    int before(int i) const { return i == 0 ? n - 1 : i - 1; }
    int after(int i) const { return i == n - 1 ? 0 : i + 1; }
    double laplacian(int i, int j) const {
        const Grid &q = *this;
        return q(before(i), j) + q(after(i), j) + q(i, before(j)) + q(i, after(j)) - 4 * q(i, j);
    }
    double square() const {
        double s = 0;
        for (int i = 0; i < n * n; i++) s += at[i] * at[i];
        return s;
    }
};
struct Fields {
    Grid u, v;
    void rates(Fields &out, double a, double b, double alpha) const {
        for (int i = 0; i < u.n; i++)
            for (int j = 0; j < u.n; j++) {
                double reaction = u(i, j) * u(i, j) * v(i, j);
                out.u(i, j) = a + reaction - (b + 1) * u(i, j) + alpha * u.laplacian(i, j);
                out.v(i, j) = b * u(i, j) - reaction + alpha * v.laplacian(i, j);
            }
    }
};
static double brusselator(const Fields *fields, double a, double b, double alpha) {
    int n = fields->u.n;
    Fields out = {{new double[n * n], n}, {new double[n * n], n}};
    fields->rates(out, a, b, alpha);
    double result = 0.5 * (out.u.square() + out.v.square());
    delete[] out.u.at;
    delete[] out.v.at;
    return result;
}
static Fields make(Array *from) { return {{from[0].flat(), size[0]}, {from[1].flat(), size[0]}}; }
double primal() {
    Fields fields = make(in);
    return brusselator(&fields, real[0], real[1], real[2]);
}
void gradient() {
    Fields fields = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)brusselator, enzyme_dup, &fields, &shadow, enzyme_const, real[0], enzyme_const, real[1],
                      enzyme_const, real[2]);
}

#elif SPELLING == ROWS
static double laplacian(double **q, int n, int i, int j) {
    int up = i == 0 ? n - 1 : i - 1, down = i == n - 1 ? 0 : i + 1;
    int left = j == 0 ? n - 1 : j - 1, right = j == n - 1 ? 0 : j + 1;
    return q[up][j] + q[down][j] + q[i][left] + q[i][right] - 4 * q[i][j];
}
static double brusselator(double **u, double **v, int n, double a, double b, double alpha) {
    double **du = (double **)malloc(n * sizeof(double *)), **dv = (double **)malloc(n * sizeof(double *)), s = 0;
    for (int i = 0; i < n; i++) du[i] = (double *)malloc(n * sizeof(double)), dv[i] = (double *)malloc(n * sizeof(double));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double reaction = u[i][j] * u[i][j] * v[i][j];
            du[i][j] = a + reaction - (b + 1) * u[i][j] + alpha * laplacian(u, n, i, j);
            dv[i][j] = b * u[i][j] - reaction + alpha * laplacian(v, n, i, j);
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) s += du[i][j] * du[i][j] + dv[i][j] * dv[i][j];
    for (int i = 0; i < n; i++) free(du[i]), free(dv[i]);
    free(du), free(dv);
    return 0.5 * s;
}
double primal() { return brusselator(in[0].rows(), in[1].rows(), size[0], real[0], real[1], real[2]); }
void gradient() {
    __enzyme_autodiff((void *)brusselator, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_dup, in[1].rows(),
                      grad[1].rows(), enzyme_const, size[0], enzyme_const, real[0], enzyme_const, real[1], enzyme_const,
                      real[2]);
}

#elif SPELLING == CELLS
static void add_laplacian(const double *q, int n, double alpha, double *out) {
    for (int i = n - 1; i >= 0; i--)
        for (int j = n - 1; j >= 0; j--) {
            int at = i * n + j;
            out[at] -= 4 * alpha * q[at];
            out[at] += alpha * q[i > 0 ? at - n : at + n * (n - 1)];
            out[at] += alpha * q[i < n - 1 ? at + n : at - n * (n - 1)];
            out[at] += alpha * q[j > 0 ? at - 1 : at + n - 1];
            out[at] += alpha * q[j < n - 1 ? at + 1 : at - n + 1];
        }
}
static void brusselator(const double *u, const double *v, int n, double a, double b, double alpha, double *out) {
    double *du = (double *)malloc(n * n * sizeof(double)), *dv = (double *)malloc(n * n * sizeof(double));
    int at = n * n;
    while (at-- > 0) {
        double reaction = u[at] * u[at] * v[at];
        du[at] = a + reaction - (b + 1) * u[at];
        dv[at] = b * u[at] - reaction;
    }
    add_laplacian(u, n, alpha, du);
    add_laplacian(v, n, alpha, dv);
    *out = 0;
    for (int i = n * n - 1; i >= 0; i--) {
        *out += 0.5 * du[i] * du[i];
        *out += 0.5 * dv[i] * dv[i];
    }
    free(du), free(dv);
}
double primal() {
    double out;
    brusselator(in[0].flat(), in[1].flat(), size[0], real[0], real[1], real[2], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)brusselator, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_const,
                      real[0], enzyme_const, real[1], enzyme_const, real[2], enzyme_dupnoneed, &out, &seed);
}
#endif
