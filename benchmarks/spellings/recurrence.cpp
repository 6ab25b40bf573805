/* The linear recurrence h <- a h + b from zero, summed over the steps. */
#include "spelling.h"

#if SPELLING == PLAIN
static double recurrence(const double *a, const double *b, int n) {
    double h = 0, s = 0;
    for (int i = 0; i < n; i++) {
        h = a[i] * h + b[i];
        s += h;
    }
    return s;
}
double primal() { return recurrence(in[0].flat(), in[1].flat(), size[0]); }
void gradient() {
    __enzyme_autodiff((void *)recurrence, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0]);
}

#elif SPELLING == VECTORS
template <class T> static std::vector<T> states(const std::vector<T> &a, const std::vector<T> &b) {
    std::vector<T> h(a.size() + 1);
    for (size_t i = 0; i < a.size(); i++) h[i + 1] = a[i] * h[i] + b[i];
    return h;
}
template <class T> static T recurrence(const std::vector<T> &a, const std::vector<T> &b) {
    T s = 0;
    for (const T &item : states(a, b)) s += item;
    return s;
}
double primal() { return recurrence<double>(in[0].vec(), in[1].vec()); }
void gradient() {
    __enzyme_autodiff((void *)recurrence<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_dup, &in[1].vec(),
                      &grad[1].vec());
}

#elif SPELLING == STRUCTS
struct Filter {
    const double *decay, *input;
    int n;
};
struct State {
    double h, sum;
    void step(const Filter &filter, int i) {
        h = filter.decay[i] * h + filter.input[i];
        sum += h;
    }
};
static double recurrence(const Filter *filter) {
    State state = {0, 0};
    for (int i = 0; i < filter->n; i++) state.step(*filter, i);
    return state.sum;
}
static Filter make(Array *from) { return {from[0].flat(), from[1].flat(), size[0]}; }
double primal() {
    Filter filter = make(in);
    return recurrence(&filter);
}
void gradient() {
    Filter filter = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)recurrence, enzyme_dup, &filter, &shadow);
}

#elif SPELLING == ROWS
static double recurrence(double **a, double **b, int rows, int cols) {
    double h = 0, s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            h = a[i][j] * h + b[i][j];
            s += h;
        }
    return s;
}
double primal() { return recurrence(in[0].rows(), in[1].rows(), in[0].matrix.rows, in[0].matrix.cols); }
void gradient() {
    __enzyme_autodiff((void *)recurrence, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_dup, in[1].rows(),
                      grad[1].rows(), enzyme_const, in[0].matrix.rows, enzyme_const, in[0].matrix.cols);
}

#elif SPELLING == CELLS
static void recurrence(const double *a, const double *b, int n, double *out) {
    double h = 0;
    *out = 0;
    while (n-- > 0) {
        h *= *a++;
        h += *b++;
        *out += h;
    }
}
double primal() {
    double out;
    recurrence(in[0].flat(), in[1].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)recurrence, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, size[0],
                      enzyme_dupnoneed, &out, &seed);
}
#endif
