// An xor flips the sign of one lane.
#include <immintrin.h>
double loss(const double *x, long n) {
    __m128d v = _mm_loadu_pd(x), m = _mm_set_pd(0.0, -0.0);
    v = _mm_xor_pd(v, m);                       /* flips the sign of lane 0 alone */
    v = _mm_mul_pd(v, _mm_loadu_pd(x + 2));
    return _mm_cvtsd_f64(v) + 2 * _mm_cvtsd_f64(_mm_unpackhi_pd(v, v));
}
