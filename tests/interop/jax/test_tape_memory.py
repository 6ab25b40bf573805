"""No memory for a tape inside of JAX: an error of the call, with the words of NumPy's, and JAX goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = r"""
import resource
import jax, numpy as np
import irgrad as ig
jax.config.update("jax_enable_x64", True)
k = ig.load('''
#include <math.h>
double f(double x, double p, long n) {
  double y = x; for (long t = 0; t < n; t++) y += 1e-9 * sin(y * p) * y; return y; }
''').kernel("f", "f64(f64 x, f64 p, i64 n)", tape_memory=None)
calls = {
    "jit(grad)": (jax.jit(jax.grad(k)), 1.0), "grad": (jax.grad(k), 1.0),
    "jit(vmap(grad))": (jax.jit(jax.vmap(jax.grad(k), in_axes=(0, None, None))), np.linspace(1, 2, 40)),
    "scan": (jax.jit(lambda x, p, n: jax.lax.scan(lambda c, _: (jax.grad(k)(c, p, n), 0.0), x, length=2)[0]), 1.0),
}
right = {name: np.asarray(call(x, 0.5, 1000)) for name, (call, x) in calls.items()}
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)
for _ in range(3):
    for name, (call, x) in calls.items():
        try:
            np.asarray(call(x, 0.5, 10**9))
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            text = str(error)
            assert "irgrad.TapeMemoryError: there is no memory for the tape of `f`" in text, text
            assert "1000000000 iterations of the loop at <string>:4:" in text and 'tape_memory="512MB"' in text, text
        else:
            raise SystemExit(f"{name}: no error")
        assert np.array_equal(np.asarray(call(x, 0.5, 1000)), right[name]), name
"""


@pytest.mark.long
def test_an_error_and_the_next_call() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


THROWS = """
import jax, numpy as np, pytest
from jax.numpy import stack
import irgrad as ig
jax.config.update("jax_enable_x64", True)
f = ig.load('''
#include <stdexcept>
extern "C" double f(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        if (x[i] < 0) throw std::domain_error("negative");
        s += x[i] * x[i] * x[i];
    }
    return s;
}
''', language="c++").kernel("f", "f64(f64[n] x, i64 n)")
good = jax.numpy.array([1.0, 2.0, 3.0])
modes = (f, jax.jit(f), jax.grad(f), jax.jit(jax.grad(f)), lambda x: jax.vmap(f)(stack([x, x])),
         lambda x: jax.vmap(jax.grad(f))(stack([x, x])), lambda x: jax.jvp(jax.grad(f), (x,), (x,)))
for mode in modes:
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="KernelError: `f` throws `std::domain_error`: neg.*:6:"):
            jax.block_until_ready(mode(-good))
        jax.block_until_ready(mode(good))
np.testing.assert_allclose(jax.grad(f)(good), 3 * good**2)
"""


def test_an_exception_that_nothing_catches() -> None:
    done = subprocess.run([sys.executable, "-c", THROWS], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
