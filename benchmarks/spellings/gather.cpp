/* Weighted squares of entries that an index array picks from a table. */
#include "spelling.h"

#if SPELLING == PLAIN
static double gather(const double *table, const int *index, const double *w, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += w[i] * table[index[i]] * table[index[i]];
    return s;
}
double primal() { return gather(in[0].flat(), in[1].whole.data(), in[2].flat(), size[0]); }
void gradient() {
    __enzyme_autodiff((void *)gather, enzyme_dup, FLAT(0), enzyme_const, in[1].whole.data(), enzyme_const, in[2].flat(),
                      enzyme_const, size[0]);
}

#elif SPELLING == VECTORS
template <class T> static std::vector<T> picked(const std::vector<T> &table, const std::vector<int> &index) {
    std::vector<T> out;
    out.reserve(index.size());
    for (int i : index) out.push_back(table[i]);
    return out;
}
template <class T> static T gather(const std::vector<T> &table, const std::vector<int> &index, const std::vector<double> &w) {
    std::vector<T> values = picked(table, index);
    T s = 0;
    for (size_t i = 0; i < w.size(); i++) s += w[i] * values[i] * values[i];
    return s;
}
double primal() { return gather<double>(in[0].vec(), in[1].whole, in[2].vec()); }
void gradient() {
    __enzyme_autodiff((void *)gather<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_const, &in[1].whole,
                      enzyme_const, &in[2].vec());
}

#elif SPELLING == STRUCTS
struct Lookup {
    const double *table;
    const int *index;
    int n;
    double value(int i) const { return table[index[i]]; }
    double square(const double *weight) const {
        double s = 0;
        for (int i = 0; i < n; i++) s += weight[i] * value(i) * value(i);
        return s;
    }
};
static double gather(const Lookup *lookup, const double *weight) { return lookup->square(weight); }
static Lookup make(Array *from) { return {from[0].flat(), in[1].whole.data(), size[0]}; }
double primal() {
    Lookup lookup = make(in);
    return gather(&lookup, in[2].flat());
}
void gradient() {
    Lookup lookup = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)gather, enzyme_dup, &lookup, &shadow, enzyme_const, in[2].flat());
}

#elif SPELLING == ROWS
static double gather(double **table, const int *index, double **w, int rows, int cols) {
    double s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            int at = index[i * cols + j];
            double value = table[at / cols][at % cols];
            s += w[i][j] * value * value;
        }
    return s;
}
double primal() { return gather(in[0].rows(), in[1].whole.data(), in[2].rows(), in[0].matrix.rows, in[0].matrix.cols); }
void gradient() {
    __enzyme_autodiff((void *)gather, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[1].whole.data(),
                      enzyme_const, in[2].rows(), enzyme_const, in[0].matrix.rows, enzyme_const, in[0].matrix.cols);
}

#elif SPELLING == CELLS
static void gather(const double *table, const int *index, const double *w, int n, double *out) {
    *out = 0;
    while (n-- > 0) {
        if (index[n] < 0) continue;
        const double *value = table + index[n];
        *out += w[n] * *value * *value;
    }
}
double primal() {
    double out;
    gather(in[0].flat(), in[1].whole.data(), in[2].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)gather, enzyme_dup, FLAT(0), enzyme_const, in[1].whole.data(), enzyme_const, in[2].flat(),
                      enzyme_const, size[0], enzyme_dupnoneed, &out, &seed);
}
#endif
