/* Mean squared error of a network of three dense layers with tanh between them. */
#include "spelling.h"

#if SPELLING == PLAIN
static void dense(const double *x, const double *w, const double *b, double *out, int batch, int from, int to, int bend) {
    for (int s = 0; s < batch; s++)
        for (int j = 0; j < to; j++) {
            double sum = b[j];
            for (int i = 0; i < from; i++) sum += w[j * from + i] * x[s * from + i];
            out[s * to + j] = bend ? tanh(sum) : sum;
        }
}
static double mlp(const double *w1, const double *b1, const double *w2, const double *b2, const double *w3,
                  const double *b3, const double *x, const double *y, int batch, int width, int hidden, int second) {
    double *h1 = (double *)malloc(batch * hidden * sizeof(double)), *h2 = (double *)malloc(batch * second * sizeof(double));
    double *out = (double *)malloc(batch * sizeof(double)), loss = 0;
    dense(x, w1, b1, h1, batch, width, hidden, 1);
    dense(h1, w2, b2, h2, batch, hidden, second, 1);
    dense(h2, w3, b3, out, batch, second, 1, 0);
    for (int s = 0; s < batch; s++) loss += (out[s] - y[s]) * (out[s] - y[s]);
    free(h1), free(h2), free(out);
    return loss / batch;
}
double primal() {
    return mlp(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), in[4].flat(), in[5].flat(), in[6].flat(),
               in[7].flat(), size[0], size[1], size[2], size[3]);
}
void gradient() {
    __enzyme_autodiff((void *)mlp, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_dup, FLAT(2), enzyme_dup, FLAT(3),
                      enzyme_dup, FLAT(4), enzyme_dup, FLAT(5), enzyme_const, in[6].flat(), enzyme_const, in[7].flat(),
                      enzyme_const, size[0], enzyme_const, size[1], enzyme_const, size[2], enzyme_const, size[3]);
}

#elif SPELLING == VECTORS
template <class T> struct Layer {
    const Matrix<T> &weights;
    const std::vector<T> &bias;
    std::vector<T> operator()(const std::vector<T> &x) const {
        std::vector<T> out = bias;
        for (int j = 0; j < weights.rows; j++)
            for (int i = 0; i < weights.cols; i++) out[j] += weights(j, i) * x[i];
        return out;
    }
};
template <class T> static std::vector<T> bent(std::vector<T> v) {
    for (T &item : v) item = tanh(item);
    return v;
}
template <class T> static T mlp(const Array *p, const Matrix<T> &x, const std::vector<T> &y) {
    Layer<T> one{p[0].matrix, p[1].matrix.data}, two{p[2].matrix, p[3].matrix.data}, three{p[4].matrix, p[5].matrix.data};
    T loss = 0;
    for (int s = 0; s < x.rows; s++) {
        std::vector<T> sample(x.data.begin() + s * x.cols, x.data.begin() + (s + 1) * x.cols);
        T miss = three(bent(two(bent(one(sample)))))[0] - y[s];
        loss += miss * miss;
    }
    return loss / x.rows;
}
double primal() { return mlp<double>(in, in[6].matrix, in[7].vec()); }
void gradient() {
    __enzyme_autodiff((void *)mlp<double>, enzyme_dup, in, grad, enzyme_const, &in[6].matrix, enzyme_const, &in[7].vec());
}

#elif SPELLING == STRUCTS
struct Dense {
    const double *w, *b;
    int from, to;
    void run(const double *x, double *out, bool bend) const {
        for (int j = 0; j < to; j++) {
            double sum = b[j];
            for (int i = 0; i < from; i++) sum += w[(size_t)j * from + i] * x[i];
            out[j] = bend ? tanh(sum) : sum;
        }
    }
};
struct Network {
    Dense one, two, three;
    double loss(const double *x, const double *y, int batch) const {
        double *h = new double[one.to + two.to], total = 0;
        for (int s = 0; s < batch; s++) {
            double out;
            one.run(x + (size_t)s * one.from, h, true);
            two.run(h, h + one.to, true);
            three.run(h + one.to, &out, false);
            total += (out - y[s]) * (out - y[s]);
        }
        delete[] h;
        return total / batch;
    }
};
static double mlp(const Network *net, const double *x, const double *y, int batch) { return net->loss(x, y, batch); }
static Network make(Array *p) {
    return {{p[0].flat(), p[1].flat(), size[1], size[2]}, {p[2].flat(), p[3].flat(), size[2], size[3]},
            {p[4].flat(), p[5].flat(), size[3], 1}};
}
double primal() {
    Network net = make(in);
    return mlp(&net, in[6].flat(), in[7].flat(), size[0]);
}
void gradient() {
    Network net = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)mlp, enzyme_dup, &net, &shadow, enzyme_const, in[6].flat(), enzyme_const, in[7].flat(),
                      enzyme_const, size[0]);
}

