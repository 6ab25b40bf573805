/* Sum of exp(x) sin(x). */
#include "spelling.h"

#if SPELLING == PLAIN
static double expsin(const double *x, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += exp(x[i]) * sin(x[i]);
    return s;
}
double primal() { return expsin(in[0].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)expsin, enzyme_dup, FLAT(0), enzyme_const, size[0]); }

#elif SPELLING == VECTORS
template <class T> static T term(const T &x) { return exp(x) * sin(x); }
template <class T> static T sum(const std::vector<T> &v) {
    T s = 0;
    for (const T &item : v) s += item;
    return s;
}
template <class T> static T expsin(const std::vector<T> &x) {
    std::vector<T> terms(x.size());
    for (size_t i = 0; i < x.size(); i++) terms[i] = term(x[i]);
    return sum(terms);
}
double primal() { return expsin<double>(in[0].vec()); }
void gradient() { __enzyme_autodiff((void *)expsin<double>, enzyme_dup, &in[0].vec(), &grad[0].vec()); }

#elif SPELLING == STRUCTS
struct Signal {
    const double *at;
    int n;
    double term(int i) const { return exp(at[i]) * sin(at[i]); }
    double sum() const {
        double s = 0;
        for (int i = 0; i < n; i++) s += term(i);
        return s;
    }
};
static double expsin(const Signal *signal) { return signal->sum(); }
double primal() {
    Signal signal = {in[0].flat(), size[0]};
    return expsin(&signal);
}
void gradient() {
    Signal signal = {in[0].flat(), size[0]}, shadow = {grad[0].flat(), size[0]};
    __enzyme_autodiff((void *)expsin, enzyme_dup, &signal, &shadow);
}

#elif SPELLING == ROWS
static double expsin(double **x, int rows, int cols) {
    double s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) s += exp(x[i][j]) * sin(x[i][j]);
    return s;
}
double primal() { return expsin(in[0].rows(), in[0].matrix.rows, in[0].matrix.cols); }
void gradient() {
    __enzyme_autodiff((void *)expsin, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[0].matrix.rows,
                      enzyme_const, in[0].matrix.cols);
}

#elif SPELLING == CELLS
static void expsin(const double *x, int n, double *out) {
    *out = 0;
    while (n-- > 0) {
        double size = exp(x[n]), wave = sin(x[n]);
        if (size <= 0) continue;
        *out += size * wave;
    }
}
double primal() {
    double out;
    expsin(in[0].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)expsin, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_dupnoneed, &out, &seed);
}
#endif
