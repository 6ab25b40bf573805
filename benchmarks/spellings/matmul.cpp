/* Half the squared Frobenius norm of a product of two matrices. */
#include "spelling.h"

#if SPELLING == PLAIN
static double matmul(const double *a, const double *b, int n) {
    double *c = (double *)calloc(n * n, sizeof(double)), s = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    for (int i = 0; i < n * n; i++) s += c[i] * c[i];
    free(c);
    return 0.5 * s;
}
double primal() { return matmul(in[0].flat(), in[1].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)matmul, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0]); }

#elif SPELLING == VECTORS
template <class T> static Matrix<T> operator*(const Matrix<T> &a, const Matrix<T> &b) {
    Matrix<T> c{std::vector<T>(a.rows * b.cols), a.rows, b.cols};
    for (int i = 0; i < a.rows; i++)
        for (int k = 0; k < a.cols; k++)
            for (int j = 0; j < b.cols; j++) c(i, j) += a(i, k) * b(k, j);
    return c;
}
template <class T> static T half_square(const Matrix<T> &a, const Matrix<T> &b) {
    Matrix<T> c = a * b;
    T s = 0;
    for (const T &item : c.data) s += item * item;
    return 0.5 * s;
}
double primal() { return half_square<double>(in[0].matrix, in[1].matrix); }
void gradient() {
    __enzyme_autodiff((void *)half_square<double>, enzyme_dup, &in[0].matrix, &grad[0].matrix, enzyme_dup, &in[1].matrix,
                      &grad[1].matrix);
}

#elif SPELLING == STRUCTS
struct Square {
    double *at;
    int n;
    double *row(int i) const { return at + (size_t)i * n; }
    void add_product(const Square &a, const Square &b) {
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                for (int j = 0; j < n; j++) row(i)[j] += a.row(i)[k] * b.row(k)[j];
    }
    double half_norm() const {
        double s = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) s += row(i)[j] * row(i)[j];
        return 0.5 * s;
    }
};
static double matmul(const Square *a, const Square *b) {
    Square c = {(double *)calloc((size_t)a->n * a->n, sizeof(double)), a->n};
    c.add_product(*a, *b);
    double s = c.half_norm();
    free(c.at);
    return s;
}
double primal() {
    Square a = {in[0].flat(), size[0]}, b = {in[1].flat(), size[0]};
    return matmul(&a, &b);
}
void gradient() {
    Square a = {in[0].flat(), size[0]}, b = {in[1].flat(), size[0]};
    Square da = {grad[0].flat(), size[0]}, db = {grad[1].flat(), size[0]};
    __enzyme_autodiff((void *)matmul, enzyme_dup, &a, &da, enzyme_dup, &b, &db);
}

#elif SPELLING == ROWS
static double matmul(double **a, double **b, int n) {
    double **c = (double **)malloc(n * sizeof(double *)), s = 0;
    for (int i = 0; i < n; i++) c[i] = (double *)calloc(n, sizeof(double));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i][j] += a[i][k] * b[k][j];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) s += c[i][j] * c[i][j];
        free(c[i]);
    }
    free(c);
    return 0.5 * s;
}
double primal() { return matmul(in[0].rows(), in[1].rows(), size[0]); }
void gradient() {
    __enzyme_autodiff((void *)matmul, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_dup, in[1].rows(), grad[1].rows(),
                      enzyme_const, size[0]);
}

#elif SPELLING == CELLS
static void matmul(const double *a, const double *b, int n, double *out) {
    double *c = (double *)calloc(n * n, sizeof(double));
    for (int i = n - 1; i >= 0; i--) {
        int k = 0;
        while (k < n) {
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
            k++;
        }
    }
    *out = 0;
    for (int i = n * n - 1; i >= 0; i--) *out += 0.5 * c[i] * c[i];
    free(c);
}
double primal() {
    double out;
    matmul(in[0].flat(), in[1].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)matmul, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0], enzyme_dup, &out,
                      &seed);
}
#endif
