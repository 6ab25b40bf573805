/* Loops of scalar calls over a batch of options: what a user of C writes. The gradient is by hand (the Greeks). */
#include <math.h>

#define OPTION double spot, double strike, double rate, double vol, double time

__attribute__((noinline)) static double price(OPTION)
{
    double spread = vol * sqrt(time);
    double d1 = (log(spot / strike) + (rate + 0.5 * vol * vol) * time) / spread;
    double d2 = d1 - spread;
    return 0.5 * spot * erfc(-d1 * M_SQRT1_2) - 0.5 * strike * exp(-rate * time) * erfc(-d2 * M_SQRT1_2);
}

__attribute__((noinline)) static double greeks(OPTION, double *g)
{
    double root = sqrt(time), spread = vol * root, discount = exp(-rate * time);
    double d1 = (log(spot / strike) + (rate + 0.5 * vol * vol) * time) / spread;
    double d2 = d1 - spread;
    double n1 = 0.5 * erfc(-d1 * M_SQRT1_2), n2 = 0.5 * erfc(-d2 * M_SQRT1_2);
    double density = 0.3989422804014327 * exp(-0.5 * d1 * d1);
    g[0] = n1;
    g[1] = -discount * n2;
    g[2] = time * strike * discount * n2;
    g[3] = spot * density * root;
    g[4] = spot * density * vol / (2 * root) + rate * strike * discount * n2;
    return spot * n1 - strike * discount * n2;
}

void option_loop(const double *spot, const double *strike, const double *rate, const double *vol, const double *time,
                 double *out, long n)
{
    for (long i = 0; i < n; i++)
        out[i] = price(spot[i], strike[i], rate[i], vol[i], time[i]);
}

void option_loop_grad(const double *spot, const double *strike, const double *rate, const double *vol,
                      const double *time, double *out, double *g, long n)
{
    for (long i = 0; i < n; i++) {
        double row[5];
        out[i] = greeks(spot[i], strike[i], rate[i], vol[i], time[i], row);
        for (int k = 0; k < 5; k++)
            g[k * n + i] = row[k];
    }
}
