"""A function of a library without source, by a rule. Page: cookbook.md#a-library-without-source; lines: 27."""

import subprocess
from pathlib import Path

import numpy as np

import irgrad as ig

Path("vendor.c").write_text("""
#include <math.h>
double vendor_price(double spot, double strike) { return sqrt(spot * spot + strike * strike); }
""")
subprocess.run(["irgrad", "cc", "-O2", "-shared", "vendor.c", "-lm", "-o", "libvendor.so"], check=True)

lib = ig.load("""
double vendor_price(double spot, double strike);
double book(const double *spot, const double *strike, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += vendor_price(spot[i], strike[i]);
    return sum;
}""", link=["./libvendor.so"])
book = lib.kernel("book", "f64(f64[n] spot, f64[n] strike, i64 n)")
spot, strike = np.array([3.0, 5.0]), np.array([4.0, 12.0])

try:
    ig.grad(book)(spot, strike)
except ig.MissingRuleError as error:
    assert "@rule" in error.fix


@ig.rule("vendor_price")
def _(spot, strike, *, y):
    return spot / y, strike / y


np.testing.assert_allclose(ig.grad(book)(spot, strike), [3 / 5, 5 / 13])
assert ig.check(book, spot, strike) and ig.check_rule("vendor_price", kernel=book, args=(spot, strike))
