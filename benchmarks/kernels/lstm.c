/* Negative log-likelihood of a multi-layer LSTM with diagonal weights over a sequence of b features.
 *
 * weights[j][0] and weights[j][1] are the weights and biases of layer j, packed as forget, input, output, change gates;
 * start[j][0], start[j][1] its hidden and cell vectors; outer: input scaling, output scaling, output bias. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static void step_layer(long b, const double *weight, const double *bias, double *hidden, double *cell, const double *input)
{
    for (long i = 0; i < b; i++) {
        double forget = sigmoid(input[i] * weight[i] + bias[i]);
        double in = sigmoid(hidden[i] * weight[b + i] + bias[b + i]);
        double out = sigmoid(input[i] * weight[2 * b + i] + bias[2 * b + i]);
        double change = tanh(hidden[i] * weight[3 * b + i] + bias[3 * b + i]);
        cell[i] = cell[i] * forget + in * change;
        hidden[i] = out * tanh(cell[i]);
    }
}

static void predict(long l, long b, const double *weights, const double *outer, double *state, const double *input,
                    double *x, double *prediction)
{
    for (long i = 0; i < b; i++)
        x[i] = input[i] * outer[i];
    const double *from = x;
    for (long j = 0; j < l; j++) {
        double *hidden = state + 2 * j * b;
        step_layer(b, weights + 2 * j * 4 * b, weights + (2 * j + 1) * 4 * b, hidden, hidden + b, from);
        from = hidden;
    }
    for (long i = 0; i < b; i++)
        prediction[i] = from[i] * outer[b + i] + outer[2 * b + i];
}

double lstm(const double *weights, const double *outer, const double *start, const double *sequence, long l, long c, long b)
{
    double *state = malloc(l * 2 * b * sizeof(double));
    double *x = malloc(b * sizeof(double));
    double *prediction = malloc(b * sizeof(double));
    memcpy(state, start, l * 2 * b * sizeof(double));
    double total = 0.0;
    for (long t = 0; t + 1 < c; t++) {
        predict(l, b, weights, outer, state, sequence + t * b, x, prediction);
        double sum = 0.0;
        for (long i = 0; i < b; i++)
            sum += exp(prediction[i]);
        double norm = log(sum + 2.0);
        const double *gold = sequence + (t + 1) * b;
        for (long i = 0; i < b; i++)
            total += gold[i] * (prediction[i] - norm);
    }
    free(state);
    free(x);
    free(prediction);
    return -total / ((c - 1) * b);
}