#elif SPELLING == ROWS
static void dense(const double *x, double **w, const double *b, double *out, int from, int to) {
    for (int j = 0; j < to; j++) {
        out[j] = b[j];
        for (int i = 0; i < from; i++) out[j] += w[j][i] * x[i];
    }
}
static double mlp(double **w1, double *b1, double **w2, double *b2, double **w3, double *b3, double **x, double *y,
                  int batch, int width, int hidden, int second) {
    double *h1 = (double *)malloc(hidden * sizeof(double)), *h2 = (double *)malloc(second * sizeof(double)), loss = 0, out;
    for (int s = 0; s < batch; s++) {
        dense(x[s], w1, b1, h1, width, hidden);
        for (int i = 0; i < hidden; i++) h1[i] = tanh(h1[i]);
        dense(h1, w2, b2, h2, hidden, second);
        for (int i = 0; i < second; i++) h2[i] = tanh(h2[i]);
        dense(h2, w3, b3, &out, second, 1);
        loss += (out - y[s]) * (out - y[s]);
    }
    free(h1), free(h2);
    return loss / batch;
}
double primal() {
    return mlp(in[0].rows(), in[1].flat(), in[2].rows(), in[3].flat(), in[4].rows(), in[5].flat(), in[6].rows(),
               in[7].flat(), size[0], size[1], size[2], size[3]);
}
void gradient() {
    __enzyme_autodiff((void *)mlp, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_dup, FLAT(1), enzyme_dup,
                      in[2].rows(), grad[2].rows(), enzyme_dup, FLAT(3), enzyme_dup, in[4].rows(), grad[4].rows(),
                      enzyme_dup, FLAT(5), enzyme_const, in[6].rows(), enzyme_const, in[7].flat(), enzyme_const, size[0],
                      enzyme_const, size[1], enzyme_const, size[2], enzyme_const, size[3]);
}

#elif SPELLING == CELLS
static void dense(const double *x, const double *w, const double *b, double *out, int batch, int from, int to) {
    for (int s = batch - 1; s >= 0; s--)
        for (int j = to - 1; j >= 0; j--) {
            out[s * to + j] = b[j];
            int i = from;
            while (i-- > 0) out[s * to + j] += w[j * from + i] * x[s * from + i];
        }
}
static void mlp(const double *w1, const double *b1, const double *w2, const double *b2, const double *w3,
                const double *b3, const double *x, const double *y, int batch, int width, int hidden, int second,
                double *loss) {
    double *h1 = (double *)malloc(batch * hidden * sizeof(double)), *h2 = (double *)malloc(batch * second * sizeof(double));
    double *out = (double *)malloc(batch * sizeof(double));
    dense(x, w1, b1, h1, batch, width, hidden);
    for (int i = batch * hidden - 1; i >= 0; i--) h1[i] = tanh(h1[i]);
    dense(h1, w2, b2, h2, batch, hidden, second);
    for (int i = batch * second - 1; i >= 0; i--) h2[i] = tanh(h2[i]);
    dense(h2, w3, b3, out, batch, second, 1);
    *loss = 0;
    for (int s = 0; s < batch; s++) *loss += (out[s] - y[s]) * (out[s] - y[s]) / batch;
    free(h1), free(h2), free(out);
}
double primal() {
    double out;
    mlp(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), in[4].flat(), in[5].flat(), in[6].flat(), in[7].flat(),
        size[0], size[1], size[2], size[3], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)mlp, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_dup, FLAT(2), enzyme_dup, FLAT(3),
                      enzyme_dup, FLAT(4), enzyme_dup, FLAT(5), enzyme_const, in[6].flat(), enzyme_const, in[7].flat(),
                      enzyme_const, size[0], enzyme_const, size[1], enzyme_const, size[2], enzyme_const, size[3],
                      enzyme_dupnoneed, &out, &seed);
}
#endif
