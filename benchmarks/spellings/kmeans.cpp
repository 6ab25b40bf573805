/* k-means cost: every point's squared distance to its nearest centre, summed. */
#include "spelling.h"

#if SPELLING == PLAIN
static double kmeans(const double *centres, const double *x, int n, int k, int d) {
    double cost = 0;
    for (int p = 0; p < n; p++) {
        double best = INFINITY;
        for (int j = 0; j < k; j++) {
            double distance = 0;
            for (int i = 0; i < d; i++) distance += (x[p * d + i] - centres[j * d + i]) * (x[p * d + i] - centres[j * d + i]);
            if (distance < best) best = distance;
        }
        cost += best;
    }
    return cost;
}
double primal() { return kmeans(in[0].flat(), in[1].flat(), size[0], size[1], size[2]); }
void gradient() {
    __enzyme_autodiff((void *)kmeans, enzyme_dup, FLAT(0), enzyme_const, in[1].flat(), enzyme_const, size[0],
                      enzyme_const, size[1], enzyme_const, size[2]);
}

#elif SPELLING == VECTORS
template <class T> static T square_distance(const Matrix<T> &a, int i, const Matrix<T> &b, int j) {
    T s = 0;
    for (int l = 0; l < a.cols; l++) {
        T delta = a(i, l) - b(j, l);
        s += delta * delta;
    }
    return s;
}
template <class T> static T kmeans(const Matrix<T> &centres, const Matrix<T> &x) {
    T cost = 0;
    for (int p = 0; p < x.rows; p++) {
        T best = square_distance(x, p, centres, 0);
        for (int j = 1; j < centres.rows; j++) best = std::min(best, square_distance(x, p, centres, j));
        cost += best;
    }
    return cost;
}
double primal() { return kmeans<double>(in[0].matrix, in[1].matrix); }
void gradient() {
    __enzyme_autodiff((void *)kmeans<double>, enzyme_dup, &in[0].matrix, &grad[0].matrix, enzyme_const, &in[1].matrix);
}

#elif SPELLING == STRUCTS
struct Cloud {
    const double *at;
    int count, d;
    double distance(int i, const Cloud &other, int j) const {
        double s = 0;
        for (int l = 0; l < d; l++) s += pow(at[(size_t)i * d + l] - other.at[(size_t)j * d + l], 2);
        return s;
    }
    double nearest(int i, const Cloud &others) const {
        double best = INFINITY;
        for (int j = 0; j < others.count; j++) best = fmin(best, distance(i, others, j));
        return best;
    }
};
static double kmeans(const Cloud *centres, const Cloud *points) {
    double cost = 0;
    for (int p = 0; p < points->count; p++) cost += points->nearest(p, *centres);
    return cost;
}
static Cloud centres(Array *from) { return {from[0].flat(), size[1], size[2]}; }
double primal() {
    Cloud mine = centres(in), points = {in[1].flat(), size[0], size[2]};
    return kmeans(&mine, &points);
}
void gradient() {
    Cloud mine = centres(in), shadow = centres(grad), points = {in[1].flat(), size[0], size[2]};
    __enzyme_autodiff((void *)kmeans, enzyme_dup, &mine, &shadow, enzyme_const, &points);
}

#elif SPELLING == ROWS
static double kmeans(double **centres, double **x, int n, int k, int d) {
    double cost = 0;
    for (int p = 0; p < n; p++) {
        double best = 1e300;
        for (int j = 0; j < k; j++) {
            double distance = 0;
            for (int i = 0; i < d; i++) distance += (x[p][i] - centres[j][i]) * (x[p][i] - centres[j][i]);
            best = distance < best ? distance : best;
        }
        cost += best;
    }
    return cost;
}
double primal() { return kmeans(in[0].rows(), in[1].rows(), size[0], size[1], size[2]); }
void gradient() {
    __enzyme_autodiff((void *)kmeans, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_const, in[1].rows(),
                      enzyme_const, size[0], enzyme_const, size[1], enzyme_const, size[2]);
}

#elif SPELLING == CELLS
static void kmeans(const double *centres, const double *x, int n, int k, int d, double *cost) {
    *cost = 0;
    while (n-- > 0) {
        double best = INFINITY;
        for (int j = k - 1; j >= 0; j--) {
            double distance = 0;
            for (int i = d - 1; i >= 0; i--) {
                double delta = x[n * d + i] - centres[j * d + i];
                distance += delta * delta;
            }
            if (distance >= best) continue;
            best = distance;
        }
        *cost += best;
    }
}
double primal() {
    double out;
    kmeans(in[0].flat(), in[1].flat(), size[0], size[1], size[2], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)kmeans, enzyme_dup, FLAT(0), enzyme_const, in[1].flat(), enzyme_const, size[0],
                      enzyme_const, size[1], enzyme_const, size[2], enzyme_dupnoneed, &out, &seed);
}
#endif
