/* Product of all entries. */
#include "spelling.h"

#if SPELLING == PLAIN
static double product(const double *x, int n) {
    double p = 1;
    for (int i = 0; i < n; i++) p *= x[i];
    return p;
}
double primal() { return product(in[0].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)product, enzyme_dup, FLAT(0), enzyme_const, size[0]); }

#elif SPELLING == VECTORS
template <class T, class F> static T fold(const std::vector<T> &v, T first, F combine) {
    for (const T &item : v) first = combine(first, item);
    return first;
}
template <class T> static T product(const std::vector<T> &x) {
    return fold(x, T(1), [](const T &a, const T &b) { return a * b; });
}
double primal() { return product<double>(in[0].vec()); }
void gradient() { __enzyme_autodiff((void *)product<double>, enzyme_dup, &in[0].vec(), &grad[0].vec()); }

#elif SPELLING == STRUCTS
struct Factors {
    const double *at;
    int n;
};
struct Running {
    double value;
    void times(double factor) { value *= factor; }
};
static double product(const Factors *factors) {
    Running running = {1};
    for (int i = 0; i < factors->n; i++) running.times(factors->at[i]);
    return running.value;
}
double primal() {
    Factors factors = {in[0].flat(), size[0]};
    return product(&factors);
}
void gradient() {
    Factors factors = {in[0].flat(), size[0]}, shadow = {grad[0].flat(), size[0]};
    __enzyme_autodiff((void *)product, enzyme_dup, &factors, &shadow);
}

#elif SPELLING == ROWS
static double product(double **x, int rows, int cols) {
    double p = 1;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) p *= x[i][j];
    return p;
}
double primal() { return product(in[0].rows(), in[0].matrix.rows, in[0].matrix.cols); }
void gradient() {
    __enzyme_autodiff((void *)product, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[0].matrix.rows,
                      enzyme_const, in[0].matrix.cols);
}

#elif SPELLING == CELLS
static void product(const double *x, int n, double *out) {
    *out = 1;
    while (n-- > 0) *out *= x[n];
}
double primal() {
    double out;
    product(in[0].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)product, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_dupnoneed, &out, &seed);
}
#endif
