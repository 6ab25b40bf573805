/* Negative log-likelihood of a sequence under an LSTM with diagonal weights; definitions as in kernels/lstm.c. */
#include "spelling.h"

template <class T> static T sigmoid(T x) { return 1 / (1 + exp(-x)); }

#if SPELLING == PLAIN
static void layer(const double *w, const double *b, double *hidden, double *cell, const double *x, int n) {
    for (int i = 0; i < n; i++) {
        double forget = sigmoid(x[i] * w[i] + b[i]);
        double enter = sigmoid(hidden[i] * w[n + i] + b[n + i]);
        double leave = sigmoid(x[i] * w[2 * n + i] + b[2 * n + i]);
        double change = tanh(hidden[i] * w[3 * n + i] + b[3 * n + i]);
        cell[i] = cell[i] * forget + enter * change;
        hidden[i] = leave * tanh(cell[i]);
    }
}
static double lstm(const double *weights, const double *outer, const double *start, const double *sequence, int l, int c,
                   int b) {
    double *state = (double *)malloc(l * 2 * b * sizeof(double)), *x = (double *)malloc(b * sizeof(double)), total = 0;
    double *out = (double *)malloc(b * sizeof(double));
    memcpy(state, start, l * 2 * b * sizeof(double));
    for (int t = 0; t < c - 1; t++) {
        const double *from = x, *gold = sequence + (t + 1) * b;
        double sum = 2;
        for (int i = 0; i < b; i++) x[i] = sequence[t * b + i] * outer[i];
        for (int j = 0; j < l; j++) {
            double *hidden = state + 2 * j * b;
            layer(weights + 8 * j * b, weights + (8 * j + 4) * b, hidden, hidden + b, from, b);
            from = hidden;
        }
        for (int i = 0; i < b; i++) out[i] = from[i] * outer[b + i] + outer[2 * b + i];
        for (int i = 0; i < b; i++) sum += exp(out[i]);
        double norm = log(sum);
        for (int i = 0; i < b; i++) total += gold[i] * (out[i] - norm);
    }
    free(state), free(x), free(out);
    return -total / ((c - 1) * b);
}
double primal() { return lstm(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), size[0], size[1], size[2]); }
void gradient() {
    __enzyme_autodiff((void *)lstm, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, in[2].flat(), enzyme_const,
                      in[3].flat(), enzyme_const, size[0], enzyme_const, size[1], enzyme_const, size[2]);
}

#elif SPELLING == VECTORS
template <class T> struct Layer {
    std::vector<T> hidden, cell;
};
template <class T> static T gate(const Matrix<T> &w, int layer, int which, int i, const T &x) {
    const int b = w.cols / 4;
    return x * w(2 * layer, which * b + i) + w(2 * layer + 1, which * b + i);
}
template <class T> static void advance(const Matrix<T> &w, int j, Layer<T> &layer, const std::vector<T> &x) {
    for (int i = 0; i < (int)x.size(); i++) {
        T forget = sigmoid(gate(w, j, 0, i, x[i])), enter = sigmoid(gate(w, j, 1, i, layer.hidden[i]));
        T leave = sigmoid(gate(w, j, 2, i, x[i])), change = tanh(gate(w, j, 3, i, layer.hidden[i]));
        layer.cell[i] = layer.cell[i] * forget + enter * change;
        layer.hidden[i] = leave * tanh(layer.cell[i]);
    }
}
template <class T> static T log_norm(const std::vector<T> &v) {
    T s = 2;
    for (const T &item : v) s += exp(item);
    return log(s);
}
template <class T> static T lstm(const Matrix<T> &w, const Matrix<T> &outer, const Matrix<double> &start,
                                 const Matrix<double> &sequence) {
    const int b = outer.cols;
    std::vector<Layer<T>> layers(w.rows / 2);
    for (size_t j = 0; j < layers.size(); j++)
        for (int i = 0; i < b; i++) layers[j].hidden.push_back(start(2 * j, i)), layers[j].cell.push_back(start(2 * j + 1, i));
    T total = 0;
    for (int t = 0; t + 1 < sequence.rows; t++) {
        std::vector<T> x(b), out(b);
        for (int i = 0; i < b; i++) x[i] = sequence(t, i) * outer(0, i);
        for (size_t j = 0; j < layers.size(); j++) advance(w, (int)j, layers[j], j == 0 ? x : layers[j - 1].hidden);
        for (int i = 0; i < b; i++) out[i] = layers.back().hidden[i] * outer(1, i) + outer(2, i);
        T norm = log_norm(out);
        for (int i = 0; i < b; i++) total += sequence(t + 1, i) * (out[i] - norm);
    }
    return -total / ((sequence.rows - 1) * b);
}
double primal() { return lstm<double>(in[0].matrix, in[1].matrix, in[2].matrix, in[3].matrix); }
void gradient() {
    __enzyme_autodiff((void *)lstm<double>, enzyme_dup, &in[0].matrix, &grad[0].matrix, enzyme_dup, &in[1].matrix,
                      &grad[1].matrix, enzyme_const, &in[2].matrix, enzyme_const, &in[3].matrix);
}

