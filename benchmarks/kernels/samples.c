/* Kernels of one sample each, for benchmarks of batches. */
#include <math.h>

/* Price of a European call option (Black and Scholes, 1973). */
double option(double spot, double strike, double rate, double vol, double time)
{
    double spread = vol * sqrt(time);
    double d1 = (log(spot / strike) + (rate + 0.5 * vol * vol) * time) / spread;
    double d2 = d1 - spread;
    return 0.5 * spot * erfc(-d1 * M_SQRT1_2) - 0.5 * strike * exp(-rate * time) * erfc(-d2 * M_SQRT1_2);
}
