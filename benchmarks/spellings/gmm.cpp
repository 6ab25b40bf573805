/* Log-likelihood of a Gaussian mixture with a Wishart prior; definitions as in kernels/gmm.c.
 * Here the triangle of a precision is packed column by column and read by a running index. */
#include "spelling.h"

static double constant(int m, int k, int d, int n, double gamma) {
    double below = n + 0, p = d, degrees = d + m + 1, s = 0.25 * p * (p - 1) * log(M_PI);
    for (int j = 1; j <= d; j++) s += lgamma(0.5 * degrees + 0.5 * (1 - j));
    double prior = degrees * p * (log(gamma) - 0.5 * log(2.0)) - s;
    return -0.5 * below * p * log(2.0 * M_PI) - k * prior;
}

#if SPELLING == PLAIN
static double log_sum_exp(int n, const double *v) {
    double top = v[0], s = 0;
    for (int i = 1; i < n; i++) if (v[i] > top) top = v[i];
    for (int i = 0; i < n; i++) s += exp(v[i] - top);
    return top + log(s);
}
static double gmm(const double *alphas, const double *means, const double *icf, const double *x, double gamma, int m,
                  int k, int d, int n) {
    int row = d * (d + 1) / 2;
    double *diagonals = (double *)malloc(k * d * sizeof(double)), *sums = (double *)malloc(k * sizeof(double));
    double *centred = (double *)malloc(d * sizeof(double)), *scaled = (double *)malloc(d * sizeof(double));
    double *terms = (double *)malloc(k * sizeof(double)), likelihood = 0, prior = 0;
    for (int j = 0; j < k; j++) {
        sums[j] = 0;
        for (int i = 0; i < d; i++) sums[j] += icf[j * row + i], diagonals[j * d + i] = exp(icf[j * row + i]);
    }
    for (int p = 0; p < n; p++) {
        for (int j = 0; j < k; j++) {
            double square = 0;
            for (int i = 0; i < d; i++) centred[i] = x[p * d + i] - means[j * d + i];
            for (int i = 0; i < d; i++) scaled[i] = diagonals[j * d + i] * centred[i];
            int at = j * row + d;
            for (int i = 0; i < d; i++)
                for (int l = i + 1; l < d; l++) scaled[l] += icf[at++] * centred[i];
            for (int i = 0; i < d; i++) square += scaled[i] * scaled[i];
            terms[j] = alphas[j] + sums[j] - 0.5 * square;
        }
        likelihood += log_sum_exp(k, terms);
    }
    for (int j = 0; j < k; j++) {
        double square = 0;
        for (int i = 0; i < d; i++) square += diagonals[j * d + i] * diagonals[j * d + i];
        for (int i = d; i < row; i++) square += icf[j * row + i] * icf[j * row + i];
        prior += 0.5 * gamma * gamma * square - m * sums[j];
    }
    double result = constant(m, k, d, n, gamma) + likelihood - n * log_sum_exp(k, alphas) + prior;
    free(diagonals), free(sums), free(centred), free(scaled), free(terms);
    return result;
}
double primal() { return gmm(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), real[0], size[0], size[1], size[2], size[3]); }
void gradient() {
    __enzyme_autodiff((void *)gmm, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_dup, FLAT(2), enzyme_const,
                      in[3].flat(), enzyme_const, real[0], enzyme_const, size[0], enzyme_const, size[1], enzyme_const,
                      size[2], enzyme_const, size[3]);
}

