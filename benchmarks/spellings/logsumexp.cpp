/* Log of the sum of exp(x), shifted by the largest entry. There are no rows: (e) goes through an array of chunks. */
#include "spelling.h"

#if SPELLING == PLAIN
static double logsumexp(const double *x, int n) {
    double top = x[0], s = 0;
    for (int i = 1; i < n; i++) if (x[i] > top) top = x[i];
    for (int i = 0; i < n; i++) s += exp(x[i] - top);
    return top + log(s);
}
double primal() { return logsumexp(in[0].flat(), size[0]); }
void gradient() { __enzyme_autodiff((void *)logsumexp, enzyme_dup, FLAT(0), enzyme_const, size[0]); }

#elif SPELLING == VECTORS
template <class T> static T largest(const std::vector<T> &x) {
    T top = x[0];
    for (const T &item : x) top = std::max(top, item);
    return top;
}
template <class T> static T logsumexp(const std::vector<T> &x) {
    const T top = largest(x);
    T s = 0;
    for (size_t i = 0; i < x.size(); i++) s += exp(x[i] - top);
    return top + log(s);
}
double primal() { return logsumexp<double>(in[0].vec()); }
void gradient() { __enzyme_autodiff((void *)logsumexp<double>, enzyme_dup, &in[0].vec(), &grad[0].vec()); }

#elif SPELLING == STRUCTS
struct View {
    const double *at;
    int n;
    double largest() const {
        double top = at[0];
        for (int i = 1; i < n; i++) top = fmax(top, at[i]);
        return top;
    }
    double shifted(double top) const {
        double s = 0;
        for (int i = 0; i < n; i++) s += exp(at[i] - top);
        return s;
    }
};
static double logsumexp(const View *x) {
    double top = x->largest();
    return top + log(x->shifted(top));
}
double primal() {
    View x = {in[0].flat(), size[0]};
    return logsumexp(&x);
}
void gradient() {
    View x = {in[0].flat(), size[0]}, dx = {grad[0].flat(), size[0]};
    __enzyme_autodiff((void *)logsumexp, enzyme_dup, &x, &dx);
}

#elif SPELLING == ROWS
static double logsumexp(double **x, int rows, int n) {
    double top = x[0][0], s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) if (x[i][j] > top) top = x[i][j];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) s += exp(x[i][j] - top);
    return top + log(s);
}
double primal() { return logsumexp(in[0].rows(), in[0].matrix.rows, in[0].matrix.cols); }
void gradient() {
    __enzyme_autodiff((void *)logsumexp, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[0].matrix.rows,
                      enzyme_const, in[0].matrix.cols);
}

#elif SPELLING == CELLS
static void logsumexp(const double *x, int n, double *out) {
    double top = x[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        if (x[i] <= top) continue;
        top = x[i];
    }
    *out = 0;
    while (n-- > 0) *out += exp(x[n] - top);
    *out = top + log(*out);
}
double primal() {
    double out;
    logsumexp(in[0].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)logsumexp, enzyme_dup, FLAT(0), enzyme_const, size[0], enzyme_dupnoneed, &out, &seed);
}
#endif