#elif SPELLING == STRUCTS
struct Gates {
    const double *forget, *enter, *leave, *change;
};
struct Layer {
    Gates weight, bias;
    double *hidden, *cell;
    int n;
    void step(const double *x) {
        for (int i = 0; i < n; i++) {
            double keep = sigmoid(x[i] * weight.forget[i] + bias.forget[i]);
            double enter = sigmoid(hidden[i] * weight.enter[i] + bias.enter[i]);
            double leave = sigmoid(x[i] * weight.leave[i] + bias.leave[i]);
            cell[i] = cell[i] * keep + enter * tanh(hidden[i] * weight.change[i] + bias.change[i]);
            hidden[i] = leave * tanh(cell[i]);
        }
    }
};
struct Model {
    const double *weights, *scale, *out_scale, *out_bias;
    int layers, n;
    Gates gates(int row) const {
        const double *at = weights + (size_t)row * 4 * n;
        return {at, at + n, at + 2 * n, at + 3 * n};
    }
};
static double lstm(const Model *model, const double *start, const double *sequence, int steps) {
    const int n = model->n;
    Layer *layers = new Layer[model->layers];
    double *x = new double[n], *out = new double[n], *state = new double[2 * model->layers * n], total = 0;
    for (int i = 0; i < 2 * model->layers * n; i++) state[i] = start[i];
    for (int j = 0; j < model->layers; j++)
        layers[j] = {model->gates(2 * j), model->gates(2 * j + 1), state + 2 * j * n, state + (2 * j + 1) * n, n};
    for (int t = 0; t + 1 < steps; t++) {
        const double *from = x;
        double sum = 2;
        for (int i = 0; i < n; i++) x[i] = sequence[t * n + i] * model->scale[i];
        for (int j = 0; j < model->layers; j++) layers[j].step(from), from = layers[j].hidden;
        for (int i = 0; i < n; i++) out[i] = from[i] * model->out_scale[i] + model->out_bias[i], sum += exp(out[i]);
        double norm = log(sum);
        for (int i = 0; i < n; i++) total += sequence[(t + 1) * n + i] * (out[i] - norm);
    }
    delete[] layers;
    delete[] x;
    delete[] out;
    delete[] state;
    return -total / ((steps - 1) * n);
}
static Model make(Array *from) {
    double *outer = from[1].flat();
    return {from[0].flat(), outer, outer + size[2], outer + 2 * size[2], size[0], size[2]};
}
double primal() {
    Model model = make(in);
    return lstm(&model, in[2].flat(), in[3].flat(), size[1]);
}
void gradient() {
    Model model = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)lstm, enzyme_dup, &model, &shadow, enzyme_const, in[2].flat(), enzyme_const, in[3].flat(),
                      enzyme_const, size[1]);
}

