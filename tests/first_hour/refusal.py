"""A refusal, read and repaired. Page: errors.md#reading-a-refusal; lines: 26."""

import numpy as np

import irgrad as ig

lib = ig.load("""
#include <stdint.h>
#include <string.h>
double rough_log2(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits / 4503599627370496.0 - 1023;
}
double entropy(const double *p, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s -= p[i] * rough_log2(p[i]);
    return s;
}""")
entropy = lib.kernel("entropy", "f64(f64[n] p, i64 n)")
p = np.array([0.3, 0.7])
try:
    ig.grad(entropy)(p)
except ig.Unsupported as error:
    assert ":7:" in error.where and "@rule" in error.fix
    print(error.render())


@ig.rule(lib.function("rough_log2"))
def _(x):
    return 1 / (x * np.log(2))


np.testing.assert_allclose(ig.grad(entropy)(p), -np.log2(p) - 1 / np.log(2), atol=0.09)
