/* Sums over independent samples: a loop whose iterations hand on a sum alone, and scratch of each iteration. */
#include <math.h>

/* Negative log-likelihood of a linear softmax classifier. */
double classify(const double *weights, const double *bias, const double *x, const long *label, long n, long k, long d)
{
    double loss = 0.0, scores[64];
    for (long p = 0; p < n; p++) {
        double top = -INFINITY, s = 0.0;
        for (long j = 0; j < k; j++) {
            double score = bias[j];
            for (long i = 0; i < d; i++)
                score += weights[j * d + i] * x[p * d + i];
            scores[j] = score;
            top = fmax(top, score);
        }
        for (long j = 0; j < k; j++)
            s += exp(scores[j] - top);
        loss += top + log(s) - scores[label[p]];
    }
    return loss;
}

/* Squared distance of option prices by a volatility that depends on strike and time (a smile) from quotes. */
double smile(const double *p, const double *strike, const double *time, const double *quote, long n)
{
    double loss = 0.0;
    for (long i = 0; i < n; i++) {
        double m = log(strike[i] / p[0]), root = sqrt(time[i]);
        double vol = p[2] + p[3] * m + p[4] * m * m + p[5] * exp(-p[6] * time[i]);
        double d1 = (p[1] * time[i] - m) / (vol * root) + 0.5 * vol * root, d2 = d1 - vol * root;
        double price = 0.5 * p[0] * erfc(-d1 * M_SQRT1_2) - 0.5 * strike[i] * exp(-p[1] * time[i]) * erfc(-d2 * M_SQRT1_2);
        loss += (price - quote[i]) * (price - quote[i]);
    }
    return loss;
}

/* Squared distance of pixels from measured ones: light through blobs with a density, sorted by depth. */
double render(const double *centre, const double *width, const double *density, const double *colour, const double *ray,
              const double *pixel, long n, long m)
{
    double loss = 0.0;
    for (long p = 0; p < n; p++) {
        double through = 1.0, sum = 0.0;
        for (long j = 0; j < m; j++) {
            double dx = ray[2 * p] - centre[2 * j], dy = ray[2 * p + 1] - centre[2 * j + 1];
            double alpha = density[j] * exp(-0.5 * (dx * dx + dy * dy) * width[j]);
            sum += through * alpha * colour[j];
            through *= 1.0 - alpha;
        }
        loss += (sum - pixel[p]) * (sum - pixel[p]);
    }
    return loss;
}

/* Squared distance of the ends of trajectories of a predator and its prey (Runge and Kutta's midpoint rule). */
double trajectories(const double *rate, const double *start, const double *end, long n, long steps, double h)
{
    double loss = 0.0;
    for (long p = 0; p < n; p++) {
        double u = start[2 * p], v = start[2 * p + 1];
        for (long t = 0; t < steps; t++) {
            double a = u + 0.5 * h * (rate[0] * u - rate[1] * u * v), b = v + 0.5 * h * (rate[2] * u * v - rate[3] * v);
            u += h * (rate[0] * a - rate[1] * a * b);
            v += h * (rate[2] * a * b - rate[3] * b);
        }
        loss += (u - end[2 * p]) * (u - end[2 * p]) + (v - end[2 * p + 1]) * (v - end[2 * p + 1]);
    }
    return loss;
}

/* Log-likelihood of a Gaussian mixture as in gmm.c, without its prior: scratch of each point on the stack, the triangle
 * by a pointer that runs. */
double mixture(const double *alphas, const double *means, const double *icf, const double *x, long k, long d, long n)
{
    double total = 0.0;
    for (long p = 0; p < n; p++) {
        double terms[64], centred[64], scaled[64], top = -INFINITY, s = 0.0;
        const double *q = icf;
        for (long j = 0; j < k; j++) {
            double square = 0.0, weight = alphas[j];
            for (long i = 0; i < d; i++) {
                centred[i] = x[p * d + i] - means[j * d + i];
                weight += *q;
                scaled[i] = exp(*q++) * centred[i];
            }
            for (long i = 0; i < d; i++)
                for (long l = i + 1; l < d; l++)
                    scaled[l] += *q++ * centred[i];
            for (long i = 0; i < d; i++)
                square += scaled[i] * scaled[i];
            terms[j] = weight - 0.5 * square;
            top = fmax(top, terms[j]);
        }
        for (long j = 0; j < k; j++)
            s += exp(terms[j] - top);
        total += top + log(s);
    }
    return total;
}
