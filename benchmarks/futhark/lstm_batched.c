/* A layer of LSTM over a batch of sequences, and the mean square of what it misses: x[t][batch][d], h of size k.
 *
 * w[4k][d] and u[4k][k] are the weights of input and hidden state, for input, forget, change and output gate. */
#include <math.h>
#include <stdlib.h>

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

double lstm_batched(const double *w, const double *u, const double *bias, const double *x, const double *target,
                    long d, long k, long batch, long steps)
{
    double *hidden = calloc(batch * k, sizeof *hidden), *cell = calloc(batch * k, sizeof *cell);
    double *gate = malloc(batch * 4 * k * sizeof *gate), loss = 0.0;
    for (long t = 0; t < steps; t++) {
        for (long s = 0; s < batch; s++)
            for (long r = 0; r < 4 * k; r++) {
                double sum = bias[r];
                for (long i = 0; i < d; i++)
                    sum += w[r * d + i] * x[(t * batch + s) * d + i];
                for (long i = 0; i < k; i++)
                    sum += u[r * k + i] * hidden[s * k + i];
                gate[s * 4 * k + r] = sum;
            }
        for (long s = 0; s < batch; s++)
            for (long i = 0; i < k; i++) {
                const double *row = gate + s * 4 * k + i;
                double c = sigmoid(row[k]) * cell[s * k + i] + sigmoid(row[0]) * tanh(row[2 * k]);
                double h = sigmoid(row[3 * k]) * tanh(c), miss = h - target[(t * batch + s) * k + i];
                cell[s * k + i] = c;
                hidden[s * k + i] = h;
                loss += miss * miss;
            }
    }
    free(hidden);
    free(cell);
    free(gate);
    return loss / (batch * k * steps);
}
