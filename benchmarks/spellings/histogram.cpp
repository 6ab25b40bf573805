/* Half the squared norm of the histogram of weights over bins. */
#include "spelling.h"

#if SPELLING == PLAIN
static double histogram(const double *x, const int *bin, int n, int bins) {
    double *h = (double *)calloc(bins, sizeof(double)), s = 0;
    for (int i = 0; i < n; i++) h[bin[i]] += x[i];
    for (int j = 0; j < bins; j++) s += h[j] * h[j];
    free(h);
    return 0.5 * s;
}
double primal() { return histogram(in[0].flat(), in[1].whole.data(), size[0], size[1]); }
void gradient() {
    __enzyme_autodiff((void *)histogram, enzyme_dup, FLAT(0), enzyme_const, in[1].whole.data(), enzyme_const, size[0],
                      enzyme_const, size[1]);
}

#elif SPELLING == VECTORS
template <class T> static T histogram(const std::vector<T> &x, const std::vector<int> &bin, int bins) {
    std::vector<T> h(bins, T(0));
    for (size_t i = 0; i < x.size(); i++) h[bin[i]] += x[i];
    T s = 0;
    for (const T &item : h) s += item * item;
    return 0.5 * s;
}
double primal() { return histogram<double>(in[0].vec(), in[1].whole, size[1]); }
void gradient() {
    __enzyme_autodiff((void *)histogram<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_const, &in[1].whole,
                      enzyme_const, size[1]);
}

#elif SPELLING == STRUCTS
struct Samples {
    const double *weight;
    const int *bin;
    int n;
};
struct Histogram {
    double *count;
    int bins;
    void add(int bin, double weight) { count[bin] += weight; }
    double half_norm() const {
        double s = 0;
        for (int j = 0; j < bins; j++) s += count[j] * count[j];
        return 0.5 * s;
    }
};
static double histogram(const Samples *samples, int bins) {
    Histogram h = {new double[bins](), bins};
    for (int i = 0; i < samples->n; i++) h.add(samples->bin[i], samples->weight[i]);
    double result = h.half_norm();
    delete[] h.count;
    return result;
}
static Samples make(Array *from) { return {from[0].flat(), in[1].whole.data(), size[0]}; }
double primal() {
    Samples samples = make(in);
    return histogram(&samples, size[1]);
}
void gradient() {
    Samples samples = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)histogram, enzyme_dup, &samples, &shadow, enzyme_const, size[1]);
}

#elif SPELLING == ROWS
static double histogram(double **x, const int *bin, int rows, int cols, int bins) {
    double *h = (double *)calloc(bins, sizeof(double)), s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) h[bin[i * cols + j]] += x[i][j];
    for (int j = 0; j < bins; j++) s += h[j] * h[j];
    free(h);
    return 0.5 * s;
}
double primal() {
    return histogram(in[0].rows(), in[1].whole.data(), in[0].matrix.rows, in[0].matrix.cols, size[1]);
}
void gradient() {
    __enzyme_autodiff((void *)histogram, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[1].whole.data(),
                      enzyme_const, in[0].matrix.rows, enzyme_const, in[0].matrix.cols, enzyme_const, size[1]);
}

#elif SPELLING == CELLS
static void histogram(const double *x, const int *bin, int n, int bins, double *out) {
    double *h = (double *)malloc(bins * sizeof(double));
    for (int j = bins - 1; j >= 0; j--) h[j] = 0;
    while (n-- > 0) {
        if (bin[n] < 0) continue;
        h[bin[n]] += x[n];
    }
    *out = 0;
    for (int j = bins - 1; j >= 0; j--) *out += 0.5 * h[j] * h[j];
    free(h);
}
double primal() {
    double out;
    histogram(in[0].flat(), in[1].whole.data(), size[0], size[1], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)histogram, enzyme_dup, FLAT(0), enzyme_const, in[1].whole.data(), enzyme_const, size[0],
                      enzyme_const, size[1], enzyme_dupnoneed, &out, &seed);
}
#endif
