"""Error codes of C as exceptions. Page: cookbook.md#error-codes; lines: 22."""

import jax
import jax.numpy as jnp
import numpy as np

import irgrad as ig

jax.config.update("jax_enable_x64", True)
lib = ig.load("""
int flow(const double *pressure, double *rate, long n) {
    for (long i = 0; i < n; i++) {
        if (pressure[i] < 0) return 3;
        rate[i] = pressure[i] * pressure[i];
    }
    return 0;
}""")
flow = lib.kernel("flow", "i32(f64[n] pressure, out f64[n] rate, i64 n)", errors={3: "a negative pressure"})

rate, pullback = ig.vjp(flow, np.array([1.0, 2.0]))
assert pullback(np.ones(2))[0].tolist() == [2.0, 4.0]
for call in (flow, jax.jit(jax.grad(lambda x: jnp.sum(flow(x))))):
    try:
        print(call(jnp.array([1.0, -2.0])))
        raise SystemExit("no error")
    except jax.errors.JaxRuntimeError as error:
        assert "a negative pressure" in str(error)
