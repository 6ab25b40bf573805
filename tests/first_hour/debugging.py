"""A wrong signature and a NaN. Page: errors.md#a-gradient-that-is-nan; lines: 25."""

import numpy as np

import irgrad as ig

lib = ig.load(r"""
#include <math.h>
double length(const double *v, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += v[i] * v[i];
    return sqrt(s);
}""")
try:
    lib.kernel("length", "f64(f32[n] v, i64 n)")
except ig.SignatureError as error:
    print(error)
try:
    lib.kernel("length")
except ig.SignatureError as error:
    print(error.fix)
length = lib.kernel("length", "f64(f64[n] v, i32 n)")

at_zero = np.zeros(3)
assert np.isnan(ig.grad(length)(at_zero)).all()
report = ig.check(length, at_zero)
print(report)
assert not report and "strong_zero" in str(report)
repaired = lib.kernel("length", "f64(f64[n] v, i32 n)", strong_zero=True)
assert (ig.grad(repaired)(at_zero) == 0).all()
