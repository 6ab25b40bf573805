/* Half the squared norm of a matrix times a vector. */
#include "spelling.h"

#if SPELLING == PLAIN
static double matvec(const double *a, const double *x, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        double y = 0;
        for (int j = 0; j < n; j++) y += a[i * n + j] * x[j];
        s += y * y;
    }
    return 0.5 * s;
}
double primal() { return matvec(in[0].flat(), in[1].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)matvec, enzyme_const, in[0].flat(), enzyme_dup, FLAT(1), enzyme_const, size[0]); }

#elif SPELLING == VECTORS
template <class T> static std::vector<T> operator*(const Matrix<T> &a, const std::vector<T> &x) {
    std::vector<T> y(a.rows);
    for (int i = 0; i < a.rows; i++)
        for (int j = 0; j < a.cols; j++) y[i] += a(i, j) * x[j];
    return y;
}
template <class T> static T half_square(const Matrix<T> &a, const std::vector<T> &x) {
    T s = 0;
    for (const T &item : a * x) s += item * item;
    return 0.5 * s;
}
double primal() { return half_square<double>(in[0].matrix, in[1].vec()); }
void gradient() {
    __enzyme_autodiff((void *)half_square<double>, enzyme_const, &in[0].matrix, enzyme_dup, &in[1].vec(), &grad[1].vec());
}

#elif SPELLING == STRUCTS
struct Operator {
    const double *a;
    int n;
    double row(int i, const double *x) const {
        double y = 0;
        for (int j = 0; j < n; j++) y += a[(size_t)i * n + j] * x[j];
        return y;
    }
};
static double matvec(const Operator *a, const double *x) {
    double s = 0;
    for (int i = 0; i < a->n; i++) s += a->row(i, x) * a->row(i, x);
    return 0.5 * s;
}
double primal() {
    Operator a = {in[0].flat(), size[0]};
    return matvec(&a, in[1].flat());
}
void gradient() {
    Operator a = {in[0].flat(), size[0]};
    __enzyme_autodiff((void *)matvec, enzyme_const, &a, enzyme_dup, FLAT(1));
}

#elif SPELLING == ROWS
static double matvec(double **a, const double *x, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        double y = 0;
        for (int j = 0; j < n; j++) y += a[i][j] * x[j];
        s += y * y;
    }
    return 0.5 * s;
}
double primal() { return matvec(in[0].rows(), in[1].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)matvec, enzyme_const, in[0].rows(), enzyme_dup, FLAT(1), enzyme_const, size[0]); }

#elif SPELLING == CELLS
static void matvec(const double *a, const double *x, int n, double *out) {
    double *y = (double *)calloc(n, sizeof(double));
    for (int i = n - 1; i >= 0; i--)
        for (int j = n - 1; j >= 0; j--) y[i] += a[i * n + j] * x[j];
    *out = 0;
    int i = 0;
    while (i < n) *out += 0.5 * y[i] * y[i], i++;
    free(y);
}
double primal() {
    double out;
    matvec(in[0].flat(), in[1].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)matvec, enzyme_const, in[0].flat(), enzyme_dup, FLAT(1), enzyme_const, size[0],
                      enzyme_dupnoneed, &out, &seed);
}
#endif
