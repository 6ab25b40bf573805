"""Newton's method with a sparse Hessian, or products alone.

Page: cookbook.md#newton-with-a-sparse-hessian; lines: 19."""

import numpy as np
from scipy.sparse.linalg import cg, spsolve

import irgrad as ig

lib = ig.load(r"""
double energy(const double *x, const double *load, long n) {
    double e = 0;
    for (long i = 0; i < n; i++) e += x[i] * x[i] * x[i] * x[i] / 4 - load[i] * x[i];
    for (long i = 0; i + 1 < n; i++) { double d = x[i + 1] - x[i]; e += 5 * d * d; }
    return e;
}""")
energy = lib.kernel("energy", "f64(f64[n] x, f64[n] load, i64 n)")
gradient, hessian = ig.grad(energy), ig.hessian_sparse(energy)

x, load = np.ones(1000), np.sin(np.arange(1000) / 50)
assert hessian.colours(x, load) == 3
for _ in range(30):
    x -= spsolve(hessian(x, load).tocsc(), gradient(x, load))
assert np.abs(gradient(x, load)).max() < 1e-10

step, failed = cg(hessian.aslinearoperator(x, load), gradient(x, load) + 1e-3, rtol=1e-8)
assert not failed