#elif SPELLING == ROWS
static double lstm(double **w, double **outer, double **start, double **sequence, int l, int c, int b) {
    double **state = (double **)malloc(2 * l * sizeof(double *)), *out = (double *)malloc(b * sizeof(double)), total = 0;
    for (int j = 0; j < 2 * l; j++) {
        state[j] = (double *)malloc(b * sizeof(double));
        memcpy(state[j], start[j], b * sizeof(double));
    }
    for (int t = 0; t < c - 1; t++) {
        double sum = 2;
        for (int i = 0; i < b; i++) out[i] = sequence[t][i] * outer[0][i];
        for (int j = 0; j < l; j++) {
            double *weight = w[2 * j], *bias = w[2 * j + 1], *hidden = state[2 * j], *cell = state[2 * j + 1];
            for (int i = 0; i < b; i++) {
                double forget = sigmoid(out[i] * weight[i] + bias[i]);
                double enter = sigmoid(hidden[i] * weight[b + i] + bias[b + i]);
                double leave = sigmoid(out[i] * weight[2 * b + i] + bias[2 * b + i]);
                double change = tanh(hidden[i] * weight[3 * b + i] + bias[3 * b + i]);
                cell[i] = cell[i] * forget + enter * change;
                out[i] = hidden[i] = leave * tanh(cell[i]);
            }
        }
        for (int i = 0; i < b; i++) out[i] = out[i] * outer[1][i] + outer[2][i];
        for (int i = 0; i < b; i++) sum += exp(out[i]);
        double norm = log(sum);
        for (int i = 0; i < b; i++) total += sequence[t + 1][i] * (out[i] - norm);
    }
    for (int j = 0; j < 2 * l; j++) free(state[j]);
    free(state), free(out);
    return -total / ((c - 1) * b);
}
double primal() { return lstm(in[0].rows(), in[1].rows(), in[2].rows(), in[3].rows(), size[0], size[1], size[2]); }
void gradient() {
    __enzyme_autodiff((void *)lstm, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_dup, in[1].rows(), grad[1].rows(),
                      enzyme_const, in[2].rows(), enzyme_const, in[3].rows(), enzyme_const, size[0], enzyme_const,
                      size[1], enzyme_const, size[2]);
}

#elif SPELLING == CELLS
static void lstm(const double *weights, const double *outer, const double *start, const double *sequence, int l, int c,
                 int b, double *loss) {
    double *state = (double *)malloc(l * 2 * b * sizeof(double)), *out = (double *)malloc(b * sizeof(double)), sum;
    for (int i = 2 * l * b - 1; i >= 0; i--) state[i] = start[i];
    *loss = 0;
    int left = c;
    while (--left > 0) {
        for (int i = b - 1; i >= 0; i--) out[i] = sequence[i] * outer[i];
        for (int j = 0; j < l; j++) {
            const double *w = weights + 8 * j * b;
            double *hidden = state + 2 * j * b, *cell = hidden + b;
            for (int i = b - 1; i >= 0; i--) {
                cell[i] *= sigmoid(out[i] * w[i] + w[4 * b + i]);
                cell[i] += sigmoid(hidden[i] * w[b + i] + w[5 * b + i]) * tanh(hidden[i] * w[3 * b + i] + w[7 * b + i]);
                hidden[i] = sigmoid(out[i] * w[2 * b + i] + w[6 * b + i]) * tanh(cell[i]);
                out[i] = hidden[i];
            }
        }
        sum = 2;
        for (int i = b - 1; i >= 0; i--) {
            out[i] *= outer[b + i];
            out[i] += outer[2 * b + i];
            sum += exp(out[i]);
        }
        sequence += b;
        for (int i = b - 1; i >= 0; i--) {
            if (sequence[i] == 0) continue;
            *loss -= sequence[i] * (out[i] - log(sum));
        }
    }
    *loss /= (c - 1) * b;
    free(state), free(out);
}
double primal() {
    double out;
    lstm(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), size[0], size[1], size[2], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)lstm, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_const, in[2].flat(), enzyme_const,
                      in[3].flat(), enzyme_const, size[0], enzyme_const, size[1], enzyme_const, size[2], enzyme_dupnoneed,
                      &out, &seed);
}
#endif