#elif SPELLING == VECTORS
template <class T> static T square_norm(const std::vector<T> &v) {
    T s = 0;
    for (const T &item : v) s += item * item;
    return s;
}
template <class T> static T log_sum_exp(const std::vector<T> &v) {
    T top = v[0], s = 0;
    for (size_t i = 1; i < v.size(); i++) top = std::max(top, v[i]);
    for (const T &item : v) s += exp(item - top);
    return top + log(s);
}
template <class T> static void apply(const Matrix<T> &icf, const Matrix<T> &diagonals, int j, const std::vector<T> &v,
                                     std::vector<T> &out) {
    const int d = (int)v.size();
    for (int i = 0; i < d; i++) out[i] = diagonals(j, i) * v[i];
    int p = d;
    for (int i = 0; i < d; i++)
        for (int l = i + 1; l < d; l++) out[l] += icf(j, p++) * v[i];
}
template <class T> static T gmm(const std::vector<T> &alphas, const Matrix<T> &means, const Matrix<T> &icf,
                                const Matrix<T> &x, double gamma, int m) {
    const int k = means.rows, d = means.cols, n = x.rows;
    Matrix<T> diagonals{std::vector<T>(k * d), k, d};
    std::vector<T> sums(k, T(0));
    for (int j = 0; j < k; j++)
        for (int i = 0; i < d; i++) sums[j] += icf(j, i), diagonals(j, i) = exp(icf(j, i));
    T likelihood = 0, prior = 0;
    for (int p = 0; p < n; p++) {
        std::vector<T> centred(d), scaled(d), terms(k);
        for (int j = 0; j < k; j++) {
            for (int i = 0; i < d; i++) centred[i] = x(p, i) - means(j, i);
            apply(icf, diagonals, j, centred, scaled);
            terms[j] = alphas[j] + sums[j] - 0.5 * square_norm(scaled);
        }
        likelihood += log_sum_exp(terms);
    }
    for (int j = 0; j < k; j++) {
        T square = 0;
        for (int i = 0; i < d; i++) square += diagonals(j, i) * diagonals(j, i);
        for (int i = d; i < icf.cols; i++) square += icf(j, i) * icf(j, i);
        prior += 0.5 * gamma * gamma * square - m * sums[j];
    }
    return constant(m, k, d, n, gamma) + likelihood - n * log_sum_exp(alphas) + prior;
}
double primal() { return gmm<double>(in[0].vec(), in[1].matrix, in[2].matrix, in[3].matrix, real[0], size[0]); }
void gradient() {
    __enzyme_autodiff((void *)gmm<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_dup, &in[1].matrix,
                      &grad[1].matrix, enzyme_dup, &in[2].matrix, &grad[2].matrix, enzyme_const, &in[3].matrix,
                      enzyme_const, real[0], enzyme_const, size[0]);
}

#elif SPELLING == STRUCTS
struct Mixture {
    const double *alphas, *means, *icf;
    int k, d;
    double log_weight(int j) const {
        double s = alphas[j];
        for (int i = 0; i < d; i++) s += icf[j * (d * (d + 1) / 2) + i];
        return s;
    }
    double distance(int j, const double *x, double *centred, double *scaled) const {
        const double *q = icf + (size_t)j * (d * (d + 1) / 2), *below = q + d;
        for (int i = 0; i < d; i++) centred[i] = x[i] - means[j * d + i];
        for (int i = 0; i < d; i++) scaled[i] = exp(q[i]) * centred[i];
        for (int i = 0; i < d; i++)
            for (int l = i + 1; l < d; l++) scaled[l] += *below++ * centred[i];
        double s = 0;
        for (int i = 0; i < d; i++) s += scaled[i] * scaled[i];
        return s;
    }
    double prior(int j, double gamma, int m) const {
        const double *q = icf + (size_t)j * (d * (d + 1) / 2);
        double s = 0, sum = 0;
        for (int i = 0; i < d; i++) s += exp(q[i]) * exp(q[i]), sum += q[i];
        for (int i = d; i < d * (d + 1) / 2; i++) s += q[i] * q[i];
        return 0.5 * gamma * gamma * s - m * sum;
    }
};
struct Points {
    const double *x;
    int n;
};
static double log_sum_exp(int n, const double *v) {
    double top = v[0], s = 0;
    for (int i = 1; i < n; i++) top = fmax(top, v[i]);
    for (int i = 0; i < n; i++) s += exp(v[i] - top);
    return top + log(s);
}
static double gmm(const Mixture *mixture, const Points *points, double gamma, int m) {
    const int k = mixture->k, d = mixture->d;
    double *scratch = new double[2 * d + k], *terms = scratch + 2 * d, s = 0;
    for (int p = 0; p < points->n; p++) {
        for (int j = 0; j < k; j++)
            terms[j] = mixture->log_weight(j) - 0.5 * mixture->distance(j, points->x + (size_t)p * d, scratch, scratch + d);
        s += log_sum_exp(k, terms);
    }
    for (int j = 0; j < k; j++) s += mixture->prior(j, gamma, m);
    delete[] scratch;
    return constant(m, k, d, points->n, gamma) + s - points->n * log_sum_exp(k, mixture->alphas);
}
static Mixture mixture(Array *from) { return {from[0].flat(), from[1].flat(), from[2].flat(), size[1], size[2]}; }
double primal() {
    Mixture mine = mixture(in);
    Points points = {in[3].flat(), size[3]};
    return gmm(&mine, &points, real[0], size[0]);
}
void gradient() {
    Mixture mine = mixture(in), shadow = mixture(grad);
    Points points = {in[3].flat(), size[3]};
    __enzyme_autodiff((void *)gmm, enzyme_dup, &mine, &shadow, enzyme_const, &points, enzyme_const, real[0],
                      enzyme_const, size[0]);
}

