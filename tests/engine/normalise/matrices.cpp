/* Three matrices of rows by one constructor, which the compiler leaves a function. */
#include <vector>

struct Matrix {
    std::vector<std::vector<double>> row;
    Matrix(long rows, long cols) : row(rows, std::vector<double>(cols)) {}
    double &operator()(long i, long j) { return row[i][j]; }
};

static void fill(Matrix &m, const double *x, long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) m(i, j) = x[i * n + j];
}

extern "C" double product(const double *x, const double *y, long n) {
    Matrix a(n, n), b(n, n), c(n, n);
    fill(a, x, n), fill(b, y, n);
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++) c(i, j) += a(i, k) * b(k, j);
    double sum = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) sum += c(i, j) * c(i, j);
    return sum;
}
