"""The gradient of a C function with NumPy and with JAX: `python examples/nbody.py`."""

from __future__ import annotations

import jax
import numpy as np

import irgrad as ig

SOURCE = """
#include <math.h>
double energy(const double *pos, const double *mass, long n) {
    double e = 0.0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r2 = 1e-3;
            for (int k = 0; k < 3; k++) {
                double d = pos[3 * i + k] - pos[3 * j + k];
                r2 += d * d;
            }
            e -= mass[i] * mass[j] / sqrt(r2);
        }
    return e;
}
"""


def main() -> None:
    """Print the energy, its gradient and the check."""
    rng = np.random.default_rng(0)
    pos, mass = rng.standard_normal((32, 3)), rng.uniform(0.5, 1.5, 32)
    energy = ig.load(SOURCE).kernel("energy", "f64(f64[n,3] pos, f64[n] mass, i64 n)")

    print("energy   ", energy(pos, mass))
    print("gradient ", ig.engine.grad(energy, wrt="pos")(pos, mass)[0], "...")
    print(ig.engine.check(energy, pos, mass))

    jax.config.update("jax_enable_x64", True)
    print("in JAX   ", jax.jit(jax.grad(energy))(pos, mass)[0], "...")
    batch = pos + 0.1 * rng.standard_normal((4, 32, 3))
    print("batched  ", jax.vmap(jax.grad(energy), (0, None))(batch, mass).shape)


if __name__ == "__main__":
    main()