#elif SPELLING == ROWS
static double log_sum_exp(int n, const double *v) {
    double top = v[0], s = 0;
    for (int i = 1; i < n; i++) if (v[i] > top) top = v[i];
    for (int i = 0; i < n; i++) s += exp(v[i] - top);
    return top + log(s);
}
static double gmm(double *alphas, double **means, double **icf, double **x, double gamma, int m, int k, int d, int n) {
    double *centred = (double *)malloc(d * sizeof(double)), *scaled = (double *)malloc(d * sizeof(double));
    double *terms = (double *)malloc(k * sizeof(double)), s = 0;
    for (int p = 0; p < n; p++) {
        for (int j = 0; j < k; j++) {
            double square = 0, sum = 0;
            int at = d;
            for (int i = 0; i < d; i++) centred[i] = x[p][i] - means[j][i], sum += icf[j][i];
            for (int i = 0; i < d; i++) scaled[i] = exp(icf[j][i]) * centred[i];
            for (int i = 0; i < d; i++)
                for (int l = i + 1; l < d; l++) scaled[l] += icf[j][at++] * centred[i];
            for (int i = 0; i < d; i++) square += scaled[i] * scaled[i];
            terms[j] = alphas[j] + sum - 0.5 * square;
        }
        s += log_sum_exp(k, terms);
    }
    for (int j = 0; j < k; j++) {
        double square = 0, sum = 0;
        for (int i = 0; i < d; i++) square += exp(icf[j][i]) * exp(icf[j][i]), sum += icf[j][i];
        for (int i = d; i < d * (d + 1) / 2; i++) square += icf[j][i] * icf[j][i];
        s += 0.5 * gamma * gamma * square - m * sum;
    }
    s += constant(m, k, d, n, gamma) - n * log_sum_exp(k, alphas);
    free(centred), free(scaled), free(terms);
    return s;
}
double primal() { return gmm(in[0].flat(), in[1].rows(), in[2].rows(), in[3].rows(), real[0], size[0], size[1], size[2], size[3]); }
void gradient() {
    __enzyme_autodiff((void *)gmm, enzyme_dup, FLAT(0), enzyme_dup, in[1].rows(), grad[1].rows(), enzyme_dup,
                      in[2].rows(), grad[2].rows(), enzyme_const, in[3].rows(), enzyme_const, real[0], enzyme_const,
                      size[0], enzyme_const, size[1], enzyme_const, size[2], enzyme_const, size[3]);
}

#elif SPELLING == CELLS
static void log_sum_exp(int n, const double *v, double *out) {
    double top = v[0];
    int i = n;
    while (--i > 0) {
        if (v[i] <= top) continue;
        top = v[i];
    }
    *out = 0;
    for (i = n - 1; i >= 0; i--) *out += exp(v[i] - top);
    *out = top + log(*out);
}
static void gmm(const double *alphas, const double *means, const double *icf, const double *x, double gamma, int m,
                int k, int d, int n, double *out) {
    int row = d * (d + 1) / 2;
    double *centred = (double *)malloc(d * sizeof(double)), *scaled = (double *)malloc(d * sizeof(double));
    double *terms = (double *)malloc(k * sizeof(double)), *sums = (double *)calloc(k, sizeof(double)), one;
    for (int j = k - 1; j >= 0; j--)
        for (int i = 0; i < d; i++) sums[j] += icf[j * row + i];
    *out = constant(m, k, d, n, gamma);
    for (int p = n - 1; p >= 0; p--) {
        for (int j = 0; j < k; j++) {
            int at = j * row + d, i = 0;
            terms[j] = alphas[j] + sums[j];
            while (i < d) centred[i] = x[p * d + i] - means[j * d + i], i++;
            for (i = 0; i < d; i++) scaled[i] = exp(icf[j * row + i]) * centred[i];
            for (i = 0; i < d; i++)
                for (int l = i + 1; l < d; l++) scaled[l] += icf[at++] * centred[i];
            for (i = d - 1; i >= 0; i--) terms[j] -= 0.5 * scaled[i] * scaled[i];
        }
        log_sum_exp(k, terms, &one);
        *out += one;
    }
    for (int j = 0; j < k; j++) {
        *out -= m * sums[j];
        for (int i = 0; i < row; i++) {
            double q = i < d ? exp(icf[j * row + i]) : icf[j * row + i];
            *out += 0.5 * gamma * gamma * q * q;
        }
    }
    log_sum_exp(k, alphas, &one);
    *out -= n * one;
    free(centred), free(scaled), free(terms), free(sums);
}
double primal() {
    double out;
    gmm(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), real[0], size[0], size[1], size[2], size[3], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)gmm, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_dup, FLAT(2), enzyme_const,
                      in[3].flat(), enzyme_const, real[0], enzyme_const, size[0], enzyme_const, size[1], enzyme_const,
                      size[2], enzyme_const, size[3], enzyme_dupnoneed, &out, &seed);
}
#endif
