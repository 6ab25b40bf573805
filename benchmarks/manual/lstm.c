/* Gradient of kernels/lstm.c: back-propagation through time, gates kept per step and layer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

enum { FORGET, IN, OUT, CHANGE, INPUT, HIDDEN, CELL, TANH, KEPT };

void lstm_grad(const double *weights, const double *outer, const double *start, const double *sequence, long l, long c,
               long b, double *gweights, double *gouter)
{
    long steps = c - 1;
    double *tape = malloc(steps * l * KEPT * b * sizeof(double)), *prediction = malloc(steps * b * sizeof(double));
    double *norms = malloc(steps * sizeof(double)), *state = malloc(l * 2 * b * sizeof(double));
    double *adjoint = calloc(l * 2 * b, sizeof(double)), *x = malloc(b * sizeof(double));
    double seed = -1.0 / (steps * b);
    memcpy(state, start, l * 2 * b * sizeof(double));
    memset(gweights, 0, l * 2 * 4 * b * sizeof(double));
    memset(gouter, 0, 3 * b * sizeof(double));
    for (long t = 0; t < steps; t++) {
        for (long i = 0; i < b; i++)
            x[i] = sequence[t * b + i] * outer[i];
        for (long j = 0; j < l; j++) {
            const double *w = weights + 2 * j * 4 * b, *bias = w + 4 * b;
            double *k = tape + (t * l + j) * KEPT * b, *hidden = state + 2 * j * b, *cell = hidden + b;
            for (long i = 0; i < b; i++) {
                double forget = sigmoid(x[i] * w[i] + bias[i]), in = sigmoid(hidden[i] * w[b + i] + bias[b + i]);
                double out = sigmoid(x[i] * w[2 * b + i] + bias[2 * b + i]);
                double change = tanh(hidden[i] * w[3 * b + i] + bias[3 * b + i]);
                k[FORGET * b + i] = forget, k[IN * b + i] = in, k[OUT * b + i] = out, k[CHANGE * b + i] = change;
                k[INPUT * b + i] = x[i], k[HIDDEN * b + i] = hidden[i], k[CELL * b + i] = cell[i];
                cell[i] = cell[i] * forget + in * change;
                k[TANH * b + i] = tanh(cell[i]);
                x[i] = hidden[i] = out * k[TANH * b + i];
            }
        }
        double sum = 2.0;
        for (long i = 0; i < b; i++) {
            prediction[t * b + i] = x[i] * outer[b + i] + outer[2 * b + i];
            sum += exp(prediction[t * b + i]);
        }
        norms[t] = sum;
    }
    for (long t = steps - 1; t >= 0; t--) {
        const double *gold = sequence + (t + 1) * b;
        double golds = 0.0;
        for (long i = 0; i < b; i++)
            golds += gold[i];
        for (long i = 0; i < b; i++) {
            double g = seed * (gold[i] - golds * exp(prediction[t * b + i]) / norms[t]);
            const double *k = tape + (t * l + l - 1) * KEPT * b;
            gouter[b + i] += g * k[OUT * b + i] * k[TANH * b + i];
            gouter[2 * b + i] += g;
            x[i] = g * outer[b + i];
        }
        for (long j = l - 1; j >= 0; j--) {
            const double *k = tape + (t * l + j) * KEPT * b, *w = weights + 2 * j * 4 * b;
            double *gw = gweights + 2 * j * 4 * b, *gb = gw + 4 * b, *ahidden = adjoint + 2 * j * b, *acell = ahidden + b;
            for (long i = 0; i < b; i++) {
                double forget = k[FORGET * b + i], in = k[IN * b + i], out = k[OUT * b + i], change = k[CHANGE * b + i];
                double th = k[TANH * b + i], input = k[INPUT * b + i], hidden = k[HIDDEN * b + i];
                double h = ahidden[i] + x[i], cell = acell[i] + h * out * (1 - th * th);
                double df = cell * k[CELL * b + i] * forget * (1 - forget), di = cell * change * in * (1 - in);
                double dout = h * th * out * (1 - out), dc = cell * in * (1 - change * change);
                acell[i] = cell * forget;
                gw[i] += df * input, gw[b + i] += di * hidden, gw[2 * b + i] += dout * input, gw[3 * b + i] += dc * hidden;
                gb[i] += df, gb[b + i] += di, gb[2 * b + i] += dout, gb[3 * b + i] += dc;
                ahidden[i] = di * w[b + i] + dc * w[3 * b + i];
                x[i] = df * w[i] + dout * w[2 * b + i];
            }
        }
        for (long i = 0; i < b; i++)
            gouter[i] += x[i] * sequence[t * b + i];
    }
    free(tape), free(prediction), free(norms), free(state), free(adjoint), free(x);
}
